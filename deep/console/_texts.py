"""Text from a file or from standard input."""

import sys

from deep._files import LARGEST_TEXT, read_bytes
from deep.exceptions import InputError


def read_text(path: str, option: str) -> str:
    """Return the text of a file; ``-`` is standard input.

    Raises
    ------
    InputError
        The file cannot be read, is larger than 64 MiB, or is not UTF-8.
    """
    try:
        raw = sys.stdin.buffer.read(LARGEST_TEXT + 1) if path == "-" else read_bytes(path, option)
        if len(raw) > LARGEST_TEXT:
            raise InputError(f"`{option}` must have at most {LARGEST_TEXT:,} bytes. Got more in {path!r}.")
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"`{option}` must be UTF-8. Got byte {error.start} of {path!r}.") from None
    except OSError as error:
        raise InputError(f"`{option}` must be a readable file. Got {path!r}: {error.strerror}.") from None
