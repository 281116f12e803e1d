"""Verdicts that are not asked for here: of vote files, of judges that need no LLM, and of models."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from deep.asking import Finder, ask
from deep.datasets import read_votes
from deep.evaluate import model_votes
from deep.exceptions import InputError
from deep.experiments.loo import ensemble_votes
from deep.judges import Judge, parse_voter
from deep.model import load
from deep.records import ABSTAIN, Example, VoteMatrix

if TYPE_CHECKING:
    from deep.datasets import Examples
    from deep.model import Model

NO_PROMPT = "no prompt"
"""The column of judges that are not asked by a prompt."""

Names = dict[str, str]
"""What the columns of prompts are called, by the prompt's id."""


def given_verdicts(
    examples: "Examples",
    names: Names,
    *,
    votes: Sequence[str] = (),
    judges: Sequence[Judge] = (),
    models: Sequence[str] = (),
    ensemblers: Sequence[str] = (),
) -> Iterator[dict[str, object]]:
    """Yield the verdicts of judges that are not asked, on labeled examples.

    Parameters
    ----------
    examples : Examples
        Each with a label.
    names : dict
    votes : sequence of str
        Vote files; a voter that several of them hold has a run in each.
    judges : sequence of Judge
        Those that need no LLM.
    models : sequence of str
        Model files; their voters are found in each vote file and among `judges`, and where all of a model's voters
        need no LLM they are run.
    ensemblers : sequence of str
        Ensembles that learn from no label, of all voters of each vote file and of `judges`.

    Raises
    ------
    InputError
        A file cannot be read, holds none of the examples, or lacks a voter of a model.
    """
    known = list(examples)
    tables = [_aligned(read_votes(path), known, path) for path in votes]
    made = ask(examples, judges) if judges else None
    runs: Counter[tuple[str, str]] = Counter()
    for table in [*tables, *([made] if made is not None else [])]:
        for column, voter in enumerate(table.voter_names):
            yield from _rows(known, table.votes[:, column], *_place(voter, names), runs)
    joined = [_beside(table, made) for table in tables] or ([made] if made is not None else [])
    for table in joined if ensemblers else ():
        combined = ensemble_votes(table, ensemblers)
        for column, ensemble in enumerate(combined.voter_names):
            yield from _rows(known, combined.votes[:, column], ensemble, NO_PROMPT, runs)
    fitted = {Path(path).stem: load(path) for path in models}
    for name, model in fitted.items():
        for table in _tables_of(model, name, joined, examples):
            decided = model_votes(model, table)
            for column, rule in enumerate(decided.voter_names):
                yield from _rows(known, decided.votes[:, column], name, rule, runs)


def _aligned(table: VoteMatrix, examples: Sequence[Example], path: str) -> VoteMatrix:
    """Return the votes on the examples, in their order; none where the file lacks one."""
    places = {key: row for row, key in enumerate(zip(table.datasets, table.example_ids, strict=True))}
    rows = np.array([places.get((str(e.dataset), e.example_id), -1) for e in examples])
    if (rows < 0).all():
        raise InputError(
            f"`votes` must hold votes on the examples of `data`, by dataset and item_id. Got none of {len(examples)} "
            f"in {path!r}, whose datasets are {', '.join(table.dataset_names)}."
        )
    return VoteMatrix(
        votes=np.where(rows[:, None] < 0, ABSTAIN, table.votes[rows]),
        example_ids=[e.example_id for e in examples],
        voter_names=table.voter_names,
        datasets=[str(e.dataset) for e in examples],
        labels=[-1 if e.label is None else e.label for e in examples],
    )


def _tables_of(model: "Model", name: str, joined: Sequence[VoteMatrix], examples: "Examples") -> list[VoteMatrix]:
    """Return the tables that hold the voters of a model, one a run."""
    holding = [table for table in joined if set(model.voter_names) <= set(table.voter_names)]
    if holding:
        return holding
    finder = Finder()
    if any(voter.version is None for voter in model.voters) or finder.plan(model, examples, str).asks:
        missing = [voter for voter in model.voter_names if not any(voter in table.voter_names for table in joined)]
        raise InputError(
            f"`model_file` must have its voters in `votes`. Got none of {missing[0]!r} for {name!r}. "
            "Ask its judges first, as by `deep votes`, and give the file with --votes."
        )
    return [ask(examples, [column.judge for column in finder.plan(model, examples, str).columns])]


def _beside(table: VoteMatrix, made: VoteMatrix | None) -> VoteMatrix:
    """Return a table with the votes that were made here as further columns; a voter that both hold is the table's."""
    if made is None:
        return table
    new = [i for i, voter in enumerate(made.voter_names) if voter not in table.voter_names]
    names = (*table.voter_names, *(made.voter_names[i] for i in new))
    return table.with_columns(votes=np.column_stack([table.votes, made.votes[:, new]]), voter_names=names)


def _place(voter: str, names: Names) -> tuple[str, str]:
    """Return the row and the column of a voter: of a prompt its LLM and its name, of any other judge itself."""
    parts = parse_voter(voter)
    if parts.model is None or parts.name.startswith("nli-") or parts.name == "embedding":
        return (parts.name if parts.model is None else f"{parts.name} {parts.model}"), NO_PROMPT
    return parts.model, names.get(parts.name, parts.name)


def _rows(
    examples: Sequence[Example], votes: np.ndarray, row: str, column: str, runs: Counter[tuple[str, str]]
) -> Iterator[dict[str, object]]:
    runs[row, column] += 1
    for example, vote in zip(examples, votes.tolist(), strict=True):
        yield {
            "dataset": str(example.dataset),
            "item": f"{example.dataset}/{example.example_id}",
            "item_id": example.example_id,
            "label": example.label,
            "model": row,
            "prompt": column,
            "run": runs[row, column],
            "vote": vote,
            "reason": None,
            "evidence": "",
        }
