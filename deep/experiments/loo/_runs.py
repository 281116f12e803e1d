"""Every dataset of a study held out in turn, and the scores written of them."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from deep.console import SIMULATED
from deep.datasets import ScoreTable
from deep.experiments.held_out import LooResult, published_rows
from deep.experiments.loo._model import held_out_together, run_over, shared_fits
from deep.experiments.loo._run import leave_datasets_out
from deep.experiments.loo._tasks import LooOptions
from deep.records import ABSTAIN, VoteMatrix

NAME = pa.dictionary(pa.int32(), pa.string())

CHAINS = pa.schema(
    {
        **dict.fromkeys(("dataset", "item_id", "recipe", "ensembler"), NAME),
        "size": pa.int32(),
        "calibrator": NAME,
        "p": pa.float64(),
    }
)
"""The columns of `chains.parquet`."""


def run_all(
    settings: LooOptions,
    tests: Sequence[str],
    votes: VoteMatrix,
    scores: ScoreTable | None,
    origin: str | list[str],
    progress: Callable[[str, int], Callable[[], None]],
) -> list[LooResult]:
    """Hold out each of `tests` in turn, or where they are many in groups; what several of them need is fitted once."""
    found: dict[str, LooResult] = {}
    step = progress("datasets", len(tests) + 1)
    groups = held_out_together(votes, tests, settings)
    alone = len(groups) == len(tests)
    shared = shared_fits(votes, tests, scores, settings, run_over(settings)) if alone else None
    step()
    for together in groups:
        results = leave_datasets_out(
            votes,
            together,
            settings=settings,
            scores=scores,
            published={test: published_rows(test) for test in together} if origin == SIMULATED else {},
            fits=None if shared is None else shared.without(*together),
            n_datasets=len(tests),
            progress=progress,
        )
        for test, result in zip(together, results, strict=True):
            found[test] = replace(result, results={"votes": origin, **result.results})
            step()
    return [found[test] for test in tests]


def write_scores(found: Sequence[LooResult], path: Path, origin: str | list[str]) -> None:
    """Write the scored items of every run; the file's metadata say where the votes came from."""
    table = pa.Table.from_pandas(pd.concat([result.scores for result in found]), preserve_index=False)
    kept = table.schema.metadata | {b"deep.votes": json.dumps(origin).encode()}
    pq.write_table(table.replace_schema_metadata(kept), path)


def write_held_out(votes: VoteMatrix, tests: Sequence[str], path: Path) -> None:
    """Write the votes on the datasets that were held out: the report shows them item by item."""
    held = votes.rows(np.isin(votes.datasets.astype(str), list(tests)))
    documents = {} if held.document_ids is None else {"document_id": held.document_ids.astype(str)}
    columns = {"label": held.labels, **dict(zip(held.voter_names, held.votes.T, strict=True))}
    nullable = {name: pd.Series(column, dtype="Int8").replace(ABSTAIN, pd.NA) for name, column in columns.items()}
    items = {"dataset": held.datasets.astype(str), "item_id": held.example_ids.astype(str)}
    pd.DataFrame({**items, **documents, **nullable}).to_parquet(path, index=False)


def write_chains(found: Sequence[LooResult], path: Path, origin: str | list[str]) -> None:
    """Write P by every chain of every run, one run after the other."""
    schema = CHAINS.with_metadata({b"deep.votes": json.dumps(origin).encode()})
    with pq.ParquetWriter(path, schema) as writer:
        for result in found:
            writer.write_table(pa.Table.from_pandas(result.chains, schema=schema, preserve_index=False))
