"""Votes from the logs of Inspect: each grader is a voter, and only a 1 or a 0 is a vote."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from deep import asking
from deep._util.names import check_name
from deep.exceptions import InputError, needs_extra
from deep.records import ABSTAIN, Example, Judgment, Reason

VOTES: Mapping[object, int] = {"C": 1, "I": 0, 1: 1, 0: 0}  # and so 1.0, 0.0, True and False

KIND = "inspect"
"""The kind of the voters, in the account of the table."""

REASONS: Mapping[str, Reason] = {
    "grader_failed": "unparsable",
    "invalid_response_format": "abstained",  # of the model that was graded, as the next two
    "no_response": "abstained",
    "refusal": "abstained",
    "scoring_failed": "failed",
}
"""The reasons that Inspect gives a score that is none."""

Samples = list[tuple[str, Any]]


@dataclass(frozen=True)
class LogVotes:
    """The table of votes that was made of logs.

    Parameters
    ----------
    voters : tuple of str
        The graders; a score of several values is a grader for each, ``grader.value``.
    items : dict of str to int
        By dataset.
    votes : int
    reasons : dict of str to int
        How often a vote is missing, by reason.
    """

    voters: tuple[str, ...]
    items: dict[str, int]
    votes: int
    reasons: dict[str, int] = field(default_factory=dict)


def judgment_of(score: Any, *, failed: bool = False) -> Judgment:
    """Return the judgment that one score of Inspect is.

    ``C``, ``I``, 1, 0, true and false are votes. Partial credit (``P``, or a number between), no answer (``N``) and no
    score are none: the grader `abstained`, unless Inspect says why or the sample broke.

    Parameters
    ----------
    score : Score or None
        Anything with `value`, and maybe `reason` and `explanation`.
    failed : bool, default=False
        Whether the sample has an error, which is why there is no score.

    Examples
    --------
    >>> from types import SimpleNamespace as Score
    >>> [judgment_of(Score(value=value)).vote for value in ("C", "I", 1.0, False)]
    [1, 0, 1, 0]
    >>> [judgment_of(Score(value=value)).reason for value in ("P", 0.5, "N", 3, "good")]
    ['abstained', 'abstained', 'abstained', 'unparsable', 'unparsable']
    >>> judgment_of(None).reason, judgment_of(None, failed=True).reason
    ('abstained', 'failed')
    """
    if score is None:
        return Judgment(ABSTAIN, "failed" if failed else "abstained")
    value, said = score.value, getattr(score, "explanation", None)
    if isinstance(value, str | int | float) and value in VOTES:
        return Judgment(VOTES[value], rationale=said)
    return Judgment(ABSTAIN, _reason(value, getattr(score, "reason", None)), rationale=said)


def _reason(value: object, said: str | None) -> Reason:
    if said is not None:
        return REASONS.get(said, "abstained")
    if isinstance(value, int | float):
        return "abstained" if math.isnan(value) or 0 < value < 1 else "unparsable"
    return "abstained" if value in ("P", "N", None) else "unparsable"


def votes_from_logs(logs: Sequence[str | Path], out: Path, *, label: str | None = None) -> LogVotes:
    """Write a table of votes with a column for each grader of Inspect's logs.

    An item is a sample, or each epoch of it (``ID@epoch-N``) where a log has several, of one document. The dataset is
    the log's task, with the model, and then the log's own id, where several logs have one task.

    Parameters
    ----------
    logs : sequence of str or Path
        ``.eval`` or ``.json`` files, or folders of them.
    out : Path
        The Parquet file of votes; reasons and explanations lie beside it.
    label : str, optional
        The grader that is right, such as a person's scores: its votes are the labels, and no voter's.

    Raises
    ------
    InputError
        There is no log, one cannot be read or has no scores, or there is no such grader.
    MissingDependencyError
        Inspect is not installed.
    """
    samples = _read([path for log in logs for path in _files(Path(log))])
    scores = [_scores(sample) for _, sample in samples]
    voters = _voters(scores, label)
    several = {dataset for dataset, sample in samples if sample.epoch > 1}
    rows = [
        (
            _example(dataset, sample, found.get(label or ""), several=dataset in several),
            {name: judgment_of(found.get(name), failed=sample.error is not None) for name in voters},
        )
        for (dataset, sample), found in zip(samples, scores, strict=True)
    ]
    asking.write_judged(rows, voters, out, {"schema_version": 1, "voters": {name: {"kind": KIND} for name in voters}})
    counts = Counter(judgment.reason for _, found in rows for judgment in found.values())
    reasons = {str(reason): n for reason, n in counts.items() if reason is not None}
    items = Counter(str(example.dataset) for example, _ in rows)
    return LogVotes(tuple(voters), dict(items), counts[None], reasons)


def _voters(scores: Iterable[Mapping[str, object]], label: str | None) -> list[str]:
    """Return the graders but the one that is right."""
    graders = sorted({name for found in scores for name in found})
    if label is not None and label not in graders:
        known = ", ".join(graders) or "there is none"
        raise InputError(f"`label` must be a grader of the logs: {known}. Got {label!r}.")
    voters = [check_name(name, "logs") for name in graders if name != label]
    if not voters:
        raise InputError("`logs` must have scores of a grader that is no label. Got none.")
    return voters


def _files(path: Path) -> list[Path]:
    """Return the logs of a folder, or the one that is named."""
    found = sorted(p for p in path.rglob("*") if p.suffix in (".eval", ".json")) if path.is_dir() else [path]
    if not found or not found[0].is_file():
        what = "a folder without any" if path.is_dir() else "no file"
        raise InputError(
            f"`logs` must be logs of Inspect that end in .eval or .json. Got {str(path)!r}, which is {what}."
        )
    return found


def _read(paths: Sequence[Path]) -> Samples:
    """Return every sample with its dataset."""
    with needs_extra("inspect"):
        from inspect_ai.log import read_eval_log, read_eval_log_sample_summaries
    found: list[tuple[Any, list[Any]]] = []
    for path in paths:
        try:
            found.append((read_eval_log(path, header_only=True).eval, read_eval_log_sample_summaries(path)))
        except Exception as error:  # of zip, JSON, pydantic or a file system, as the log has it
            said = (str(error).splitlines() or [type(error).__name__])[0]
            raise InputError(f"`logs` must be logs of Inspect. Got {str(path)!r}: {said}.") from None
    names = _datasets([spec for spec, _ in found])
    return [(name, sample) for name, (_, samples) in zip(names, found, strict=True) for sample in samples]


def _datasets(specs: Sequence[Any]) -> list[str]:
    """Return a name for each log, all different: the task alone where that is enough."""
    tasks = [str(spec.task) for spec in specs]
    models = [f"{spec.task} {spec.model}" for spec in specs]
    for names in (tasks, models):
        if len(set(names)) == len(names):
            return [check_name(name, "logs") for name in names]
    return [check_name(f"{spec.task} {spec.model} {spec.eval_id}", "logs") for spec in specs]


def _scores(sample: Any) -> dict[str, Any]:
    """Return the scores of a sample by grader; a mapping of values is one each."""
    found: dict[str, Any] = {}
    for name, score in (sample.scores or {}).items():
        if isinstance(score.value, Mapping):
            found |= {f"{name}.{key}": score.model_copy(update={"value": v}) for key, v in score.value.items()}
        else:
            found[name] = score
    return found


def _example(dataset: str, sample: Any, label: Any, *, several: bool) -> Example:
    """Return a sample as an example without its texts."""
    known = judgment_of(label).vote
    name = str(sample.id)
    item = f"{name}@epoch-{sample.epoch}" if several else name
    return Example("", "", item, None if known == ABSTAIN else known, dataset, name)
