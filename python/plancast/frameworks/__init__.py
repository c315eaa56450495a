"""Argument files of training frameworks: read into plans, and written from plans.

One module a framework; what its keys are called, and which of them matter, is a table
of rows that both directions read (tables/*.yaml). Users come by `plancast.launchers`.
"""
