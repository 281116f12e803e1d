"""A sample of mutants over all rooms of deep, and which tests notice each: the measure of tests that are to be removed.

    python benchmarks/house_mutants.py draw [--sample 120] [--seed 46]
    python benchmarks/house_mutants.py judge [--seconds 60] [--jobs 2] [--limit-s 20] [--again] [--out FILE.json]

``draw`` takes cosmic-ray, as `mutants.py` does, and writes `mutants/house.json`: every room has its share by lines of
code, and at least two. A mutant stands there as text: the line above it, its lines before and after, the line below.
So ``judge`` needs no cosmic-ray and finds the same place after code has moved: by all of the text in the file, by the
lines alone where they occur once in it, or once in the whole of deep. A mutant without a place is `gone`.

``judge`` runs the tests of the room, those first that name most of what the module defines, until one fails. A test
that fails without the mutant too does not count. Outcomes: `noticed` (with the test), `survived` (all passed), `late`
(none failed within ``--limit-s`` processor seconds), `gone`, `unjudged`. Judged are those that are unjudged, or late by
a smaller limit; with ``--again`` all. Tests that start deep as another process see it without the mutant.
"""

import argparse
import ast
import difflib
import json
import os
import random
import re
import sys
import time
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock
from typing import Any

from lines import counted_files
from mutants import ROOT, SETTINGS, load_libraries, mutants_of, mutated_text, outcome, say

SAMPLE = ROOT / "benchmarks" / "mutants" / "house.json"
Entry = dict[str, Any]

TESTS = {
    "": ["tests/test_*.py"],
    "_util": ["tests/test_*.py", "tests/datasets"],
    "integrations": [
        "tests/integrations",
        "tests/serve",
        "tests/features",
        "tests/ensembles",
        "tests/llm",
        "tests/model",
    ],
    "experiments": ["tests/experiments", "tests/prompt_pool"],
    "prompt_pool": ["tests/prompt_pool", "tests/replies"],
}
"""Tests of the rooms that have more than a folder of their own name."""


def room_of(file: str | Path) -> str:
    """Return the first folder of a file below deep/."""
    parts = Path(file).parts
    return parts[0] if len(parts) > 1 else ""


def drawn(sample: int, seed: int) -> Iterator[Entry]:
    """Yield mutants of files drawn by their lines of code, each room in turn."""
    lines: dict[str, dict[str, int]] = defaultdict(dict)
    for file, counted in counted_files().items():
        if counted.code:
            lines[room_of(file)][str(file)] = counted.code
    total = sum(sum(files.values()) for files in lines.values())
    share = {room: max(2, round(sample * sum(files.values()) / total)) for room, files in lines.items()}
    share[max(share, key=share.__getitem__)] += sample - sum(share.values())
    left_out = re.compile("|".join(tomllib.loads(SETTINGS.read_text(encoding="utf-8"))["left_out"]))
    for room, files in sorted(lines.items()):
        chance = random.Random(f"{seed} {room}")
        places: dict[str, list[Any]] = {}
        taken = 0
        while taken < share[room]:
            (file,) = chance.choices(list(files), list(files.values()))
            if file not in places:
                found = mutants_of(f"deep/{file}", left_out, seed)
                places[file] = sorted(found, key=lambda mutant: mutant.key, reverse=True)
            if places[file]:
                mutant = places[file].pop()
                yield {"file": mutant.module, "line": mutant.line, "operator": mutant.operator, **as_text(mutant)}
                taken += 1


def as_text(mutant: Any) -> Entry:
    """Return a mutant as the lines it replaces, with a line of context on each side."""
    before = (ROOT / mutant.module).read_text(encoding="utf-8").splitlines()
    after = mutated_text(mutant).splitlines()
    changes = [
        op for op in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes() if op[0] != "equal"
    ]
    first, last, start, end = changes[0][1], changes[-1][2], changes[0][3], changes[-1][4]
    return {
        "above": before[max(first - 1, 0) : first],
        "old": before[first:last],
        "new": after[start:end],
        "below": before[last : last + 1],
        "outcome": "unjudged",
    }


def placed(entry: Entry, files: dict[str, str]) -> tuple[str, str] | None:
    """Return the module where a mutant stands today, and its text with the change; None where it is gone."""
    name = entry["file"]
    old, new = ("".join(f"{line}\n" for line in entry[key]) for key in ("old", "new"))
    above, below = ("".join(f"{line}\n" for line in entry[key]) for key in ("above", "below"))
    if f"\n{above}{old}{below}" in f"\n{files.get(name, '')}":
        return name, f"\n{files[name]}".replace(f"\n{above}{old}{below}", f"\n{above}{new}{below}", 1)[1:]
    for among in ({name: files.get(name, "")}, files):
        hits = [module for module, text in among.items() for _ in range(f"\n{text}".count(f"\n{old}"))]
        if len(hits) == 1 and old.strip():
            return hits[0], f"\n{files[hits[0]]}".replace(f"\n{old}", f"\n{new}", 1)[1:]
    return None


def tests_of(module: str, text: str) -> list[str]:
    """Return the test files of a module's room, those first that name most of what it defines."""
    room = room_of(Path(module).relative_to("deep"))
    names = {Path(module).stem.strip("_")} | {
        node.name for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef | ast.ClassDef)
    }
    word = re.compile(r"\b(" + "|".join(map(re.escape, sorted(names))) + r")\b")
    files = set[Path]()
    for pattern in TESTS.get(room, [f"tests/{room}", "tests/test_*.py"]):
        files.update(path for path in ROOT.glob(pattern) if path.suffix == ".py")
        files.update((ROOT / pattern).rglob("test_*.py"))
    near = {path: len(set(word.findall(path.read_text(encoding="utf-8")))) for path in files}
    return [str(path.relative_to(ROOT)) for path in sorted(files, key=lambda path: (-near[path], str(path)))]


def judged(entry: Entry, files: dict[str, str], limit: int) -> Entry:
    """Return a mutant with its outcome."""
    place = placed(entry, files)
    if place is None:
        return entry | {"outcome": "gone"}
    module, text = place
    tests, failing = tests_of(module, files[module]), list[str]()
    for _ in range(4):
        status = outcome(module, text, [*tests, *(f"--deselect={name}" for name in failing)], limit)
        if status is None or status[0] in (0, 5):
            return entry | {"outcome": "late" if status is None else "survived", "limit_s": limit}
        if (as_it_is := outcome(module, None, [status[1] or tests[0]], 3 * limit)) and as_it_is[0] == 0:
            return entry | {"outcome": "noticed", "by": status[1], "limit_s": limit}
        failing.append(status[1])
    return entry | {"outcome": "unjudged", "why": f"fail without the mutant: {', '.join(failing)}"}


def is_open(entry: Entry, limit: int) -> bool:
    """Tell whether nobody has judged a mutant yet, or only in less time than there is now."""
    return entry["outcome"] == "unjudged" or (entry["outcome"] == "late" and entry["limit_s"] < limit)


def judge(entries: list[Entry], args: argparse.Namespace) -> None:
    """Judge what is to be judged until the time is over, the rooms in turn, and write each outcome at once."""
    ends = time.monotonic() + args.seconds
    files = {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in ROOT.glob("deep/**/*.py")}
    waiting = [i for i, entry in enumerate(entries) if args.again or is_open(entry, args.limit_s)]
    seen, turns, writing = Counter[str](), dict[int, int](), Lock()
    for i in waiting:
        room = room_of(Path(entries[i]["file"]).relative_to("deep"))
        turns[i], seen[room] = seen[room], seen[room] + 1

    def one(i: int) -> None:
        if time.monotonic() < ends:
            before = entries[i]["outcome"]
            entries[i] = judged({k: v for k, v in entries[i].items() if k not in ("by", "why")}, files, args.limit_s)
            with writing:
                write(entries, args.out)
            after = entries[i]
            say(f"{after['outcome']} (was {before}) {after['file']}:{after['line']} {after.get('by', '')}")

    with ThreadPoolExecutor(args.jobs) as pool:
        list(pool.map(one, sorted(waiting, key=turns.__getitem__)))


def write(entries: list[Entry], path: Path) -> None:
    """Write the sample."""
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(entries, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def main() -> None:
    """Draw or judge, and print how many of each outcome there are, by room."""
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("what", choices=("draw", "judge", "show"))
    p.add_argument("--sample", type=int, default=120)
    p.add_argument("--seed", type=int, default=46)
    p.add_argument("--seconds", type=float, default=3600, help="begin no other mutant after that (default: 3600)")
    p.add_argument("--jobs", type=int, default=2)
    p.add_argument("--limit-s", type=int, default=20, help="processor seconds of the tests of a mutant (default: 20)")
    p.add_argument("--again", action="store_true", help="judge those too that have been judged")
    p.add_argument("--out", type=Path, default=SAMPLE, help="where outcomes are written (default: over the sample)")
    args = p.parse_args()
    os.chdir(ROOT)
    sys.path.insert(0, str(ROOT))
    os.environ |= {"OMP_NUM_THREADS": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    if args.what == "draw":
        write(entries := list(drawn(args.sample, args.seed)), args.out)
    else:
        entries = json.loads((args.out if args.what == "show" else SAMPLE).read_text(encoding="utf-8"))
    if args.what == "judge":
        load_libraries(tomllib.loads(SETTINGS.read_text(encoding="utf-8"))["libraries"])
        judge(entries, args)
    rooms = defaultdict[str, Counter[str]](Counter)
    for entry in entries:
        rooms[room_of(Path(entry["file"]).relative_to("deep"))][entry["outcome"]] += 1
    for room, counts in [*rooms.items(), ("all", sum(rooms.values(), Counter()))]:
        say(f"{room or '(root)':<14}" + ", ".join(f"{n} {name}" for name, n in counts.most_common()))


if __name__ == "__main__":
    main()
