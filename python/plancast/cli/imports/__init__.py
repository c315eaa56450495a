"""What `plancast import` reads: one module for each format, with `add_parser`."""
