"""Answers as self-contained pages that draw, sort and filter: docs/report.md."""
