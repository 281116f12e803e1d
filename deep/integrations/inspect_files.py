"""Inspect: the judgments that its scores are, and deep's scores as records that it reads."""

import json
import math
import re
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from deep.exceptions import InputError
from deep.integrations.committee import judge_line, vote_of
from deep.model import exported_columns
from deep.records import ABSTAIN, Judgment, Reason

if TYPE_CHECKING:
    import pyarrow as pa

# The reasons that Inspect gives a score that is none.
REASONS: Mapping[str, Reason] = {
    "grader_failed": "unparsable",
    "invalid_response_format": "abstained",  # of the model that was graded, as the next two
    "no_response": "abstained",
    "refusal": "abstained",
    "scoring_failed": "failed",
}


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
    value, explanation = score.value, getattr(score, "explanation", None)
    if (vote := vote_of(value)) != ABSTAIN:
        return Judgment(vote, rationale=explanation)
    return Judgment(ABSTAIN, _reason(value, getattr(score, "reason", None)), rationale=explanation)


def _reason(value: object, explanation: str | None) -> Reason:
    if explanation is not None:
        return REASONS.get(explanation, "abstained")
    if isinstance(value, int | float):
        return "abstained" if math.isnan(value) or 0 < value < 1 else "unparsable"
    return "abstained" if value in ("P", "N", None) else "unparsable"


def scores_by_grader(scores: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the scores of a sample by grader; a mapping of values is one each, but a committee's repeat others."""
    result: dict[str, Any] = {}
    for name, score in (scores or {}).items():
        if (getattr(score, "metadata", None) or {}).get("committee"):
            continue
        if isinstance(score.value, Mapping):
            result |= {f"{name}.{key}": score.model_copy(update={"value": v}) for key, v in score.value.items()}
        else:
            result[name] = score
    return result


# The item of a sample that was run several times, as ``deep data from`` names it.
EPOCH = re.compile(r"(.+)@epoch-([1-9][0-9]*)", re.DOTALL)


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
    result = EPOCH.fullmatch(row["item_id"])
    where = {"id": row["item_id"]} if result is None else {"id": result[1], "epoch": int(result[2])}
    decision = row.get("decision")
    answer = {} if decision is None else {"answer": "consistent" if decision else "inconsistent"}
    # The record itself says P and the decision.
    columns = (name for name in exported_columns() if name not in ("p_consistent", "decision"))
    metadata = {name: row[name] for name in ("dataset", *columns, "judges") if row.get(name) is not None}
    bounds = "" if row["p_low"] is None else f", 90 % interval {row['p_low']:.3f} to {row['p_high']:.3f}"
    head = f"P(consistent) = {row['p_consistent']:.3f}{bounds}, from {row['n_votes']} votes"
    words = "\n".join([head, *map(judge_line, row.get("judges", ()))])
    return {**where, "value": row["p_consistent"], **answer, "explanation": words, "metadata": metadata}


class InspectWriter:
    """Writes rows of scores as JSON lines that ``inspect_ai.scorer.precomputed_scores`` reads.

    Parameters
    ----------
    path : Path
        Of the file to write.
    """

    def __init__(self, path: Path) -> None:
        self._file = path.open("w", encoding="utf-8", newline="\n")
        self._item_ids: set[str] = set()

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
        if row["item_id"] in self._item_ids:
            raise InputError(
                f"`item_id` must be unique with `--to inspect`, which knows no datasets. Got {row['item_id']!r} "
                f"again in dataset {row['dataset']!r}. Score one dataset at a time."
            )
        self._item_ids.add(row["item_id"])
        if record is not None:
            self._file.write(json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n")
