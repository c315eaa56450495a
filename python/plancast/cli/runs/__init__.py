"""What `plancast run` executes: one module for each kind of file.

A module has `add_options(parser)`, which adds a group of options of its own;
`accepts(what)`, whether the file or prefix is of its kind; and `run(options)`,
which gives the exit code.
"""
