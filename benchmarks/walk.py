"""The way of one text to its P: the files and functions of deep that scoring it passes through.

    python benchmarks/walk.py [--cold | --write | --all]

A model of twelve lexical checks is fitted on ``examples/claims.csv``. One text is scored to warm up; then another is
scored while every call into `deep/` is counted by Python's profiler. Comprehensions and lambdas count with the function
that holds them. With ``--cold`` the model is loaded, its judges are found and the text is scored, with nothing done
before but the imports. ``--write`` puts the list into ``docs/walks.md``, held by a test. ``--all`` prints three
lines instead: how many files and functions one text takes (warm), `deep fit` on three labeled datasets and `deep loo`.
The last two are run by their command lines, each in a fresh process that has imported nothing but `deep.cli`; a file
counts where a function of it is called, in the main thread, also while a module is imported, but not for its own body.
"""

import argparse
import contextlib
import io
import multiprocessing
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FrameType

import deep
from deep.asking import TextScorer
from deep.cli import main as run

ROOT = Path(deep.__file__).parent
PAGE = ROOT.parent / "docs" / "walks.md"
BEGIN, END = "<!-- walk -->", "<!-- end of walk -->"
CLAIMS = ROOT.parent / "examples" / "claims.csv"
WARM_UP = "It was hot in May 2020 for 3 hours. No rain.", 'It was cold in June 2021 for 4 km, "hot".'
SCORED = "Rain fell on Monday. The river rose by 14 centimetres.", "The river rose by 41 centimetres."


def passed_through(work: Callable[[], object]) -> dict[str, set[str]]:
    """Return the functions of deep that a piece of work calls, by file."""
    result = defaultdict[str, set[str]](set)

    def note(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(str(ROOT)) and not code.co_name.startswith("<"):
            result[str(Path(code.co_filename).relative_to(ROOT))].add(code.co_qualname)

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return dict(result)


def fitted(folder: str) -> str:
    """Return the file of a model of all lexical checks."""
    votes, model = f"{folder}/votes.parquet", f"{folder}/model.json"
    for words in (
        ["votes", str(CLAIMS), "--lexical", "all", "--out", votes],
        ["fit", votes, "--exclude", "weather", "--out", model],
    ):
        if run(words):
            raise SystemExit(f"`deep {words[0]}` failed")
    return model


def walk(*, cold: bool) -> dict[str, set[str]]:
    """Return the functions that one text passes through, by file."""
    with tempfile.TemporaryDirectory() as folder:
        model = fitted(folder)
        scorer = TextScorer(deep.load(model))
        scorer.score(*WARM_UP)
        if cold:
            return passed_through(lambda: TextScorer(deep.load(model)).score(*SCORED))
        return passed_through(lambda: scorer.score(*SCORED))


def command(words: list[str]) -> dict[str, set[str]]:
    """Return the functions that a command passes through, by file; what it prints is dropped."""
    with contextlib.redirect_stdout(io.StringIO()):
        return passed_through(lambda: run(words))


def commands() -> dict[str, dict[str, set[str]]]:
    """Return the functions that a fit on three datasets and holding out one of four pass through, by file."""
    votes, fresh = str(CLAIMS), multiprocessing.get_context("fork")
    words = {
        "votes": ["votes", votes, "--lexical", "all", "--out", "votes.parquet"],
        "deep fit on three datasets": ["fit", "votes.parquet", "--exclude", "weather", "sport", "--jobs", "1"],
        "deep loo --test aggrefact": ["loo", "--test", "aggrefact", "--n-boot", "100", "--jobs", "1", "--out", "loo"],
    }
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), fresh.Pool(1, maxtasksperchild=1) as one:
        result = dict(zip(words, one.map(command, words.values(), chunksize=1), strict=True))
    del result["votes"]
    return result


def listed(found: Mapping[str, set[str]]) -> str:
    """Return the list as it stands on the page, between its marks."""
    rows = [f"| `{file}` | `{'`, `'.join(sorted(names))}` |" for file, names in sorted(found.items())]
    total = f"{len(found)} files, {sum(map(len, found.values()))} functions:"
    return "\n".join([f"{BEGIN}\n{total}\n", "| file | functions |", "| --- | --- |", *rows, f"\n{END}"])


def on_page() -> str:
    """Return the list that stands on the page."""
    text = PAGE.read_text(encoding="utf-8")
    return text[text.index(BEGIN) : text.index(END) + len(END)]


def main() -> None:
    """Walk, and print or write."""
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--cold", action="store_true", help="with loading the model and finding its judges")
    p.add_argument("--write", action="store_true", help="write the list into docs/walks.md")
    p.add_argument("--all", action="store_true", help="print how much one text, a fit and loo pass through")
    args = p.parse_args()
    if args.all:
        both = commands()  # first, while nothing is warm
        for name, result in {"one text to its P": walk(cold=False), **both}.items():
            sys.stdout.write(f"{name}: {len(result)} files, {sum(map(len, result.values()))} functions\n")
        return
    result = walk(cold=args.cold)
    if args.write:
        PAGE.write_text(PAGE.read_text(encoding="utf-8").replace(on_page(), listed(result)), encoding="utf-8")
    sys.stdout.write(listed(result) + "\n")


if __name__ == "__main__":
    main()
