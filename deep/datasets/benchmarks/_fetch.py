"""Finding and downloading the files of a benchmark; the only module of datasets that opens a socket."""

import hashlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from deep._files import whole_file
from deep.datasets.benchmarks._record import Benchmark, BenchmarkFile
from deep.exceptions import InputError

TIMEOUT = 60
"""Seconds without a byte after which a download is given up."""


def homes() -> list[Path]:
    """Return the folders in which benchmarks are looked for; downloads go to the first.

    ``DEEP_DATA_HOME`` where it is set, then the user's cache folder.
    """
    given = os.environ.get("DEEP_DATA_HOME")
    return [*([Path(given)] if given else []), _cache_folder()]


def _cache_folder() -> Path:
    """Return deep's folder where this system keeps what can be downloaded again."""
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "deep"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "deep" / "deep" / "Cache"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").expanduser() / "deep"


def find_folder(benchmark: Benchmark) -> Path | None:
    """Return the first folder that holds the files of a benchmark; None where none does."""
    folders = (home / benchmark.folder for home in homes())
    return next((folder for folder in folders if not benchmark.missing(folder)), None)


def what_to_do(benchmark: Benchmark) -> str:
    """Return, in a sentence or two, how the files of a benchmark get here."""
    folder = homes()[0] / benchmark.folder
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
        names = [file.name for file in benchmark.missing(homes()[0] / benchmark.folder)]
        raise InputError(
            f"`examples` must name a benchmark whose files are here. Got {benchmark.name!r}, without {names[0]!r}. "
            f"{what_to_do(benchmark)}"
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
        return list(homes())
    folder = find_folder(benchmark)
    if folder is None:
        advice = what_to_do(benchmark)
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
    folder = homes()[0] / benchmark.folder
    files = [file for file in benchmark.files if file.url]
    if not files:
        raise InputError(
            f"`name` must be a benchmark that can be downloaded. Got {benchmark.name!r}. {what_to_do(benchmark)}"
        )
    unverified = [file for file in files if file.sha256 is None]
    if unverified and not allow_unverified:
        raise InputError(
            f"`name` must be a benchmark whose checksums are known. Got {benchmark.name!r}, where that of "
            f"{unverified[0].name!r} is not. Add --allow-unverified to download it from {unverified[0].url}, which is "
            "fixed to a commit."
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
        with whole_file(path) as scratch:
            digest = hashlib.sha256()
            with scratch.open("wb") as stream:
                for piece in _pieces(str(file.url), progress=progress):
                    digest.update(piece)
                    stream.write(piece)
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
