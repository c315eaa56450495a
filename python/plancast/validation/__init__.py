"""Forecasts beside published measurements."""
