"""A module a command: `add_arguments(parser)` and `run(args)`; its docstring is its help, with the examples."""
