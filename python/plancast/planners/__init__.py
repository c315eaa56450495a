"""Planners: from a model and a machine to a strategy tree (docs/planners.md)."""
