"""Fits the kernel cost models' coefficients to measured kernels.

The formulas are those of cost_models/*.cc (docs/cost_models.md); a test holds
the two together.
"""
