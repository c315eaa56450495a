"""What `plancast export` writes: one module for each format, with `add_parser`."""
