"""One line, and no traceback of imports, where the library of an integration is not installed."""

from collections.abc import Iterator
from contextlib import contextmanager

from deep.exceptions import MissingDependencyError


@contextmanager
def needs_extra(extra: str) -> Iterator[None]:
    """Raise the error that names an extra of deep-judges where an import inside the block fails.

    Parameters
    ----------
    extra : str
        As ``pip install 'deep-judges[...]'`` takes it.

    Raises
    ------
    MissingDependencyError
        A library is not installed, or is too old to have what is imported.

    Examples
    --------
    >>> with needs_extra("mlflow"):
    ...     import no_such_library
    Traceback (most recent call last):
    deep.exceptions.MissingDependencyError: This integration needs a library that is not installed (No module named
    'no_such_library'). Run: pip install 'deep-judges[mlflow]'.
    """
    try:
        yield
    except MissingDependencyError:
        raise
    except ImportError as error:
        raise MissingDependencyError(
            f"This integration needs a library that is not installed ({error}). "
            f"Run: pip install 'deep-judges[{extra}]'."
        ) from None
