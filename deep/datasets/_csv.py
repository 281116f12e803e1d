"""The records of a CSV file, each with the line that it begins on, for every reader of CSV."""

import csv
from collections.abc import Iterable, Iterator


def csv_records(lines: Iterable[str], longest: int, *, strict: bool) -> Iterator[tuple[int, list[str]]]:
    """Yield the records that are not blank, header first, each with the line that it begins on, from 1.

    Parameters
    ----------
    lines : iterable of str
        With their ends.
    longest : int
        Characters that a cell may have.
    strict : bool
        Whether a misplaced quote is an error.

    Raises
    ------
    csv.Error
        A record is no CSV or a cell is too long; the message says on which line the record begins.
    """
    reader = csv.reader(lines, strict=strict)
    while True:
        line = reader.line_num + 1
        # The limit of a cell is the whole process's, so it is put back after every record.
        before = csv.field_size_limit(longest)
        try:
            cells = next(reader, None)
        except csv.Error as error:
            raise csv.Error(f"{error} in the record that begins on line {line}") from None
        finally:
            csv.field_size_limit(before)
        if cells is None:
            return
        if cells:
            yield line, cells
