"""A module a command: `EXAMPLES`, `add_arguments(parser)` and `run(args)`; its docstring is its description."""
