"""Break the mathematics in one place at a time, and count how often its tests notice.

    python benchmarks/mutants.py [--sample 300] [--jobs 2] [--module deep/calibration/_calibrators.py ...]

cosmic-ray says where its operators can change a module; a sample is drawn from all places at once, so that every
module has its share, by a hash of the changed line: a change elsewhere leaves it as it was. Each mutant is imported
in a process of its own, in place of the module, and the tests that `mutants.toml` names for the module are run until
one fails. Nothing is written to the working tree.
"""

import argparse
import ast
import contextlib
import difflib
import hashlib
import importlib
import importlib.abc
import importlib.util
import multiprocessing
import os
import re
import resource
import signal
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

from measuring import Children

ROOT = Path(__file__).resolve().parents[1]
SETTINGS = Path(__file__).with_suffix(".toml")
GRACE = 10
"""Processor seconds that a mutant may take beyond three times its tests' on the module as it is."""

PATIENCE = 600.0
"""Seconds after which a mutant that waits for something is ended."""


@dataclass(frozen=True)
class Mutant:
    """One change: the operator's n-th place in a module, the line it stands on, and what it is drawn by."""

    module: str
    operator: str
    occurrence: int
    line: int
    key: str

    def __str__(self) -> str:
        return f"{self.module}:{self.line} {self.operator}#{self.occurrence}"


class MutatedModule(importlib.abc.MetaPathFinder, importlib.abc.SourceLoader):
    """Imports one module from a given text, all others as ever."""

    def __init__(self, name: str, path: Path, text: str) -> None:
        self.name, self.path, self.text = name, path, text

    def find_spec(self, fullname: str, *_: object) -> ModuleSpec | None:
        """Return the specification of the module that is replaced, None for any other."""
        if fullname != self.name:
            return None
        return importlib.util.spec_from_file_location(fullname, self.path, loader=self)

    def get_filename(self, _: str) -> str:
        """Return the path of the module as it stands on disk."""
        return str(self.path)

    def get_data(self, _: str) -> bytes:
        """Return the mutated text, whichever file is asked for: there is no compiled one."""
        return self.text.encode()


def mutants_of(module: str, left_out: re.Pattern[str], seed: int) -> Iterator[Mutant]:
    """Yield every mutant of a module, but those of annotations and of the operators left out."""
    from cosmic_ray import plugins
    from cosmic_ray.ast import ast_nodes, get_ast_from_path

    tree, text = get_ast_from_path(ROOT / module), (ROOT / module).read_text(encoding="utf-8")
    annotated, lines = list(_annotations(text)), text.splitlines()
    for name in plugins.operator_names():
        kind = plugins.get_operator(name)
        if kind.arguments() or left_out.fullmatch(name.removeprefix("core/")):
            continue
        operator = kind()
        places = ((node, start) for node in ast_nodes(tree) for start, _ in operator.mutation_positions(node))
        before = (0, 0)
        for occurrence, (node, (line, column)) in enumerate(places):
            again, before = (line, column) == before, (line, column)
            lone_star = getattr(node.parent, "type", "") == "parameters"
            if not lone_star and not any(first <= before < last for first, last in annotated):
                place = f"{seed} {module} {name} {column} {again} {lines[line - 1]}"
                yield Mutant(module, name, occurrence, line, hashlib.sha256(place.encode()).hexdigest())


def _annotations(text: str) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """Yield where annotations begin and end: they are never evaluated to a number."""
    for node in ast.walk(ast.parse(text)):
        for field in ("annotation", "returns"):
            result = getattr(node, field, None)
            if result is not None:
                yield (result.lineno, result.col_offset), (result.end_lineno, result.end_col_offset)


def mutated_text(mutant: Mutant) -> str:
    """Return the text of the module with the mutant's change."""
    from cosmic_ray import plugins
    from cosmic_ray.mutating import mutate_code

    text = (ROOT / mutant.module).read_text(encoding="utf-8")
    return str(mutate_code(text, plugins.get_operator(mutant.operator)(), mutant.occurrence))


def changed_lines(mutant: Mutant) -> str:
    """Return the lines that a mutant takes out and puts in."""
    before = (ROOT / mutant.module).read_text(encoding="utf-8").splitlines()
    lines = difflib.unified_diff(before, mutated_text(mutant).splitlines(), lineterm="", n=0)
    return "\n".join(f"    {line}" for line in lines if re.match(r"[+-](?![+-])", line))


class FirstFailure:
    """A plugin of pytest that keeps the name of what failed."""

    name = ""

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Keep the test that failed."""
        self.name = self.name or (report.nodeid if report.failed else "")

    pytest_collectreport = pytest_runtest_logreport


def run_tests(module: str, text: str | None, tests: Sequence[str], limit: int, result: Any) -> None:
    """Run tests with a module's text replaced, and send the status of pytest and the test that failed."""
    import pytest

    os.setsid()  # a test that signals its process group hits nobody else, and what it leaves running ends with it
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.dup2(1, 2)
    sys.dont_write_bytecode = True
    if text is not None:
        name = module.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        sys.meta_path.insert(0, MutatedModule(name, ROOT / module, text))
    first = FirstFailure()
    status = pytest.main(["-x", "-q", "--tb=no", "-p", "no:cacheprovider", "-m", "not slow", *tests], plugins=[first])
    result.send((int(status), first.name))
    os._exit(0)


def outcome(module: str, text: str | None, tests: Sequence[str], limit: int) -> tuple[int, str] | None:
    """Return what `run_tests` sends, None where it took too long or died."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=run_tests, args=(module, text, tests, limit, theirs))
    process.start()
    theirs.close()
    try:
        result = ours.recv() if ours.poll(PATIENCE) else None
    except EOFError:
        result = None
    process.kill()
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.join()
    return result


def load_libraries(names: Sequence[str]) -> None:
    """Import what tests need once, before processes are forked; nothing of deep is among it."""
    for name in names:
        importlib.import_module(name)


def time_limits(modules: dict[str, list[str]]) -> dict[str, int]:
    """Return the processor seconds that each module's mutants may take, from its tests on the module as it is."""
    limits = {}
    for module, tests in modules.items():
        with Children() as children:
            result = outcome(module, None, tests, int(PATIENCE))
        if result is None or result[0] != 0:
            raise SystemExit(f"The tests of {module} fail as it is: {' '.join(tests)}")
        limits[module] = int(3 * children.processor_s) + GRACE
        say(f"{module}: tests pass in {children.processor_s:.1f} processor seconds")
    return limits


def say(line: str) -> None:
    """Write a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def report(drawn: Sequence[Mutant], found: Sequence[int | None], sizes: Counter[str]) -> None:
    """Write the survivors, and killed of drawn by module."""
    survivors = [mutant for mutant, status in zip(drawn, found, strict=True) if status == 0]
    late = [mutant for mutant, status in zip(drawn, found, strict=True) if status is None]
    say("\nEnded by the time limit, which counts as killed:")
    for mutant in late:
        say(f"{mutant}\n{changed_lines(mutant)}")
    say("\nSurvivors:")
    for mutant in survivors:
        say(f"{mutant}\n{changed_lines(mutant)}")
    say("\n| module | mutants | drawn | killed |\n|---|---|---|---|")
    alive, by_module = Counter(m.module for m in survivors), Counter(m.module for m in drawn)
    for module, n in by_module.items():
        say(f"| `{module}` | {sizes[module]} | {n} | {n - alive[module]} |")
    killed = len(drawn) - len(survivors)
    say(f"\nkilled {killed} of {len(drawn)} ({killed / len(drawn):.1%}; {len(late)} by the time limit), ")
    say(f"survived {len(survivors)}, of {sizes.total()} mutants in all")


def main() -> None:
    """Draw mutants, test them, and write what survived."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    settings: dict[str, Any] = tomllib.loads(SETTINGS.read_text(encoding="utf-8"))
    parser.add_argument("--sample", type=int, default=settings["sample"], help="mutants to draw; 0 for all")
    parser.add_argument("--seed", type=int, default=settings["seed"])
    parser.add_argument("--jobs", type=int, default=2, help="mutants tested at a time")
    parser.add_argument("--module", action="append", help="only this module (may be repeated)")
    arguments = parser.parse_args()
    os.chdir(ROOT)
    sys.path.insert(0, str(ROOT))
    os.environ |= {"OMP_NUM_THREADS": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    modules = {name: tests for name, tests in settings["modules"].items() if name in (arguments.module or [name])}
    load_libraries(settings["libraries"])
    left_out = re.compile("|".join(settings["left_out"]))
    mutants = [mutant for module in modules for mutant in mutants_of(module, left_out, arguments.seed)]
    sizes = Counter(mutant.module for mutant in mutants)
    chosen = sorted(mutants, key=lambda mutant: mutant.key)[: arguments.sample or None]
    drawn = sorted(chosen, key=mutants.index)
    limits = time_limits({module: modules[module] for module in dict.fromkeys(mutant.module for mutant in drawn)})

    def test(mutant: Mutant) -> int | None:
        result = outcome(mutant.module, mutated_text(mutant), modules[mutant.module], limits[mutant.module])
        status = result and result[0]
        say(f"{'SURVIVED' if status == 0 else 'late' if status is None else 'killed'} {mutant}")
        return status

    with ThreadPoolExecutor(arguments.jobs) as pool:
        result = list(pool.map(test, drawn))
    report(drawn, result, sizes)


if __name__ == "__main__":
    main()
