"""Rules that hold for the whole house: names, rooms and sizes."""

import ast
import importlib.util
import re
import sys
from collections import Counter, defaultdict
from functools import cache
from itertools import pairwise
from pathlib import Path
from statistics import median

import deep

ROOT = Path(deep.__file__).parent
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@cache
def trees():
    """Return the parsed source of every file of the package."""
    return {path.relative_to(ROOT.parent): ast.parse(path.read_text(encoding="utf-8")) for path in ROOT.rglob("*.py")}


def module_name(path):
    """Return the dotted name of a file."""
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def definitions(*kinds):
    """Yield (file, node) for every class or function of the package."""
    for path, tree in trees().items():
        yield from ((path, node) for node in ast.walk(tree) if isinstance(node, kinds))


def body_lines(node):
    """Return the number of lines of a function below its docstring."""
    body = node.body[1:] if ast.get_docstring(node) else node.body
    return body[-1].end_lineno - body[0].lineno + 1 if body else 0


def imported(tree):
    """Yield the dotted names of deep's modules that a file imports, wherever in it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def owner(module):
    """Return the package whose private module this is; None where every part of the name is public."""
    parts = module.split(".")
    private = next((i for i, part in enumerate(parts) if part.startswith("_") and not part.startswith("__")), None)
    return None if private is None else ".".join(parts[:private])


def annotations():
    """Yield every annotation of the package as text."""
    for tree in trees().values():
        for node in ast.walk(tree):
            if isinstance(node, FUNCTIONS):
                a = node.args
                for argument in [*a.posonlyargs, *a.args, *a.kwonlyargs, a.vararg, a.kwarg]:
                    if argument is not None and argument.annotation is not None:
                        yield ast.unparse(argument.annotation)
                if node.returns is not None:
                    yield ast.unparse(node.returns)
            elif isinstance(node, ast.AnnAssign):
                yield ast.unparse(node.annotation)


def test_a_class_name_means_one_thing():
    """No class name stands in two places, private ones included."""
    places = defaultdict(set)
    for path, node in definitions(ast.ClassDef):
        places[node.name].add(str(path))
    assert {name: sorted(where) for name, where in places.items() if len(where) > 1} == {}


def test_private_modules_stay_in_their_package():
    """A module whose name begins with an underscore is imported only from inside the package that holds it."""
    reached = [
        f"{module_name(path)} imports {module}"
        for path, tree in trees().items()
        for module in imported(tree)
        if module.startswith("deep") and owner(module) is not None
        if not f"{module_name(path)}.".startswith(f"{owner(module)}.")
    ]
    assert reached == []


def test_functions_and_files_are_short():
    """No function body above 60 lines, no file above 600."""
    long = [f"{path}:{node.lineno} {node.name}" for path, node in definitions(*FUNCTIONS) if body_lines(node) > 60]
    long += [str(path) for path in trees() if len((ROOT.parent / path).read_text(encoding="utf-8").splitlines()) > 600]
    assert long == []


def test_docstrings_name_their_object():
    """A docstring begins with a verb and its object, or a noun; never with "what"."""
    vague = [
        f"{path}:{node.lineno}"
        for path, node in definitions(ast.ClassDef, *FUNCTIONS)
        if re.match(r"(?:Returns? |Yields? )?what\b", ast.get_docstring(node) or "", re.IGNORECASE)
    ]
    assert vague == []


def test_every_parameter_is_explained():
    """Below its name and type, in the docstring of whatever has no underscore before its name."""
    bare = [
        f"{path}:{node.lineno} {node.name}: {name}"
        for path, node in definitions(ast.ClassDef, *FUNCTIONS)
        if not node.name.startswith("_")
        for section in re.findall(r"^Parameters\n-+\n(.+?)(?:\n\n|\Z)", ast.get_docstring(node) or "", re.S | re.M)
        for name, below in pairwise([*section.split("\n"), ""])
        if not name.startswith(" ") and not below.startswith("    ")
    ]
    assert bare == []


def test_any_is_rare():
    """At most one annotation in twenty says `Any`."""
    result = list(annotations())
    assert sum(bool(re.search(r"\bAny\b", text)) for text in result) <= 0.05 * len(result)


def test_studies_are_a_small_part():
    """The studies hold at most a quarter of the lines of code."""
    lines = {
        path: sum(bool(line.strip()) for line in (ROOT.parent / path).read_text(encoding="utf-8").splitlines())
        for path in trees()
    }
    studies = sum(n for path, n in lines.items() if path.parts[1] == "experiments")
    assert studies <= 0.25 * sum(lines.values())


def test_exports_are_listed_one_a_line():
    """A package's list of exports has one line a name, and no name twice."""
    for package in sorted(ROOT.rglob("__init__.pyi")):
        lines = [line for line in package.read_text(encoding="utf-8").splitlines() if line.startswith("from ")]
        assert all(re.fullmatch(r"from \.[\w.]+ import (\w+) as \1", line) for line in lines), package
        assert len(set(lines)) == len(lines), package


def test_private_modules_keep_no_second_list():
    """What a package exports stands in its stub alone."""
    listing = [
        str(path)
        for path, tree in trees().items()
        if path.name.startswith("_") and path.name != "__init__.py"
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    ]
    assert listing == []


def test_the_glossary_is_true():
    """docs/glossary.md has ten words, and each name of the code that it gives exists."""
    text = (ROOT.parent / "docs" / "glossary.md").read_text(encoding="utf-8")
    assert len(re.findall(r"^\| \*\*", text, re.MULTILINE)) == 10
    classes = {node.name for _, node in definitions(ast.ClassDef)}
    named = re.findall(r"`([A-Z]\w+)(?:\.\w+)?`", text)
    assert [name for name in named if name not in classes] == []


def alias_of(node):
    """Return the name of a module's type alias; None where a statement is none."""
    target = (
        node.targets[0] if isinstance(node, ast.Assign) else node.target if isinstance(node, ast.AnnAssign) else None
    )
    if not isinstance(target, ast.Name) or not re.match(r"[A-Z][A-Za-z]*[a-z]", target.id):
        return None
    union = isinstance(node.value, ast.BinOp) and isinstance(node.value.op, ast.BitOr)
    return target.id if union or isinstance(node.value, ast.Subscript | ast.Attribute) else None


def test_an_alias_names_what_nothing_else_names():
    """A capitalised type alias shares its name with no class and with no alias of another module."""
    places = defaultdict(set)
    for path, tree in trees().items():
        for node in (inner for outer in tree.body for inner in (outer.body if isinstance(outer, ast.If) else [outer])):
            if (name := alias_of(node)) is not None:
                places[name].add(str(path))
    for path, node in definitions(ast.ClassDef):
        if node.name in places:
            places[node.name].add(str(path))
    assert {name: sorted(where) for name, where in places.items() if len(where) > 1} == {}


def test_an_exported_function_means_one_thing():
    """No two packages export different functions or classes of one name; `add_arguments` and `run` are of commands."""
    kinds = (ast.ClassDef, *FUNCTIONS)
    defined = {(path, node.name) for path, tree in trees().items() for node in tree.body if isinstance(node, kinds)}
    places = defaultdict(set)
    # A door that is code exports what it defines.
    for path, name in defined:
        if path.name == "__init__.py" and not name.startswith("_"):
            places[name].add(str(path))
    for stub in sorted(ROOT.rglob("__init__.pyi")):
        for module, name in re.findall(
            r"^from \.([\w.]+) import (\w+) as", stub.read_text(encoding="utf-8"), re.MULTILINE
        ):
            path = (stub.parent / module.replace(".", "/")).with_suffix(".py").relative_to(ROOT.parent)
            if (path, name) in defined:
                places[name].add(str(path))
    same = {name: sorted(where) for name, where in places.items() if len(where) > 1}
    assert set(same) <= {"add_arguments", "run"}, same


def test_tests_that_are_named_exist():
    """docs/testing.md and benchmarks/mutants.toml name files of tests, and tests in them, that are there."""
    missing = []
    for page in ("docs/testing.md", "benchmarks/mutants.toml"):
        text = (ROOT.parent / page).read_text(encoding="utf-8")
        for path, name in re.findall(r"[`\"](?:tests/)?([\w/]*test_\w+\.py)(?:::(\w+))?", text):
            file = ROOT.parent / "tests" / path
            if not file.is_file() or f"def {name}" not in file.read_text(encoding="utf-8"):
                missing.append(f"{page}: {path} {name}")
    assert missing == []


def counter():
    """Return the committed counter of lines of code."""
    spec = importlib.util.spec_from_file_location("lines", ROOT.parent / "benchmarks" / "lines.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["lines"] = module
    spec.loader.exec_module(module)
    return module


SHORT = {
    "__init__.py": "the door of a room",
    "__main__.py": "a room that is run as a module",
    "console/_preload.py": "imported for its effect: libraries that every process of work has",
    "integrations/pairs/_prepare.py": "a command",
    "integrations/skill.py": "a command",
    "commands/export.py": "a command",
    "commands/report.py": "a command",
}
"""Files that may be short, by name or by path, and why."""


CEILINGS = {
    "(root)": 903,
    "_util": 2_128,
    "asking": 2_510,
    "calibration": 802,
    "commands": 726,
    "console": 1_104,
    "datasets": 2_368,
    "ensembles": 770,
    "evaluate": 2_656,
    "experiments/loo": 1_623,
    "features": 1_130,
    "llm": 3_027,
    "model": 5_224,
    "prompt_pool": 2_098,
    "report": 1_439,
}
"""Lines of code that each room of the core may have, the main job among them. Raising one takes a decision record."""

MOST_OF_CORE, MOST_OF_GUESTS, MOST_FILES = 28_508, 14_544, 229
"""Lines of the whole core; of the guests, their scripts of pages counted in; files of Python."""


def test_rooms_stay_within_their_ceilings():
    """Lines of code, neither blank nor comment nor docstring: what is added to a room is first made room for in it."""
    rooms, guests = Counter(), Counter()
    for path, result in counter().counted_files(ROOT).items():
        guest = counter().guest_of(path)
        if guest is None or guest == "experiments/loo":
            rooms[guest or (path.parts[0] if len(path.parts) > 1 else "(root)")] += result.code
        else:
            guests[guest] += result.code
    for path in (*(ROOT / "integrations").rglob("*.js"), *(ROOT / "experiments").rglob("*.js")):
        lines = map(str.strip, path.read_text(encoding="utf-8").splitlines())
        guests["scripts"] += sum(bool(line) and not line.startswith("//") for line in lines)
    assert {room: n for room, n in rooms.items() if n > CEILINGS[room]} == {}
    assert rooms.total() <= MOST_OF_CORE
    assert guests.total() <= MOST_OF_GUESTS
    assert max(guests.values()) <= 1_600


def test_files_hold_a_topic():
    """No more files than there are topics, none a splinter but for a reason, and few lines that import."""
    files = counter().counted_files(ROOT)
    assert len(files) <= MOST_FILES
    short = {path for path, result in files.items() if 0 < result.code < 40}
    assert [str(path) for path in short if not {path.name, path.as_posix()} & set(SHORT)] == []
    assert [name for name in SHORT if not any(name in (path.name, path.as_posix()) for path in short)] == []
    assert median(result.code for result in files.values() if result.code) >= 90
    code, imports = (sum(getattr(result, name) for result in files.values()) for name in ("code", "imports"))
    assert imports <= 0.085 * code


def test_rooms_that_contributing_names_exist():
    """Of its table of the house, the files and folders of the first column."""
    text = (ROOT.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")
    table = text.partition("| room | what it does |\n")[2].partition("\n\n")[0]
    rooms = [row.split("|")[1] for row in table.splitlines()]
    named = [name for room in rooms for name in re.findall(r"`([\w/]+(?:\.py|/))`", room)]
    assert len(named) > 15
    assert [name for name in named if not (ROOT / name).exists()] == []
