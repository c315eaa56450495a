"""Descriptions of models: shipped presets and Hugging Face configurations."""
