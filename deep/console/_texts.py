"""Text from a file or from standard input."""

import sys
from pathlib import Path

from deep.exceptions import InputError

LARGEST_TEXT = 1 << 26
"""In bytes."""


def read_text(path: str, option: str) -> str:
    """Return the text of a file; ``-`` is standard input.

    Raises
    ------
    InputError
        The file cannot be read, is larger than 64 MiB, or is not UTF-8.
    """
    try:
        raw = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
        if len(raw) > LARGEST_TEXT:
            raise InputError(f"`{option}` must have at most {LARGEST_TEXT:,} bytes. Got {len(raw):,} in {path!r}.")
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"`{option}` must be UTF-8. Got byte {error.start} of {path!r}.") from None
    except OSError as error:
        raise InputError(f"`{option}` must be a readable file. Got {path!r}: {error.strerror}.") from None
