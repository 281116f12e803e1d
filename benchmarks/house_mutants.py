"""Samples of mutants over all rooms of deep, and which tests notice each: the measure of tests that are to be removed.

    python benchmarks/house_mutants.py draw [--sample 100] [--seed 49]
    python benchmarks/house_mutants.py judge [--seconds 60] [--jobs 2] [--limit-s 60] [--again] [--out FILE.json]

``draw`` takes cosmic-ray, as `mutants.py` does, and adds a sample to `mutants/house.json`: every room has its share by
lines of code, and at least two. A mutant stands there as text: the line above it, its lines before and after, the line
below. So ``judge`` needs no cosmic-ray and finds the same place after code has moved: by all of the text in the file,
by the lines alone where they occur once in it, or once in the whole of deep. A mutant without a place is `gone`.

``judge`` runs the test that noticed a mutant before, then those that share most words with the code that it changes,
until one fails. A test that fails without the mutant too does not count. Outcomes: `noticed` (with the test),
`survived` (all passed), `equivalent` (survived, and the entry says why no test could fail), `late` (none failed within
``--limit-s`` processor seconds), `gone`, `unjudged`. Judged are those that are unjudged, or late by a smaller limit;
with ``--again`` all. Tests that start deep as another process see it without the mutant.
"""

import argparse
import ast
import difflib
import json
import math
import os
import random
import re
import sys
import time
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any

from lines import counted_files
from mutants import ROOT, SETTINGS, load_libraries, mutants_of, mutated_text, outcome, say

SAMPLE = ROOT / "benchmarks" / "mutants" / "house.json"
MOST_FAILING = 4  # tests that fail without a mutant too, before it is left unjudged
N_TESTS = 40  # functions that are run: the test that notices is mostly among the first few, and the last ones take long
Entry = dict[str, Any]
DEFS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def room_of(file: str | Path) -> str:
    """Return the first folder of a file below deep/."""
    parts = Path(file).parts
    return parts[0] if len(parts) > 1 else ""


def drawn(sample: int, seed: int, old: list[Entry]) -> Iterator[Entry]:
    """Yield mutants that no older sample has, of files drawn by their lines of code, each room in turn."""
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
                result = mutants_of(f"deep/{file}", left_out, seed)
                places[file] = sorted(result, key=lambda mutant: mutant.key, reverse=True)
            if places[file]:
                mutant = places[file].pop()
                text = as_text(mutant)
                if not any(text.items() <= one.items() for one in old if one["file"] == mutant.module):
                    yield {"seed": seed, "file": mutant.module, "line": mutant.line, "operator": mutant.operator} | text
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


def texts() -> dict[str, str]:
    """Return the text of every module of deep."""
    return {str(path.relative_to(ROOT)): path.read_text(encoding="utf-8") for path in ROOT.glob("deep/**/*.py")}


def near(before: str, after: str, module: str) -> list[str]:
    """Return the tests that share most words with what a mutant changes; a word that few tests have counts more."""
    lines, changed = before.splitlines(), after.splitlines()
    at = next((i for i, (old, new) in enumerate(zip(lines, changed, strict=False)) if old != new), 0)
    defs = [node for node in ast.walk(ast.parse(before)) if isinstance(node, DEFS)]
    around = [
        lines[first_line(node) - 1 : node.end_lineno]
        for node in defs
        if node.lineno <= at + 1 <= (node.end_lineno or 0)
    ]
    weights = Counter(words_of(f"{module} {' '.join(node.name for node in defs)}"))
    for part in [*around, lines[max(at - 3, 0) : at + 4]]:
        weights.update(words_of("\n".join(part)))
    tests = words_of_tests()
    n_tests = Counter(word for words in tests.values() for word in words)
    value = {word: n * math.log(len(tests) / n_tests[word]) ** 2 for word, n in weights.items() if word in n_tests}
    # A long test shares more words with anything; the cube root of its words is between no correction and too much.
    shared = {test: sum(value.get(word, 0) for word in words) / len(words) ** (1 / 3) for test, words in tests.items()}
    return sorted(shared, key=lambda test: -shared[test])[:N_TESTS]


def words_of(text: str) -> set[str]:
    """Return the names of a text, and the words that they consist of."""
    return set(re.findall(r"\w{3,}", text)) | {word.lower() for word in re.findall(r"[A-Za-z][a-z]{2,}", text)}


@cache
def words_of_tests() -> dict[str, set[str]]:
    """Return the words of every test, those of the functions of its file that it names counted in."""
    tests = {}
    for path in sorted(ROOT.glob("tests/**/test_*.py")):
        lines = path.read_text(encoding="utf-8").splitlines()
        defs = [node for node in ast.parse("\n".join(lines)).body if isinstance(node, DEFS)]
        texts_of = {node.name: "\n".join(lines[first_line(node) - 1 : node.end_lineno]) for node in defs}
        for name, text in texts_of.items():
            if name.startswith("test_") and "mark.slow" not in text:
                helpers = [texts_of[one] for one in words_of(text) & texts_of.keys() if not one.startswith("test_")]
                tests[f"{path.relative_to(ROOT)}::{name}"] = words_of(" ".join([path.stem, text, *helpers]))
    return tests


def first_line(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> int:
    """Return the line where a definition begins, its decorators counted in."""
    return min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])


def judged(entry: Entry, files: dict[str, str], limit: int) -> Entry:
    """Return a mutant with its outcome."""
    place = placed(entry, files)
    before, failing = entry.pop("by", None), list[str]()
    if place is None:
        return entry | {"outcome": "gone"}
    entry["limit_s"] = limit
    stages = [[before]] if before else []
    stages.append(near(files[place[0]], place[1], place[0]))
    while stages and len(failing) < MOST_FAILING:
        status = outcome(*place, [*stages[0], *(f"--deselect={name}" for name in failing)], limit)
        if status is None:
            return entry | {"outcome": "late"}
        if status[0] in (0, 5) or (status[0] == 4 and stages[0] == [before]):  # 4: that test is no more
            stages.pop(0)
            continue
        name = status[1] or stages[0][0]
        if (as_it_is := outcome(place[0], None, [name], 3 * limit)) and as_it_is[0] == 0:
            entry.pop("why", None)
            return entry | {"outcome": "noticed", "by": name}
        failing.append(name)
    if stages:
        return entry | {"outcome": "unjudged", "why": f"fail without the mutant: {', '.join(failing)}"}
    return entry | {"outcome": "equivalent" if entry["outcome"] == "equivalent" else "survived"}


def is_open(entry: Entry, limit: int) -> bool:
    """Tell whether nobody has judged a mutant yet, or only in less time than there is now."""
    return entry["outcome"] == "unjudged" or (entry["outcome"] == "late" and entry["limit_s"] < limit)


def judge(entries: list[Entry], args: argparse.Namespace) -> None:
    """Judge what is to be judged until the time is over, the rooms in turn, and write each outcome at once."""
    ends = time.monotonic() + args.seconds
    files = texts()
    waiting = [i for i, entry in enumerate(entries) if args.again or is_open(entry, args.limit_s)]
    seen, turns, writing = Counter[str](), dict[int, int](), Lock()
    for i in waiting:
        room = room_of(Path(entries[i]["file"]).relative_to("deep"))
        turns[i], seen[room] = seen[room], seen[room] + 1

    def one(i: int) -> None:
        if time.monotonic() < ends:
            before = entries[i]["outcome"]
            entries[i] = judged(dict(entries[i]), files, args.limit_s)
            with writing:
                write(entries, args.out)
            after = entries[i]
            say(f"{after['outcome']} (was {before}) {after['file']}:{after['line']} {after.get('by', '')}")

    with ThreadPoolExecutor(args.jobs) as pool:
        list(pool.map(one, sorted(waiting, key=turns.__getitem__)))


def write(entries: list[Entry], path: Path) -> None:
    """Write the samples, a mutant a line."""
    path.parent.mkdir(exist_ok=True)
    lines = ",\n".join(json.dumps(entry, ensure_ascii=False) for entry in entries)
    path.write_text(f"[\n{lines}\n]\n", encoding="utf-8")


def show(entries: list[Entry]) -> None:
    """Print how many of each outcome there are, by room, in each sample."""
    rooms = defaultdict[tuple[int, str], Counter[str]](Counter)
    for entry in entries:
        for room in (room_of(Path(entry["file"]).relative_to("deep")) or "(root)", "all"):
            rooms[entry["seed"], room][entry["outcome"]] += 1
    for (seed, room), counts in sorted(rooms.items(), key=lambda item: (item[0][0], item[0][1] == "all")):
        say(f"seed {seed}  {room:<14}" + ", ".join(f"{n} {name}" for name, n in counts.most_common()))
        if room == "all":
            change = sum(counts[name] for name in ("noticed", "survived", "late"))
            share = counts["noticed"] / max(change, 1)
            say(f"seed {seed}  noticed of those that change behaviour: {counts['noticed']} of {change} ({share:.1%})")


def main() -> None:
    """Draw or judge, and print how many of each outcome there are, by room."""
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("what", choices=("draw", "judge", "show"))
    p.add_argument("--sample", type=int, default=100)
    p.add_argument("--seed", type=int, default=49)
    p.add_argument("--seconds", type=float, default=3600, help="begin no other mutant after that (default: 3600)")
    p.add_argument("--jobs", type=int, default=2)
    p.add_argument("--limit-s", type=int, default=60, help="processor seconds of the tests of a mutant (default: 60)")
    p.add_argument("--again", action="store_true", help="judge those too that have been judged")
    p.add_argument("--out", type=Path, default=SAMPLE, help="where outcomes are written (default: over the samples)")
    args = p.parse_args()
    os.chdir(ROOT)
    sys.path.insert(0, str(ROOT))
    os.environ |= {"OMP_NUM_THREADS": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    entries = json.loads((args.out if args.what == "show" else SAMPLE).read_text(encoding="utf-8"))
    if args.what == "draw":
        fresh = [entry | {"outcome": "unjudged"} for entry in drawn(args.sample, args.seed, entries)]
        write(entries := [*entries, *fresh], args.out)
    elif args.what == "judge":
        load_libraries(tomllib.loads(SETTINGS.read_text(encoding="utf-8"))["libraries"])
        judge(entries, args)
    show(entries)


if __name__ == "__main__":
    main()
