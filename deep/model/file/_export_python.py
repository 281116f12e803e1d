"""Write a model as a file of Python that needs nothing beside the standard library."""

from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from pathlib import Path
from string import Template

import numpy as np
import numpy.typing as npt

from deep import __version__
from deep._util.files import whole_file
from deep._util.odds import P_MIN, logit
from deep.ensembles import BETWEEN
from deep.exceptions import InputError
from deep.features.lexical import LEXICAL, lexical_code
from deep.judge import parse_voter
from deep.model.adaptation import TIE
from deep.model.file._model import Model
from deep.model.file._table import MAX_TABLE_VOTERS, pattern_grid, pattern_text
from deep.model.linear import Rows
from deep.model.score import LIMIT, Part, VoteForest, VoteSum

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
        return {**names, **score_text(item.get("source"), item.get("claim"))}
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
    >>> from deep.model import export_python, fit
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
    template = resources.files("deep.model.file").joinpath("templates", f"{name}.txt").read_text(encoding="utf-8")
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
    return {
        "version": __version__,
        "prior": f"of\n{whose}, {share}.",
        "about": "\n".join(f"    {key!r}: {value!a}," for key, value in about.items()),
        "voters": "\n".join(f"    {name!a}," for name in model.voter_names),
    }


def _names(found: object) -> Iterable[str]:
    return map(str, found) if isinstance(found, Mapping) else ()


def _table(model: Model) -> str:
    """Return a line a pattern: its votes, P, the bounds, the decision."""
    patterns = pattern_grid(len(model.voters))
    p, bounds = model.score(patterns, streamed=True).tolist(), model.intervals(patterns, streamed=True).tolist()
    decisions = model.scores_at(model.raw(Rows.from_arrays(patterns)), model.contexts).decisions.tolist()
    rows = zip(pattern_text(patterns), p, bounds, decisions, strict=True)
    return "\n".join(f"{text} {one!r} {low!r} {high!r} {decided:d}" for text, one, (low, high), decided in rows)


def _sum_values(model: Model) -> dict[str, object]:
    """Return the numbers of a model whose patterns are too many for a table."""
    parts, correction = model.blend.parts, model.correction
    offset = sum(part.intercept + part.context * at for part, at in zip(parts, model.contexts, strict=True))
    prior = float(logit(model.prior.estimate, clip=0.0))
    intercept, slope, threshold, misfit, covariance = (
        (0.0, 1.0, prior, model.misfit, model.misfit.second_moment)
        if correction is None
        else (correction.intercept, correction.slope, correction.threshold, correction.misfit, correction.covariance)
    )
    if correction is not None:
        prior = float(logit(correction.prior, clip=0.0))
    values = {
        "offset": offset,
        "prior_log_odds": prior,
        "intercept": intercept,
        "slope": slope,
        "threshold": threshold,
        "tie": TIE,
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
