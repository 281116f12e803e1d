"""Every dataset held out in turn: of votes, or of the simulated worlds."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from deep._text import listed
from deep.datasets import ScoreTable, join_scores, read_scores, read_votes
from deep.evaluate import Row, rows_of_both_classes
from deep.exceptions import InputError
from deep.experiments.transfer._panels import ALL, StudyPanel, panels_text, transfer_over_panels
from deep.experiments.transfer._report import report_text, simulated_text, summarize, summarize_simulated
from deep.experiments.transfer._simulated import WORLDS, transfer_in
from deep.experiments.transfer._target import TransferSettings, transfer_to
from deep.records import VoteMatrix

MAX_TARGETS = 500
MAX_NAMED = 5

Mapper = Callable[[Callable[[Any], Any], Sequence[Any]], Iterable[Any]]
"""Like the built-in `map`."""


def transfer_on_votes(
    votes: VoteMatrix, scores: ScoreTable | None, run: Mapper, *, n_draws: int = 200, random_state: int = 0
) -> tuple[Row, str]:
    """Hold out each dataset; return results and their Markdown.

    Raises
    ------
    InputError
        A row has no label, or there are more than 500 datasets.
    """
    if len(votes.dataset_names) > MAX_TARGETS:
        raise InputError(
            f"`votes` must hold at most {MAX_TARGETS} datasets, each of which is held out. Got "
            f"{len(votes.dataset_names):,}. Hold out one of them with `deep loo`."
        )
    votes, left = _measurable(votes)
    if left and scores is not None:
        scores = join_scores(votes, scores)
    settings = TransferSettings(n_draws=n_draws, random_state=random_state)
    targets = list(run(partial(_transfer_to, votes, scores, settings), votes.dataset_names))
    summary = summarize(targets)
    return {"left_out": left, "targets": targets, "summary": summary}, report_text(targets, summary) + _left_out(left)


def _measurable(votes: VoteMatrix) -> tuple[VoteMatrix, list[str]]:
    """Return the datasets with both classes, and the names of the others: nothing is learned or measured on them."""
    _check_labeled(votes)
    kept, left = rows_of_both_classes(votes, np.ones(len(votes.labels), dtype=bool))
    if left and len(set(votes.datasets[kept])) < 2:
        raise InputError(
            "`label` must hold both 0 and 1 in at least two datasets, one to test on and one to train on. "
            f"Got all 0 or all 1 in {listed(left, MAX_NAMED)}."
        )
    return (votes.rows(kept) if left else votes), left


def _left_out(datasets: Sequence[str]) -> str:
    return f"\nLeft out, for their labels are all 0 or all 1: {listed(datasets, MAX_NAMED)}.\n" if datasets else ""


def _check_labeled(votes: VoteMatrix) -> None:
    unlabeled = (votes.labels < 0).nonzero()[0]
    if len(unlabeled):
        row = unlabeled[0]
        raise InputError(
            f"`label` must be 0 or 1 in every row. Got none for item {votes.example_ids[row]!r} of dataset "
            f"{votes.datasets[row]!r}. Label it or leave it out."
        )


def _transfer_to(votes: VoteMatrix, scores: ScoreTable | None, settings: TransferSettings, test: str) -> Row:
    return transfer_to(votes, test, scores=scores, settings=settings)


def transfer_on_panels(
    paths: Sequence[str],
    scores: Sequence[str],
    sizes: Sequence[int | str],
    run: Mapper,
    *,
    n_draws: int = 20,
    random_state: int = 0,
) -> tuple[Row, str]:
    """Compare every rival on several panels with few or many training datasets; return results and their Markdown.

    Parameters
    ----------
    paths : sequence of str
        Tables of labeled votes, each a panel of its own.
    scores : sequence of str
        Tables of soft scores; they stand beside the panel whose items they have.
    """
    soft = read_scores(scores) if scores else None
    panels, left_out = [], dict[str, list[str]]()
    for path in paths:
        votes, left_out[path] = _measurable(read_votes([path]))
        mine = soft if soft is not None and set(soft.datasets) & set(votes.datasets) else None
        panels.append(StudyPanel(_panel_name(path), votes, None if mine is None else join_scores(votes, mine)))
    results = transfer_over_panels(panels, sizes, run, n_draws=n_draws, random_state=random_state)
    said = "".join(_left_out(left) for left in left_out.values())
    return {"votes": list(paths), "scores": list(scores), "left_out": left_out, **results}, panels_text(results) + said


def _panel_name(path: str) -> str:
    return "/".join(Path(path).parts[-2:])


def numbers_of(words: Sequence[str]) -> list[int | str]:
    """Return numbers of training datasets, or 'all', from words.

    Examples
    --------
    >>> numbers_of(["1", "3", "all"])
    [1, 3, 'all']
    """
    wrong = [word for word in words if word != ALL and not (word.isdecimal() and int(word) > 0)]
    if wrong:
        raise InputError(f"`training_datasets` must be numbers of at least 1, or 'all'. Got {wrong[0]!r}.")
    return [word if word == ALL else int(word) for word in words]


def transfer_on_worlds(run: Mapper, *, n_draws: int = 8, random_state: int = 0) -> tuple[Row, str]:
    """Hold out each dataset of every draw of the simulated worlds; return results and their Markdown."""
    draws = range(random_state, random_state + n_draws)
    tasks = [(world, draw) for draw in draws for world in WORLDS]
    found = [row for rows in run(_transfer_in, tasks) for row in rows]
    summary = summarize_simulated(found)
    table = simulated_text(summary, {name: world.title for name, world in WORLDS.items()})
    return {"votes": "simulated", "targets": found, "summary": summary}, table


def _transfer_in(task: tuple[str, int]) -> list[Row]:
    return transfer_in(*task)
