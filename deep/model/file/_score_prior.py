"""Score votes at the class prior that the model estimates for each of their datasets."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from deep.datasets import VoteRows, read_votes
from deep.model.file._columns import other_columns
from deep.model.file._model import Model
from deep.model.file._score_votes import ScoreOptions, score_table, write_tables
from deep.model.target import PriorEstimate
from deep.records import VoteMatrix

if TYPE_CHECKING:
    import pyarrow as pa


def score_at_learned_prior(
    model: Model, paths: Sequence[str], out: Path, options: ScoreOptions
) -> dict[str, PriorEstimate]:
    """Score tables of votes, each dataset at its own estimated prior; return the estimates."""
    votes = read_votes(paths, ignore=other_columns(model, paths))
    matching = {"allow_mismatch": options.allow_mismatch, "allow_missing": options.allow_missing}
    found = {name: model.estimate_prior(votes.rows(votes.datasets == name), **matching) for name in votes.dataset_names}
    write_tables(_tables(model, votes, found, options), out)
    return found


def _tables(
    model: Model, votes: VoteMatrix, found: dict[str, PriorEstimate], options: ScoreOptions
) -> Iterator["pa.Table"]:
    matching = {"allow_mismatch": options.allow_mismatch, "allow_missing": options.allow_missing}
    for name, prior in found.items():
        rows = votes.rows(votes.datasets == name)
        piece = VoteRows(rows.datasets, rows.example_ids, rows.labels, model.select(rows, **matching))
        yield score_table(model, piece, replace(options, prior=prior.estimate, estimated=True))


def prior_lines(found: dict[str, PriorEstimate]) -> Iterator[str]:
    """Yield a line a dataset, with the reason where nothing could be learned from its votes."""
    for name, prior in found.items():
        why = f" (the training datasets' mean: {prior.why})" if prior.refused else ""
        yield (
            f"{name}: {100 * prior.estimate:.1f} % consistent, 90 % interval {100 * prior.low:.1f} to "
            f"{100 * prior.high:.1f}{why}"
        )
