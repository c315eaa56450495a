"""Pictures of results, as plotly figures; plotly is loaded when the first one is drawn."""
