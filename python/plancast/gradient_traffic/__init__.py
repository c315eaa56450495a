"""When the gradients of data-parallel workers are sent."""
