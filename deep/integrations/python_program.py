"""Python by itself: a model as a file of the standard library, lexical checks from their source; and for Langfuse."""

import ast
import re
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from importlib.resources import files
from pathlib import Path
from pprint import pformat
from string import Template

import numpy as np
import numpy.typing as npt

from deep import __version__
from deep._util.files import whole_file
from deep._util.odds import P_MIN
from deep.ensembles import BETWEEN
from deep.exceptions import InputError
from deep.features.lexical import LEXICAL, WORD_LISTS
from deep.judges import parse_voter
from deep.model.file import MAX_TABLE_VOTERS, Model, pattern_grid, pattern_text
from deep.model.score import LIMIT, Part, VoteForest, VoteSum, column_lines, exported_columns

IN_A_LINE = 8
"""Numbers."""

TEXT_LINE = """, or
a text: {"item_id": "1", "source": "It rained on Monday and Tuesday.", "claim": "It rained on Monday."}."""

TEXT_HEAD = """The checks of CHECKS read texts; what is written of a
text also holds `judges`: the vote of each check, or the reason why there is none, with its rationale and evidence."""

SCORE_LINE = """\
    if "source" in item or "claim" in item:
        if not item.keys().isdisjoint(VOTERS):
            raise ValueError("a line must hold votes or a text, not both")
        if "example_id" in item:
            names["item_id"] = item["example_id"]
        return {**names, **score_text(item.get("source"), item.get("claim"), item.get("question"))}
"""


def export_python(model: Model, out: Path) -> str | None:
    """Write a program that reads votes or texts as JSON lines and writes P(consistent), its interval and the decision.

    It gives what `deep score` gives an item by itself, as :meth:`Model.score` with `streamed`: up to 10 voters to the
    last bit, from a table of all patterns; above, from the sums and trees of the model, to 1e-12. Where all voters are
    lexical checks of this version of deep, it reads texts too: the checks are written into it.

    Parameters
    ----------
    model : Model
        Of votes alone. Above 10 voters no chain, which would have to be fitted again.
    out : Path
        Readable code of the standard library of Python 3.9 or later.

    Returns
    -------
    str or None
        Why it reads no texts, with the voter; None where it does.

    Raises
    ------
    InputError
        The model cannot be written down so. Nothing is written then.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from deep.datasets import simulate_votes
    >>> from deep.integrations.python_program import export_python
    >>> from deep.model import fit
    >>> model = fit(simulate_votes(0), sizes=[2], ensembler="LogisticRegression", calibrator="platt")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     why = export_python(model, Path(folder, "judge.py"))
    ...     code = Path(folder, "judge.py").read_text(encoding="utf-8")
    >>> why
    "'...' is no lexical check"
    >>> here = {"__name__": "judge"}
    >>> exec(code, here)
    >>> p = here["score"]({model.voter_names[0]: 1})["p_consistent"]
    >>> bool(p == model.score([[1, -1]], streamed=True)[0])
    True
    """
    code, why = python_code(model)
    with whole_file(out) as scratch:
        scratch.write_text(code, encoding="utf-8", newline="\n")
    return why


def python_code(model: Model) -> tuple[str, str | None]:
    """Return the program that `export_python` writes, and why it reads no texts."""
    _check(model)
    wide = len(model.voters) > MAX_TABLE_VOTERS
    scorer = _filled("sum", _sum_values(model)) if wide else _filled("table", {"table": _table(model)})
    why = _no_texts(model.voter_names)
    imports = ["import json", "import os", "import sys", *(["import math"] if wide else [])]
    values = dict(VOTES_ALONE) if why else _checks(model.voter_names)
    more = values.pop("more_imports").splitlines()
    scorers = [part.strip("\n") for part in (values.pop("checks"), scorer) if part]
    values |= {"imports": _sorted_imports([*imports, *more]), "scorer": "\n\n\n".join(scorers)}
    return _filled("judge", values | _head(model)), why


def _sorted_imports(lines: Iterable[str]) -> str:
    """Return import statements, those of modules before those of names."""
    text = "\n".join(sorted(dict.fromkeys(lines), key=lambda line: (line.startswith("from"), line)))
    future = "from __future__ import annotations"
    return f"{future}\n\n" + text.replace(f"\n{future}", "") if future in text else text


def _no_texts(voters: Sequence[str]) -> str | None:
    """Return why texts cannot be judged by the standard library, with the first voter that needs more."""
    for voter in voters:
        name = parse_voter(voter).name
        if not name.startswith("lexical-"):
            return f"{voter!r} is no lexical check"
        check = LEXICAL.get(name.removeprefix("lexical-"))
        if check is None or check().voter() != voter:
            return f"{voter!r} is a check of another version of deep"
    return None


VOTES_ALONE = {
    "text": "It reads no texts: give the votes of the model's judges, lexical checks included.",
    "in_python": "`from judge import score`",
    "or_text": ".",
    "score_line": "",
    "score_text": "",
    "checks": "",
    "more_imports": "",
}
"""What fills the places for texts in a file that reads none."""


def _checks(voters: Sequence[str]) -> dict[str, str]:
    """Return the values of the places for texts, with the source of the checks."""
    checks = {voter: LEXICAL[parse_voter(voter).name.removeprefix("lexical-")] for voter in voters}
    imports, code = lexical_code([check.name for check in checks.values()])
    table = "\n".join(f"    {voter!a}: {check.__name__}()," for voter, check in checks.items())
    return {
        "text": TEXT_HEAD,
        "in_python": "`from judge import score, score_text`",
        "or_text": TEXT_LINE,
        "more_imports": "\n".join(
            ["from __future__ import annotations", "import itertools", "import typing", *imports]
        ),
        "checks": _filled("checks", {"code": code.strip("\n"), "checks": table}).strip("\n"),
        "score_text": _filled("text", {}).rstrip("\n") + "\n",
        "score_line": SCORE_LINE,
    }


def _check(model: Model) -> None:
    if model.score_names:
        raise InputError(
            f"`model` must be one of votes alone to be Python. Got one of soft scores: {', '.join(model.score_names)}. "
            "Fit one without --scores."
        )
    wide = len(model.voters) > MAX_TABLE_VOTERS
    if wide and not all(isinstance(part.scorer, VoteSum | VoteForest) for part in model.blend.parts):
        raise InputError(
            f"`model` must have at most {MAX_TABLE_VOTERS} voters to be Python where it is a chain, which is fitted "
            f"again when it is read. Got {len(model.voters)}. Fit one with smaller --sizes."
        )


def _filled(name: str, values: Mapping[str, object]) -> str:
    """Return a template with its names filled in; a value is never read as a template."""
    template = resources.files("deep.integrations").joinpath("templates", f"{name}.txt").read_text(encoding="utf-8")
    return Template(template).substitute(values)


def _head(model: Model) -> dict[str, str]:
    """Return the values of the head: a name is a literal of ASCII, so that none is ever code."""
    prior = model.prior
    share = f"{100 * prior.estimate:.1f} % consistent ({100 * prior.low:.1f} to {100 * prior.high:.1f})"
    whose = "a dataset like the mean training one" if model.target is None else "the dataset that it was adapted to"
    about = {
        "method": model.method,
        "training_datasets": [*_names(model.report.get("training_datasets"))],
        "target": model.target,
        "prior": prior.estimate,
        "prior_low": prior.low,
        "prior_high": prior.high,
        "prior_warning": prior.warning,
    }
    exported = exported_columns()
    return {
        "version": __version__,
        "prior": f"of\n{whose}, {share}.",
        "rule": textwrap.fill(model.rule.sentence(model.threshold()).capitalize() + ".", 119),
        "threshold": repr(model.threshold()),
        "about": "\n".join(f"    {key!r}: {value!a}," for key, value in about.items()),
        "voters": "\n".join(f"    {name!a}," for name in model.voter_names),
        "meanings": "\n".join(f"    {line}" for line in column_lines(exported.values())),
        "columns": "\n".join(f'        "{name}": {column.program},' for name, column in exported.items()),
    }


def _names(found: object) -> Iterable[str]:
    return map(str, found) if isinstance(found, Mapping) else ()


def _table(model: Model) -> str:
    """Return a line a pattern: its votes, P, the bounds."""
    patterns = pattern_grid(len(model.voters))
    columns = model.scores_at(model.contexts, evidence=model.every_pattern).columns(["p_consistent", "p_low", "p_high"])
    rows = zip(pattern_text(patterns), *(values.tolist() for values in columns.values()), strict=True)
    return "\n".join(f"{text} {p!r} {low!r} {high!r}" for text, p, low, high in rows)


def _sum_values(model: Model) -> dict[str, object]:
    """Return the numbers of a model whose patterns are too many for a table."""
    parts, correction = model.blend.parts, model.correction
    prior = model.prior if correction is None else correction.prior
    intercept, slope, misfit, covariance = (
        (0.0, 1.0, model.misfit, model.misfit.second_moment)
        if correction is None
        else (correction.intercept, correction.slope, correction.misfit, correction.covariance)
    )
    values = {
        "offset": model.blend.offset(model.contexts),
        "prior_intercept": prior.threshold,
        "prior_slope": prior.slope,
        "intercept": intercept,
        "slope": slope,
        "v_0": covariance[0, 0],
        "v_01": covariance[0, 1],
        "v_1": covariance[1, 1],
        "v_cell": misfit.cell_spread**2,
        "quantile": misfit.quantile,
        "p_min": P_MIN,
        "limit": LIMIT,
        "no_vote": BETWEEN,
    }
    return {name: repr(float(value)) for name, value in values.items()} | {
        "corrected": correction is not None,
        "sums": "\n".join(_sum(part, part.scorer) for part in parts if isinstance(part.scorer, VoteSum)),
        "forests": "\n".join(_forest(part, part.scorer) for part in parts if isinstance(part.scorer, VoteForest)),
    }


def _sum(part: Part, scorer: VoteSum) -> str:
    linear = scorer.linear
    return _entry(part, {"intercept": float(linear.intercept)}, {"ones": linear.ones, "zeros": linear.zeros})


def _forest(part: Part, scorer: VoteForest) -> str:
    return _entry(part, {}, scorer.trees.arrays())


def _entry(part: Part, numbers: Mapping[str, float], arrays: Mapping[str, npt.NDArray[np.generic]]) -> str:
    """Return a dict of a part, a line for a number, and some for an array."""
    known = {"name": ascii(part.name), "slope": repr(float(part.slope))}
    known |= {name: repr(value) for name, value in numbers.items()}
    known |= {name: _wrapped(values.tolist()) for name, values in arrays.items()}
    return "\n".join(["    {", *(f"        {name!r}: {text}," for name, text in known.items()), "    },"])


def _wrapped(values: list[float]) -> str:
    """Return a list, a few numbers a line."""
    rows = (values[start : start + IN_A_LINE] for start in range(0, len(values), IN_A_LINE))
    lines = "\n".join(f"            {', '.join(map(repr, row))}," for row in rows)
    return f"[\n{lines}\n        ]"


PACKAGE = "deep.features.lexical"
MAIN = ("TokenizedText", "cut_off", "paired", "too_long")
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
        ``pairwise``, and that annotations are not evaluated. A check judges by ``_judge``, given what ``paired`` makes
        of the texts.

    Examples
    --------
    >>> from deep.integrations.python_program import lexical_code
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


LARGEST = 256_000
"""Bytes of source code that Langfuse takes."""

_FUTURE = "from __future__ import annotations\n\n"

_EVALUATE = '''
def text_in(value, keys):
    """Find a text: the value itself, passages below each other, or the first of some keys of an object."""
    if isinstance(value, str):
        return value
    if isinstance(value, (list, tuple)) and all(isinstance(part, str) for part in value):
        return "\\n\\n".join(value)
    if isinstance(value, dict):
        return next((text for text in (text_in(value.get(key), ()) for key in keys) if text), "")
    return ""


def found_in(observation):
    """Score what an observation holds: metadata["votes"], or source and claim."""
    metadata = observation.metadata if isinstance(observation.metadata, dict) else {}
    if metadata.get("votes") is not None:
        return score(metadata["votes"])
    source = text_in(metadata.get("source"), SOURCE_KEYS) or text_in(observation.input, SOURCE_KEYS)
    return score_text(source, text_in(observation.output, CLAIM_KEYS))


SOURCE_KEYS = ("source", "context", "document", "text")  # of metadata or input
CLAIM_KEYS = ("claim", "answer", "output", "text", "content")  # of the output


def evaluate(ctx):
    """Give P(consistent) and the decision of an observation as scores of Langfuse."""
    found = found_in(ctx.observation)
    p, low, high = found["p_consistent"], found["p_low"], found["p_high"]
    said = [f"{judge['judge']}: {judge['rationale']}" for judge in found.get("judges", ()) if judge["vote"] == 0]
    comment = "\\n".join([f"P(consistent) = {p:.3f}, 90 % interval {low:.3f} to {high:.3f}", *said])
    called = ("inconsistent", "consistent")[found["decision"]] if found["n_votes"] else "no vote"
    decision = Score(name="consistency-decision", value=called, data_type="CATEGORICAL", comment=comment)
    metadata = {"p_low": low, "p_high": high, "n_votes": found["n_votes"]}
    numeric = Score(name="consistency", value=p, data_type="NUMERIC", comment=comment, metadata=metadata)
    return EvaluationResult(scores=[numeric, decision] if found["n_votes"] else [decision])
'''

_NO_TEXT = '''
def score_text(source, claim):
    """Refuse texts: the judges of this model run elsewhere."""
    raise ValueError("this model takes votes: put them into the observation's metadata as votes")

'''


def export_evaluator(model: Model, out: Path) -> str | None:
    """Write a model as the source of a code evaluator, as Langfuse's documents have described it since May 2026.

    ``evaluate(ctx)`` reads the source from ``ctx.observation.metadata["source"]`` or the input and the claim from the
    output; of a model of other judges than lexical checks, votes from ``ctx.observation.metadata["votes"]``. What is
    missing raises, which Langfuse shows as an error and not as a score.

    Parameters
    ----------
    model : Model
        As for :func:`deep.integrations.python_program.export_python`.
    out : Path

    Returns
    -------
    str or None
        Why it reads no texts; None where it does.

    Raises
    ------
    InputError
        The model cannot be written down, or is larger than Langfuse takes. Nothing is written then.
    """
    code, why = python_code(model)
    # Langfuse puts its own classes before it, where a __future__ import would be refused.
    code = code.replace(_FUTURE, "", 1).partition("\n\ndef named_once(pairs)")[0].rstrip("\n")
    code = "\n\n".join([code, *([_NO_TEXT.rstrip("\n")] if why else []), _EVALUATE])
    size = len(code.encode())
    if size > LARGEST:
        raise InputError(
            f"`model` must be at most {LARGEST:,} bytes of code for Langfuse. Got {size:,}. Fit one with at most 7 "
            "voters (--sizes), or with more than 10."
        )
    with whole_file(out) as scratch:
        scratch.write_text(code, encoding="utf-8", newline="\n")
    return why
