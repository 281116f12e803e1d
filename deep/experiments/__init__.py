"""The studies: each a folder, run as ``deep NAME`` or ``python -m deep.experiments.NAME``."""
