"""How far forecasts lie from measurements, and what is fitted to these."""
