"""Whole training runs: how long, for how much, with what failures, on how many hosts.

All of it is arithmetic on forecasts of single iterations (docs/training_runs.md).
"""
