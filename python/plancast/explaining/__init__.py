"""Why a plan takes as long as it does, and why another takes longer (docs/explain.md)."""
