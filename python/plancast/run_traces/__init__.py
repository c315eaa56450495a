"""Traces of profiled runs beside the timelines of forecasts."""
