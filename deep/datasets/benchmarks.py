"""Benchmarks by name: the record of each in `benchmarks.toml`, and the function that reads its files."""

import hashlib
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from deep._util.entry_points import load_part
from deep._util.files import JsonObject, atomic_file, read_asset
from deep._util.names import resolve_dataset
from deep.datasets._examples import Examples
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
        To be downloaded or got by hand, with checksums where they are known.
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


def _benchmark(name: str, entry: JsonObject) -> Benchmark:
    """Return a benchmark, whose reader is a guest's."""
    raw, files = entry.pop("raw", ""), []
    for file in entry["files"]:
        url = None if "by_hand" in file else file.pop("raw", raw) + file["name"]
        files.append(BenchmarkFile(url=url, **file))
    entry["files"] = tuple(files)
    entry["datasets"] = tuple(entry.get("datasets", ()))
    entry["read"] = partial(_call_part, entry["read"], **entry.pop("options", {}))
    entry["count"] = partial(_call_part, entry["count"]) if "count" in entry else None
    return Benchmark(name=name, **entry)


def _call_part(part: str, /, *args: Any, **options: Any) -> Any:
    """Call the reader of a guest, which is imported only now: `deep data list` works without it."""
    return load_part(part)(*args, **options)


# The benchmarks of `benchmarks.toml` by name, and so in its order.
BENCHMARKS = {name: _benchmark(name, entry) for name, entry in read_asset("deep.datasets", "benchmarks.toml").items()}


def find_benchmark(name: str, *, param: str = "name") -> tuple[Benchmark, str | None]:
    """Return the benchmark that a name means, and the one of its datasets that it means, if not all.

    Parameters
    ----------
    name : str
        Of a benchmark or of one of its datasets, in any spelling that `resolve_dataset` understands.
    param : str
        What to call the parameter in an error.

    Raises
    ------
    InputError
        No benchmark has that name, or several do.

    Examples
    --------
    >>> from deep.datasets.benchmarks import find_benchmark
    >>> benchmark, dataset = find_benchmark("SummEdits-News")
    >>> benchmark.name, dataset
    ('summedits', 'summedits-news')
    >>> find_benchmark("xsum")[0].name
    'aggrefact-xsum'
    """
    owners = {dataset: b for b in BENCHMARKS.values() for dataset in b.datasets} | BENCHMARKS
    result = resolve_dataset(name, owners, param=param)
    return owners[result], None if result in BENCHMARKS else result


# The seconds without a byte after which a download is given up. A longer wait hangs a script on a dead server; a
# shorter one gives up on a slow one. Chosen; no measurement is known.
TIMEOUT = 60


def benchmark_roots() -> list[Path]:
    """Return the folders in which benchmarks are looked for; downloads go to the first.

    ``DEEP_DATA_HOME`` where it is set, then the user's cache folder.
    """
    home = os.environ.get("DEEP_DATA_HOME")
    # Where this system keeps what can be downloaded again.
    if sys.platform == "darwin":
        cache = Path.home() / "Library" / "Caches" / "deep"
    elif sys.platform == "win32":
        cache = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "deep" / "deep" / "Cache"
    else:
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").expanduser() / "deep"
    return [*([Path(home)] if home else []), cache]


def find_folder(benchmark: Benchmark) -> Path | None:
    """Return the first folder that holds the files of a benchmark; None where none does."""
    folders = (home / benchmark.folder for home in benchmark_roots())
    return next((folder for folder in folders if not benchmark.missing(folder)), None)


def how_to_get_files(benchmark: Benchmark) -> str:
    """Return, in a sentence or two, how the files of a benchmark get here."""
    folder = benchmark_roots()[0] / benchmark.folder
    # A file behind a form or a licence has no address: its own instruction comes before any download.
    by_hand = [file for file in benchmark.missing(folder) if file.url is None]
    if by_hand and not benchmark.any_file:
        return f"{by_hand[0].by_hand}, to {folder / by_hand[0].name}."
    unverified = any(file.url and not file.sha256 for file in benchmark.missing(folder))
    flag = " --allow-unverified" if unverified else ""
    return f"Run `deep data fetch {benchmark.name}{flag}`, or put the files of {benchmark.url} into {folder}."


def require_folder(benchmark: Benchmark) -> Path:
    """Return the folder of a benchmark.

    Raises
    ------
    InputError
        No folder has its files; the message says what to do.
    """
    folder = find_folder(benchmark)
    if folder is None:
        names = [file.name for file in benchmark.missing(benchmark_roots()[0] / benchmark.folder)]
        raise InputError(
            f"`examples` must name a benchmark whose files are here. Got {benchmark.name!r}, without {names[0]!r}. "
            f"{how_to_get_files(benchmark)}"
        )
    return folder


def benchmark_folders(benchmark: Benchmark | None) -> list[Path]:
    """Return the folder of a benchmark; of None, all folders in which benchmarks are looked for.

    Raises
    ------
    InputError
        No folder has its files; the message says what to do.
    """
    if benchmark is None:
        return list(benchmark_roots())
    folder = find_folder(benchmark)
    if folder is None:
        advice = how_to_get_files(benchmark)
        raise InputError(f"`name` must be a benchmark whose files are here. Got {benchmark.name!r}. {advice}")
    return [folder]


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def checksum_state(file: BenchmarkFile, folder: Path) -> str:
    """Return ``absent``, ``unverified`` (no checksum is known), ``verified`` or ``differs``."""
    path = folder / file.name
    if not path.is_file():
        return "absent"
    if file.sha256 is None:
        return "unverified"
    return "verified" if sha256_of(path) == file.sha256 else "differs"


def fetch_benchmark(benchmark: Benchmark, *, allow_unverified: bool = False, progress: bool = False) -> list[Path]:
    """Download the files of a benchmark that are not here yet, and return the paths of all that can be.

    Parameters
    ----------
    benchmark : Benchmark
        As :func:`find_benchmark` finds it by its name.
    allow_unverified : bool
        Also download files whose checksum nobody here knows.
    progress : bool
        Show a bar for each file.

    Raises
    ------
    InputError
        A file must be got by hand, has no known checksum, cannot be downloaded, or is not what was published.
        A file that came whole before stays; of the one that failed nothing does.
    """
    folder = benchmark_roots()[0] / benchmark.folder
    files = [file for file in benchmark.files if file.url]
    if not files:
        raise InputError(
            f"`name` must be a benchmark that can be downloaded. Got {benchmark.name!r}. {how_to_get_files(benchmark)}"
        )
    unverified = [file for file in files if file.sha256 is None]
    if unverified and not allow_unverified:
        raise InputError(
            f"`name` must be a benchmark whose checksums are known. Got {benchmark.name!r}, but "
            f"{unverified[0].name!r} has none. Add --allow-unverified to download it from {unverified[0].url}, which "
            "is fixed to a commit."
        )
    return [_download(file, folder, progress=progress) for file in files]


def _download(file: BenchmarkFile, folder: Path, *, progress: bool) -> Path:
    """Download a file unless it is here whole, and return its path; what comes otherwise than published is not kept."""
    path = folder / file.name
    if checksum_state(file, folder) in ("verified", "unverified"):
        return path
    import httpx2

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_file(path) as scratch:
            digest = hashlib.sha256()
            with scratch.open("wb") as stream:
                for piece in _pieces(str(file.url), progress=progress):
                    digest.update(piece)
                    stream.write(piece)
            # Checked before the file takes its place: a page of an error, saved as data, would be found years later.
            if file.sha256 not in (None, digest.hexdigest()):
                raise _failed(file, path, "a file with another SHA-256 than the published one")
    except httpx2.HTTPStatusError as error:
        raise _failed(file, path, f"status {error.response.status_code}") from None
    except httpx2.HTTPError as error:
        raise _failed(file, path, type(error).__name__) from None
    except OSError as error:
        raise InputError(
            f"`DEEP_DATA_HOME` must be a folder that can be written to. Got {str(path.parent)!r}: "
            f"{error.strerror}. Set it to another, or unset it."
        ) from None
    return path


def _pieces(url: str, *, progress: bool) -> Iterator[bytes]:
    """Yield the body of a file on the web, with a bar on standard error where one is wanted."""
    import httpx2
    from rich.console import Console
    from rich.progress import Progress

    with (
        httpx2.stream("GET", url, follow_redirects=True, timeout=TIMEOUT) as response,
        Progress(console=Console(stderr=True), transient=True, disable=not progress) as bars,
    ):
        response.raise_for_status()
        length = response.headers.get("Content-Length", "")
        bar = bars.add_task(url.rsplit("/", 1)[-1], total=int(length) if length.isdecimal() else None)
        for piece in response.iter_bytes():
            bars.advance(bar, len(piece))
            yield piece


def _failed(file: BenchmarkFile, path: Path, reason: str) -> InputError:
    return InputError(
        f"`name` must be a benchmark whose files can be downloaded. Got {reason} from {file.url}. "
        f"Try again, or put the file at {path}; nothing of it was kept."
    )


class BenchmarkExamples(Examples):
    """The examples of a benchmark whose files are in `folder`, read anew each time.

    Parameters
    ----------
    benchmark : Benchmark
        The published set that they are of.
    folder : Path
        Where its files are, as :func:`require_folder` finds them.
    dataset : str, optional
        Only this one of its datasets.
    main_only : bool
        Leave out what is about marginal topics, where the benchmark knows of topics.
    require_source : bool
        Raise at an example whose source is not there; a judge needs it, a count does not.
    """

    def __init__(
        self,
        benchmark: Benchmark,
        folder: Path,
        *,
        dataset: str | None = None,
        main_only: bool = False,
        require_source: bool = True,
    ) -> None:
        if main_only and not benchmark.topics:
            raise InputError(
                f"`main_only` must be given for a benchmark with main and marginal topics. Got {benchmark.name!r}. "
                "Leave it out."
            )
        self.benchmark, self.folder = benchmark, folder
        self.name = dataset or benchmark.name
        self.dataset = dataset
        self.main_only, self.require_source = main_only, require_source

    @property
    def origin(self) -> str:
        """The folder."""
        return repr(str(self.folder))

    def __iter__(self) -> Iterator[Example]:
        options = {"main_only": True} if self.main_only else {}
        try:
            for example in self.benchmark.read(self.folder, **options):
                if self.dataset in (None, example.dataset):
                    yield self._with_source(example)
        except InputError:
            raise
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            raise InputError(
                f"`examples` must be in the layout that the authors of {self.benchmark.name!r} publish. "
                f"Got {type(error).__name__} {error} in {self.origin}. Download the files again."
            ) from None

    def _with_source(self, example: Example) -> Example:
        if self.require_source and not example.source:
            remedy = next(
                (f"{file.by_hand}. Put it into {self.folder}" for file in self.benchmark.files if file.optional),
                "Download the files again",
            )
            raise InputError(
                f"`source` must be text. Got none for {example.document_id or example.example_id!r} of "
                f"{self.benchmark.name!r}. {remedy}."
            )
        return example
