"""How much code there is: lines that are neither blank, nor a docstring, nor a comment.

    python benchmarks/lines.py [--files]

Counts `deep/` as a whole, its core (without the guests `experiments/` and `integrations/`) and each guest; the median
file; the share of lines that import; private functions; `--files` lists every file, the shortest first. The bounds that
the house keeps to stand in ``tests/test_house.py``, which counts with the same functions.
"""

import argparse
import ast
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parent.parent / "deep"
GUESTS = ("experiments", "integrations")
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class Counted:
    """Lines of code of a file, and how many of them import."""

    code: int
    imports: int


def count(text: str) -> Counted:
    """Count the lines of code of a module's text."""
    tree = ast.parse(text)
    docstrings, imports = set[int](), set[int]()
    for node in ast.walk(tree):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node) is not None:
            docstrings.update(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
        elif isinstance(node, ast.Import | ast.ImportFrom):
            imports.update(range(node.lineno, (node.end_lineno or 0) + 1))
    lines = enumerate(text.splitlines(), 1)
    code = {i for i, line in lines if line.strip() and not line.strip().startswith("#") and i not in docstrings}
    return Counted(len(code), len(code & imports))


def counted_files(root: Path = ROOT) -> dict[Path, Counted]:
    """Return the count of every Python file below a folder, by its path from there."""
    return {path.relative_to(root): count(path.read_text(encoding="utf-8")) for path in sorted(root.rglob("*.py"))}


def guest_of(path: Path) -> str | None:
    """Return the guest that a file belongs to: a study, the encoders or the other integrations; None of the core."""
    if path.parts[0] not in GUESTS:
        return None
    return "/".join(path.parts[:2]) if len(path.parts) > 2 else path.parts[0]


def main() -> None:
    """Count and print."""
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--files", action="store_true", help="list every file, the shortest first")
    args = p.parse_args()
    files = counted_files()
    rooms, guests = Counter[str](), Counter[str]()
    for path, result in files.items():
        guest = guest_of(path)
        rooms[path.parts[0] if len(path.parts) > 1 else "(root)"] += result.code
        guests.update({guest: result.code} if guest else {})
    code, imports = (sum(getattr(result, name) for result in files.values()) for name in ("code", "imports"))
    core = sum(result.code for path, result in files.items() if guest_of(path) is None)
    short = sum(0 < result.code < 40 for result in files.values())
    lines = [
        f"deep/: {code:,} lines of code in {len(files)} files; core {core:,}",
        f"median file {median(result.code for result in files.values() if result.code):g}, {short} files under 40; "
        f"import lines {imports:,} ({100 * imports / code:.1f} %)",
    ]
    for title, table in (("room", rooms), ("guest", guests)):
        lines += [f"  {title} {name:<26} {n:>7,}" for name, n in table.most_common()]
    if args.files:
        lines += [f"{result.code:>5} {path}" for path, result in sorted(files.items(), key=lambda x: x[1].code)]
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
