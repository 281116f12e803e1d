"""Files of Inspect: votes from its logs, where each grader is a voter, and scores as records that it reads."""

import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from deep import asking
from deep._util.names import check_name
from deep.exceptions import InputError, needs_extra
from deep.integrations.committee import vote_of
from deep.model import exported_columns
from deep.records import ABSTAIN, Example, Judgment, Reason

if TYPE_CHECKING:
    import pyarrow as pa

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
    if (vote := vote_of(value)) != ABSTAIN:
        return Judgment(vote, rationale=said)
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
        The grader that is right, such as a person's scores: its votes are the labels, and no voter's. Where there is
        none of that name, the key of the samples' metadata that holds the right grade.

    Raises
    ------
    InputError
        There is no log, one cannot be read or has no scores, or there is no such grader.
    MissingDependencyError
        Inspect is not installed.
    """
    samples = _read([path for log in logs for path in _files(Path(log))])
    scores = [scores_by_grader(sample.scores) for _, sample in samples]
    known = {label for _, sample in samples if label in (sample.metadata or {})}
    voters = _voters(scores, None if label in known else label)
    several = {dataset for dataset, sample in samples if sample.epoch > 1}
    own: dict[str, set[str]] = defaultdict(set)  # a grader that a task does not have has not abstained on it
    for (dataset, _), found in zip(samples, scores, strict=True):
        own[dataset] |= found.keys()
    rows = [
        (
            _example(dataset, sample, _right(sample, found, label), several=dataset in several),
            {
                name: judgment_of(found.get(name), failed=sample.error is not None)
                for name in voters
                if name in (own[dataset] or voters)
            },
        )
        for (dataset, sample), found in zip(samples, scores, strict=True)
    ]
    asking.write_judged(rows, voters, out, {"schema_version": 1, "voters": {name: {"kind": KIND} for name in voters}})
    counts = Counter(judgment.reason for _, found in rows for judgment in found.values())
    reasons = {str(reason): n for reason, n in counts.items() if reason is not None}
    items = Counter(str(example.dataset) for example, _ in rows)
    return LogVotes(tuple(voters), dict(items), counts[None], reasons)


def _right(sample: Any, found: Mapping[str, Any], label: str | None) -> int:
    """Return the right vote on a sample, by the grader of that name, else by the sample's metadata."""
    if label is not None and label in found:
        return judgment_of(found[label]).vote
    return vote_of((sample.metadata or {}).get(label))


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


def scores_by_grader(scores: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the scores of a sample by grader; a mapping of values is one each, but a committee's repeat others."""
    found: dict[str, Any] = {}
    for name, score in (scores or {}).items():
        if (getattr(score, "metadata", None) or {}).get("committee"):
            continue
        if isinstance(score.value, Mapping):
            found |= {f"{name}.{key}": score.model_copy(update={"value": v}) for key, v in score.value.items()}
        else:
            found[name] = score
    return found


def _example(dataset: str, sample: Any, known: int, *, several: bool) -> Example:
    """Return a sample as an example without its texts."""
    name = str(sample.id)
    item = f"{name}@epoch-{sample.epoch}" if several else name
    return Example("", "", item, None if known == ABSTAIN else known, dataset, name)


EPOCH = re.compile(r"(.+)@epoch-([1-9][0-9]*)", re.DOTALL)
"""The item of a sample that was run several times, as ``deep data from-inspect`` names it."""


def inspect_record(row: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the record of a row of scores; None where no judge gave a vote, which leaves the sample unscored.

    Parameters
    ----------
    row : mapping
        Columns of scores; of texts also `judges`, whose votes and words become the explanation.

    Examples
    --------
    >>> from deep.integrations.inspect_files import inspect_record
    >>> row = {"item_id": "a@epoch-2", "p_consistent": 0.75, "n_votes": 3, "p_low": 0.5, "p_high": 0.875}
    >>> inspect_record(row)["id"], inspect_record(row)["epoch"], inspect_record(row)["value"]
    ('a', 2, 0.75)
    >>> inspect_record(row | {"n_votes": 0}) is None
    True
    """
    if not row["n_votes"]:
        return None
    found = EPOCH.fullmatch(row["item_id"])
    where = {"id": row["item_id"]} if found is None else {"id": found[1], "epoch": int(found[2])}
    decision = row.get("decision")
    answer = {} if decision is None else {"answer": "consistent" if decision else "inconsistent"}
    said = (name for name in exported_columns() if name not in ("p_consistent", "decision"))  # which the record says
    metadata = {name: row[name] for name in ("dataset", *said, "judges") if row.get(name) is not None}
    return {**where, "value": row["p_consistent"], **answer, "explanation": _explanation(row), "metadata": metadata}


def _explanation(row: Mapping[str, Any]) -> str:
    bounds = "" if row["p_low"] is None else f", 90 % interval {row['p_low']:.3f} to {row['p_high']:.3f}"
    lines = [f"P(consistent) = {row['p_consistent']:.3f}{bounds}, from {row['n_votes']} votes"]
    for judge in row.get("judges", ()):
        vote = judge["vote"] if judge["reason"] is None else judge["reason"]
        said = " ".join((judge["rationale"] or "").split())
        lines.append(f"{judge['judge']}: {vote}{f'. {said}' if said else ''}")
    return "\n".join(lines)


class InspectWriter:
    """Writes rows of scores as JSON lines that ``inspect_ai.scorer.precomputed_scores`` reads.

    Parameters
    ----------
    path : Path
    """

    def __init__(self, path: Path) -> None:
        self._file = path.open("w", encoding="utf-8", newline="\n")
        self._seen: set[str] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def write_table(self, table: "pa.Table") -> None:
        """Write the rows of a table of scores."""
        for row in table.to_pylist():
            self.write_row(row)

    def write_row(self, row: Mapping[str, Any]) -> None:
        """Write one row.

        Raises
        ------
        InputError
            Another dataset has an item of that id, which Inspect would take for the same sample.
        """
        record = inspect_record(row)
        if row["item_id"] in self._seen:
            raise InputError(
                f"`item_id` must be unique with `--to inspect`, which knows no datasets. Got {row['item_id']!r} "
                f"again in dataset {row['dataset']!r}. Score one dataset at a time."
            )
        self._seen.add(row["item_id"])
        if record is not None:
            self._file.write(json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n")
