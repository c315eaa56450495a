"""Pictures of results in notebooks, drawn as pages draw them; plotly is loaded for the first."""
