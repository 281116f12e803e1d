"""Errors that deep raises on purpose.

::

    DeepError
    ├── InputError             (also a ValueError)   a value, a file or an option is not usable as given
    └── MissingDependencyError (also an ImportError) an optional library is not installed

Asking for a result before ``fit`` raises scikit-learn's own ``NotFittedError``. A command prints the one
line of a :class:`DeepError` and exits with status 2; anything else is a bug and keeps its traceback.
"""

__all__ = ["DeepError", "InputError", "MissingDependencyError"]


class DeepError(Exception):
    """Base of every error that a user can cause and mend."""


class InputError(DeepError, ValueError):
    """An argument, option, file or cell of a table is not usable; the message says where and what to do."""


class MissingDependencyError(DeepError, ImportError):
    """An optional library is needed for what was asked."""
