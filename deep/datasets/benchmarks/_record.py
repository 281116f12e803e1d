"""The record of a benchmark: where it is published, under which terms, and how its files are read."""

import json
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deep._util.files import read_bytes
from deep.datasets._rows import FileRow, read_rows
from deep.exceptions import InputError
from deep.records import Example


@dataclass(frozen=True, kw_only=True)
class BenchmarkFile:
    """One file of a benchmark, as its authors publish it.

    Parameters
    ----------
    name : str
        Path below the benchmark's folder.
    url : str, optional
        Where the authors publish it, at a fixed commit; None where it cannot be downloaded without signing in.
    sha256 : str, optional
        Of the published file; None where nobody here has held the file.
    by_hand : str, optional
        How to get it where there is no `url`: one sentence.
    optional : bool
        The benchmark can be counted without it.
    """

    name: str
    url: str | None = None
    sha256: str | None = None
    by_hand: str = ""
    optional: bool = False


@dataclass(frozen=True, kw_only=True)
class Benchmark:
    """A published set of labeled examples.

    Parameters
    ----------
    name : str
        Lower case, with hyphens.
    title : str
        What one example is, in a few words.
    licence : str
        An SPDX identifier, or the terms in words.
    commercial : bool or None
        Whether the licence allows commercial use; None where there is no licence that says.
    url : str
        The authors' page.
    citation : str
        The arXiv identifier of the paper.
    folder : str
        Below the data home.
    files : tuple of BenchmarkFile
    read : callable
        Takes the folder and yields examples; where the source of an example is not there, it is empty.
    datasets : tuple of str
        The datasets that the examples name, where they are several.
    count : callable, optional
        Takes the folder and returns by name what else is worth counting.
    any_file : bool
        One of `files` is enough, since they hold the same or different parts.
    topics : bool
        `read` also takes `main_only`, to leave out summaries of marginal topics.
    note : str
        What is not obvious: one or two sentences.
    """

    name: str
    title: str
    licence: str
    url: str
    citation: str
    folder: str
    files: tuple[BenchmarkFile, ...]
    read: Callable[..., Iterator[Example]]
    commercial: bool | None = None
    datasets: tuple[str, ...] = ()
    count: Callable[[Path], dict[str, int]] | None = None
    any_file: bool = False
    topics: bool = False
    note: str = ""

    @property
    def terms(self) -> str:
        """The licence, and in plain words whether commercial use is allowed."""
        use = {
            True: "commercial use allowed",
            False: "NON-COMMERCIAL use only",
            None: "commercial use not stated: ask the authors",
        }
        return f"{self.licence} ({use[self.commercial]})"

    def missing(self, folder: Path) -> list[BenchmarkFile]:
        """Return the files without which the benchmark in `folder` cannot be read."""
        needed = [file for file in self.files if not file.optional]
        absent = [file for file in needed if not (folder / file.name).is_file()]
        return [] if self.any_file and len(absent) < len(needed) else absent


LARGEST = 1 << 30
"""Bytes of a document."""


def rows_of(path: Path, columns: Collection[str], ending: str | None = None) -> Iterator[FileRow]:
    """Yield the rows of a file with the given columns; `ending` says how to read it where its name does not.

    Raises
    ------
    InputError
        A column is not there, or the file cannot be read.
    """
    for number, (_, row) in enumerate(read_rows(path, columns, ending), start=1):
        absent = [name for name in columns if name not in row]
        if absent:
            raise InputError(
                f"`{absent[0]}` must be a column of {str(path)!r}, as its authors publish it. Got none in row "
                f"{number}. Download the file again."
            )
        yield row


def read_document(path: Path) -> Any:
    """Return the contents of a JSON file.

    Raises
    ------
    InputError
        It is not UTF-8, not JSON, or cannot be read.
    """
    try:
        return json.loads(read_bytes(path, "examples", LARGEST).decode("utf-8-sig"))
    except InputError:
        raise
    except OSError as error:
        reason = error.strerror or type(error).__name__
    except RecursionError:
        reason = "nested too deeply"
    except ValueError as error:
        reason = str(error)
    raise InputError(f"`examples` must be JSON. Got {str(path)!r}: {reason}. Download the file again.")
