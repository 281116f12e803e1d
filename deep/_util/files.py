"""Read regular files of bounded size; write files and folders whole or not at all."""

import gzip
import json
import os
import platform
import re
import shutil
import stat
import tempfile
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from importlib.resources import files
from itertools import count
from pathlib import Path
from typing import Any

from deep.exceptions import InputError

try:
    import fcntl
except ImportError:  # Windows, where nobody can remove a file while it is open
    fcntl = None  # type: ignore[assignment]

# A JSON object; what a value is depends on its key.
JsonObject = dict[str, Any]

# A folder that holds it was written by deep and may be replaced.
RESULTS = "results.json"

# The most bytes of a prompt, a text or a price list: 64 MB. Chosen; no measurement is known: nothing larger is written
# by hand.
MAX_TEXT_BYTES = 1 << 26

# The most bytes of a model file: 256 MB. Chosen; no measurement is known: a larger one would fill a memory as objects
# of Python.
MAX_MODEL_BYTES = 1 << 28

# The most bytes that a gzip file may hold: of all formats it alone hides how large it is.
MAX_INFLATED_BYTES = 1 << 28

# The folder that a process of this machine writes to before its files are complete.
_SCRATCH_NAME = re.compile(rf"\.deep-{re.escape(platform.node())}-\d+-\w+\.part")

# The file in such a folder that its writer keeps locked.
LOCK_FILE = "life"

# The folder in it that holds the files of a run while they take their places.
STAGE = "whole"


def check_regular(path: Path, name: str, largest: float = float("inf")) -> None:
    """Raise unless `path` is a regular file of at most `largest` bytes; an OSError where it cannot be looked at."""
    status = path.stat()
    if stat.S_ISDIR(status.st_mode):
        raise InputError(f"`{name}` must be a file. Got the folder {str(path)!r}.")
    if not stat.S_ISREG(status.st_mode):
        raise InputError(
            f"`{name}` must be a regular file, not a pipe, socket or device. Got {str(path)!r}. Copy it to a file."
        )
    if status.st_size > largest:
        raise InputError(f"`{name}` must have at most {largest:,} bytes. Got {status.st_size:,} in {str(path)!r}.")


def read_bytes(path: str | Path, name: str, largest: int = MAX_TEXT_BYTES) -> bytes:
    """Return the bytes of a regular file, which are no more than `largest`."""
    check_regular(Path(path), name, largest)
    return Path(path).read_bytes()


def parse_toml(raw: bytes) -> JsonObject:
    """Return the tables of a TOML file; raise a ValueError where it is none, as one that nests without an end."""
    try:
        return tomllib.loads(raw.decode("utf-8-sig"))
    except RecursionError:
        raise tomllib.TOMLDecodeError("too many nested brackets") from None


def read_toml(path: str | Path, name: str) -> JsonObject:
    """Return the tables of a TOML file that was given as some parameter.

    Raises
    ------
    InputError
        It cannot be read, or is no TOML.
    """
    try:
        return parse_toml(read_bytes(path, name))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        reason = (getattr(error, "strerror", None) or str(error)).partition("\n")[0].rstrip(".")
        raise InputError(f"`{name}` must be a readable TOML file. Got {str(path)!r}: {reason}.") from None


@cache
def read_asset(package: str, name: str) -> JsonObject:
    """Return the content of a JSON or TOML file that comes with a package of deep."""
    raw = files(package).joinpath(name).read_bytes()
    result: JsonObject = json.loads(raw) if name.endswith(".json") else tomllib.loads(raw.decode("utf-8"))
    return result


class GzipReader(gzip.GzipFile):
    """A gzip file that is refused, as it is read, where it holds more than memory is meant to.

    Parameters
    ----------
    path : Path
        Of the file, as errors name it.
    name : str
        The parameter that the file was given as.
    most : int
        Bytes that it may hold.
    """

    def __init__(self, path: Path, name: str, most: int) -> None:
        super().__init__(path, "rb")
        self._shown, self._param, self._most = repr(str(path)), name, most

    def read(self, size: int | None = -1) -> bytes:
        """Return up to so many bytes."""
        return self._checked(super().read(size))

    def read1(self, size: int = -1) -> bytes:
        """Return up to so many bytes, by reading the file once."""
        return self._checked(super().read1(size))

    def _checked(self, read: bytes) -> bytes:
        if self.tell() > self._most:
            raise InputError(
                f"`{self._param}` must name gzip files that hold at most {self._most:,} bytes. Got more in "
                f"{self._shown}. Check the file, then decompress it or write it as Parquet."
            )
        return read


def check_out(out: Path, endings: Sequence[str], name: str = "out") -> Path:
    """Return a path that can be written to; raise before any work is done where it cannot."""
    if out.suffix.lower() not in endings:
        raise InputError(f"`{name}` must end in {' or '.join(sorted(endings))}. Got {str(out)!r}.")
    _check_no_device(out, name)
    if out.is_dir():
        raise InputError(f"`{name}` must be a file. Got the folder {str(out)!r}.")
    if not out.parent.is_dir() or not os.access(out.parent, os.W_OK):
        raise InputError(f"`{name}` must lie in a writable folder. Got {str(out)!r}.")
    remember_state(out)
    return out


def _check_no_device(out: Path, name: str = "out") -> None:
    """Raise where a pipe, a socket or a device stands, which a file would take the place of."""
    if out.exists() and not (out.is_file() or out.is_dir()):
        raise InputError(f"`{name}` must be a file, not a pipe, socket or device. Got {str(out)!r}. Name another.")


@contextmanager
def _scratch_folder(out: Path) -> Iterator[Path]:
    """Yield an empty folder beside `out`, and remove it; say in one line where there is no room.

    Those of processes of this machine that were killed go first.
    """
    try:
        with suppress(OSError):
            _remove_stale(out.parent)
        scratch = Path(
            tempfile.mkdtemp(prefix=f".deep-{platform.node()}-{os.getpid()}-", suffix=".part", dir=out.parent)
        )
        try:
            with _hold_lock(scratch):
                yield scratch
        finally:
            # Files that could not take their places, where others of their run did, are nowhere else.
            if not any(scratch.glob(f"{STAGE}/*")):
                shutil.rmtree(scratch, ignore_errors=True)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise _unwritable(out, error) from error


@contextmanager
def _hold_lock(scratch: Path) -> Iterator[None]:
    """Hold the lock by which all processes that see a folder know that its writer lives."""
    life = scratch / LOCK_FILE
    with life.with_suffix(".new").open("wb") if fcntl else life.open("wb") as file:
        if fcntl:
            with suppress(OSError):  # a file system without locks: nobody will say that this writer is dead
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                life.with_suffix(".new").rename(life)  # under this name it was never free
        yield


def _remove_stale(folder: Path) -> None:
    for path in folder.iterdir():
        if not (_SCRATCH_NAME.fullmatch(path.name) and _is_abandoned(path)):
            continue
        # Both of these may be the only copy: a run that was being replaced, files that were taking their places.
        if not ((path / "old").exists() or any(path.glob(f"{STAGE}/*"))):
            shutil.rmtree(path, ignore_errors=True)


def _is_abandoned(scratch: Path) -> bool:
    """Return whether the writer of a folder is known to have ended, whatever machine or container it was in.

    A process id says nothing: another container counts its own. A folder of a version without locks is left.
    """
    life = scratch / LOCK_FILE
    try:
        if fcntl is None:
            life.unlink()  # which Windows refuses while it is open
            return True
        with life.open("rb+") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


@contextmanager
def atomic_file(out: Path) -> Iterator[Path]:
    """Yield a path on the file system of `out` that takes its place if nothing goes wrong; where links lead to there.

    Raises
    ------
    InputError
        It cannot be written, a pipe or a device stands there, or others wrote to `out` since it was checked; the new
        file is then kept beside.
    """
    with atomic_files({"out": out}) as partial:
        yield partial["out"]


@contextmanager
def atomic_files(outs: Mapping[str, Path], gone: Iterable[Path] = ()) -> Iterator[dict[str, Path]]:
    """Yield paths of the files of one run; if nothing goes wrong, they take their places together, the first one last.

    Parameters
    ----------
    outs : mapping of str to Path
        By name; the others are named after the first one, before its ending.
    gone : iterable of Path
        Files of an earlier run that this run has none of, which are removed.

    Raises
    ------
    InputError
        As :func:`atomic_file`. Where others wrote to one of all these files, each stays, and the new ones are kept
        beside, all under one name.
    """
    places, gone = {name: _real_path(out) for name, out in outs.items()}, [_real_path(out) for out in gone]
    before = {place: _states.pop(place) if place in _states else _stat_of(place) for place in (*places.values(), *gone)}
    with ExitStack() as stack:
        folders = {place.parent: place for place in places.values()}  # links may lead to several
        parts = {folder: stack.enter_context(_scratch_folder(place)) for folder, place in folders.items()}
        for place in places.values():
            _check_no_device(place)
        for scratch in parts.values():
            (scratch / "part").mkdir()
        # Not yet by their own names, which need not be UTF-8, as libraries want them.
        partial = {name: parts[place.parent] / "part" / f"{i}.new" for i, (name, place) in enumerate(places.items())}
        yield partial
        for name, place in places.items():
            partial[name].rename(partial[name].with_name(place.name))
        if len(places) > 1:  # from here on, whatever ends the process, none of them is removed
            for scratch in parts.values():
                (scratch / "part").rename(scratch / STAGE)
        done = STAGE if len(places) > 1 else "part"
        fresh = {parts[place.parent] / done / place.name: place for place in places.values()}
        changed = next((place for place in before if _stat_of(place) not in (before[place], None)), None)
        if changed is not None:
            _keep_beside(fresh, changed)
        _move_into_place(fresh)
        for path in gone:
            path.unlink(missing_ok=True)


def _move_into_place(fresh: Mapping[Path, Path]) -> None:
    """Put new files into their places, the first one last."""
    for new, place in reversed(list(fresh.items())):
        try:
            new.replace(place)
        except OSError as error:
            state = f"The new files are in {str(new.parent)!r}." if new.parent.name == STAGE else "Nothing was written."
            raise InputError(
                f"`out` must be writable. Got {str(place)!r}: {error.strerror}. {state} Name another "
                "place, or run it again."
            ) from error


# What stood where a command is to write when that was checked, until it is written: hours may lie between.
_states: dict[Path, object] = {}


def remember_state(out: Path) -> None:
    """Record the state of a path that is to be written: where others change it until then, it stays."""
    place = _real_path(out)
    _states[place] = _stat_of(place)


def _real_path(out: Path) -> Path:
    """Return the place that a path leads to; none where the folder that it starts from is gone."""
    try:
        return Path(os.path.realpath(out))
    except OSError as error:
        raise _unwritable(out, error) from error


def _unwritable(out: Path, error: OSError) -> InputError:
    reason = error.strerror or str(error).partition("\n")[0]
    return InputError(
        f"`out` must be writable. Got {str(out)!r}: {reason}. Nothing was written there. Make room, or name another "
        "place."
    )


def _stat_of(place: Path) -> object:
    """Return marks by which a file, or a folder and all in it, is known again; None where nothing is."""
    result = []
    for path in sorted(place.rglob("*")) if place.is_dir() else [place]:
        with suppress(OSError):
            status = path.lstat()
            result.append((str(path), status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns))
    return result or None


def check_replaceable(folder: Path) -> None:
    """Raise unless `folder` is absent, empty or an earlier run's, and has a name that a new one can take."""
    if not folder.name:
        raise InputError(f"`out` must be a folder with a name. Got {str(folder)!r}.")
    if folder.is_dir():
        if any(folder.iterdir()) and not (folder / RESULTS).exists():
            raise InputError(
                f"`out` must be a new folder or an earlier run. Got {str(folder)!r}, which holds other files."
            )
    elif folder.exists():
        raise InputError(f"`out` must be a folder. Got the file {str(folder)!r}.")
    anchor = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not (anchor.is_dir() and os.access(anchor, os.W_OK)):
        raise InputError(f"`out` must be in a writable folder. Got {str(folder)!r}.")
    remember_state(folder)


@contextmanager
def atomic_folder(folder: Path) -> Iterator[Path]:
    """Yield an empty folder beside `folder` that takes its place if nothing goes wrong.

    An earlier run in `folder` is there unchanged until the new one is complete. Where others change it or put
    something in its place meanwhile, that stays, and the new run is kept beside it.

    Raises
    ------
    InputError
        `folder` is neither absent nor empty nor an earlier run, now or at the end, or cannot be written.
    """
    folder = _real_path(folder) if folder.name else folder
    if folder not in _states:
        check_replaceable(folder)
    before = _states.pop(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with _scratch_folder(folder) as scratch:
        fresh = scratch / "new"
        fresh.mkdir()
        yield fresh
        if _stat_of(folder) not in (before, None):
            _keep_beside({fresh: folder}, folder)
        try:
            if folder.exists():
                folder.rename(scratch / "old")
            fresh.rename(folder)
        finally:
            if not folder.exists() and (scratch / "old").exists():
                (scratch / "old").rename(folder)


def _keep_beside(fresh: Mapping[Path, Path], changed: Path) -> None:
    """Keep what is new beside what others put there, and raise.

    Parameters
    ----------
    fresh : mapping of Path to Path
        The place of each new file or folder; the others are named after the first one.
    changed : Path
        The place that others changed.
    """
    first = next(iter(fresh.values()))
    stem = first.name if first.is_dir() else first.stem
    for number in count():
        places = {new: _renamed_path(place, stem, f"{stem}.new{number or ''}") for new, place in fresh.items()}
        if not any(map(os.path.lexists, places.values())):
            break
    _move_into_place(places)
    others = " and the files beside it" if len(places) > 1 else ""
    raise InputError(
        f"`out` must not change during a run. Got {str(changed)!r}, which another program changed meanwhile. "
        f"Nothing was replaced. The new files are in {str(next(iter(places.values())))!r}{others}."
    )


def _renamed_path(place: Path, stem: str, instead: str) -> Path:
    """Return a place by a name that begins otherwise, after `stem` or, where it does not begin so, before it."""
    name = place.name
    return place.with_name(instead + name.removeprefix(stem) if name.startswith(stem) else f"{instead}.{name}")


def to_json(results: Mapping[str, object], encoding: str = "utf-8") -> str:
    """Return results as JSON text that has bytes in an encoding; a NaN in them is a bug and raises."""
    text = json.dumps(results, indent=1, ensure_ascii=False, allow_nan=False)
    try:
        text.encode(encoding)
    except UnicodeEncodeError:  # half a surrogate pair, as of a file's name that is no UTF-8, has no bytes
        text = json.dumps(results, indent=1)
    return text + "\n"


def write_results(folder: Path, results: Mapping[str, object]) -> None:
    """Write the file that marks a folder as deep's own."""
    (folder / RESULTS).write_text(to_json(results), encoding="utf-8")


def write_json_lines(path: Path, rows: Iterable[Mapping[str, object]]) -> None:
    """Write objects as JSON, one a line."""
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
