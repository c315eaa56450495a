"""Scores as text, Markdown and pages."""
