"""Lexical checks as code of the standard library, made of their own source, for a file that runs without deep."""

import ast
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pprint import pformat

from deep.features.lexical._registry import LEXICAL
from deep.features.lexical._words import WORD_LISTS

PACKAGE = "deep.features.lexical"
MAIN = ("Pair", "TokenizedText", "cut_off", "too_long")
"""What the code that is written around the checks calls."""

GIVEN = frozenset(("ABSTAIN", "Judgment", "LexicalCheck", "WORD_LISTS", "pairwise"))
"""Names that have another definition in the file: `lexical_code` writes WORD_LISTS, its caller the others."""

WIDTH = 116

_EXAMPLES = re.compile(r'\n\n *Examples\n *-{8}\n.*?(?=\n *""")', re.DOTALL)
_ONE_LINE = re.compile(r'^( *"""[^"\n]+)\n *"""', re.MULTILINE)
_STRICT = re.compile(r", strict=(?:True|False)\)")
_REMARK = re.compile(r"  # (?:type: ignore|noqa)\S*[^\n]*")


@dataclass(eq=False)
class _Part:
    """One definition of a module: its text, the names that it uses, and where it stands."""

    module: str
    line: int
    text: str
    uses: set[str] = field(default_factory=set)


@dataclass
class _Module:
    """The definitions of a module by name, the modules that it imports from, and its names from elsewhere."""

    parts: dict[str, _Part] = field(default_factory=dict)
    inner: list[str] = field(default_factory=list)
    outer: dict[str, str] = field(default_factory=dict)


def lexical_code(names: Iterable[str]) -> tuple[list[str], str]:
    """Return the source of some checks and of all that they use, for Python 3.9 or later.

    The text is that of deep's own modules without their imports, so that there is one implementation to keep.

    Parameters
    ----------
    names : iterable of str
        Keys of `LEXICAL`.

    Returns
    -------
    imports : list of str
        Statements; all of them of the standard library.
    code : str
        It expects ``ABSTAIN``, ``Judgment`` (of keywords as :class:`deep.Judgment`), ``LexicalCheck`` and
        ``pairwise``, and that annotations are not evaluated. A check judges by ``_judge(Pair(source, claim))``.

    Examples
    --------
    >>> from deep.features.lexical import lexical_code
    >>> imports, code = lexical_code(["quotes"])
    >>> imports[0]
    'import re'
    >>> "class Quotes(LexicalCheck):" in code, "class Dates" in code
    (True, False)
    """
    wanted = [LEXICAL[name] for name in names]
    modules = {name: _module(name) for name in _ordered([check.__module__ for check in wanted])}
    kept = _reached({check.__name__ for check in wanted} | set(MAIN), modules)
    order = list(modules)
    parts = sorted(kept.values(), key=lambda part: (order.index(part.module), part.line))
    text = re.sub(r"\n{4,}", "\n\n\n", "\n".join(map(_shown, dict.fromkeys(parts)))).strip("\n")
    return _imports(parts, modules), f"{_word_lists(text)}\n\n\n{text}\n"


def _ordered(wanted: Iterable[str]) -> list[str]:
    """Return modules of this package, each behind those that it imports."""
    order: list[str] = []

    def visit(name: str) -> None:
        if name not in order:
            for other in _module(name).inner:
                visit(other)
            order.append(name)

    for name in (f"{PACKAGE}._base", *wanted):
        visit(name)
    return order


@cache
def _module(name: str) -> _Module:
    """Read a module of this package apart."""
    source = files(PACKAGE).joinpath(f"{name.rpartition('.')[2]}.py").read_text(encoding="utf-8")
    lines, found, end = source.splitlines(), _Module(), 0
    body = ast.parse(source).body
    for node in body:
        start, end = end, node.end_lineno or 0
        if isinstance(node, ast.ImportFrom | ast.Import):
            _add_import(found, node)
        elif isinstance(node, ast.Expr):  # what a string says of the name above it, or of the module
            if found.parts:
                next(reversed(found.parts.values())).text += "\n" + "\n".join(lines[start:end])
        else:
            text = "\n".join(lines[start:end]).strip("\n")
            part = _Part(name, start, text, {n.id for n in ast.walk(node) if isinstance(n, ast.Name)})
            found.parts.update(dict.fromkeys(_defined(node), part))
    return found


def _add_import(module: _Module, node: ast.ImportFrom | ast.Import) -> None:
    if isinstance(node, ast.Import):
        module.outer.update({alias.name: "" for alias in node.names})
    elif str(node.module).startswith(PACKAGE):
        module.inner.append(str(node.module))
    elif str(node.module).partition(".")[0] in sys.stdlib_module_names:
        module.outer.update({alias.name: str(node.module) for alias in node.names})


def _defined(node: ast.stmt) -> Iterator[str]:
    """Yield the names that a statement defines."""
    if isinstance(node, ast.ClassDef | ast.FunctionDef):
        yield node.name
    elif isinstance(node, ast.Assign | ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        yield from (n.id for target in targets for n in ast.walk(target) if isinstance(n, ast.Name))


def _reached(names: set[str], modules: Mapping[str, _Module]) -> dict[str, _Part]:
    """Return the definitions of some names, and of all that those use in turn."""
    known: dict[str, _Part] = {}
    for module in modules.values():
        for name, part in module.parts.items():
            if name in known and known[name].text != part.text:
                raise AssertionError(f"{name} is defined in {known[name].module} and in {part.module}")
            known.setdefault(name, part)
    kept: dict[str, _Part] = {}
    left = names & known.keys()
    while left:
        name = left.pop()
        kept[name] = known[name]
        left |= (known[name].uses & known.keys()) - kept.keys() - GIVEN
    return kept


def _shown(part: _Part) -> str:
    """Return the text of a definition, with the blank lines around it that a module has."""
    text = _REMARK.sub("", _STRICT.sub(")", _ONE_LINE.sub(r'\1"""', _EXAMPLES.sub("", part.text))))
    if text.startswith(("class ", "def ", "@")):
        return f"\n\n{text}\n\n"
    return f"{text}\n" if text.endswith('"""') else text


def _imports(parts: Iterable[_Part], modules: Mapping[str, _Module]) -> list[str]:
    """Return the import statements of the names that some definitions use."""
    used: dict[str, set[str]] = {}
    for part in parts:
        outer = modules[part.module].outer
        for name in part.uses & outer.keys() - GIVEN:
            used.setdefault(outer[name], set()).add(name)
    plain = [f"import {name}" for name in sorted(used.pop("", set()))]
    return plain + [f"from {module} import {', '.join(sorted(names))}" for module, names in sorted(used.items())]


def _word_lists(text: str) -> str:
    """Return the lists of `words.toml` that some code reads."""
    lists = {name: _joined(words) for name, words in WORD_LISTS.items() if f'WORD_LISTS["{name}"]' in text}
    return f"WORD_LISTS = {pformat(lists, width=WIDTH, sort_dicts=False)}"


def _joined(words: object) -> object:
    """Return word lists with one blank between words."""
    if isinstance(words, str):
        return " ".join(words.split())
    if isinstance(words, list):
        return [_joined(one) for one in words]
    return {name: _joined(one) for name, one in words.items()} if isinstance(words, dict) else words
