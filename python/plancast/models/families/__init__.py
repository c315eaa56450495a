"""Readers of Hugging Face configurations, a module for each group of architectures."""
