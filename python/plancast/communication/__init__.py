"""Collectives, their traces and their algorithms."""
