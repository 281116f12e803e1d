"""Examples, votes and labels as people have them: a data frame, a table of Arrow, paths, or deep's own records."""

from collections.abc import Iterable
from pathlib import Path
from typing import TypeGuard

import numpy as np
import numpy.typing as npt

from deep._util.frames import Frame, frame_rows, frame_with
from deep.datasets._examples import Examples, examples_from_dataset
from deep.datasets._labels import LabelTable, join_labels, read_labels
from deep.datasets._origin import read_examples
from deep.datasets._tables import Paths, read_votes
from deep.exceptions import InputError
from deep.records import Example, VoteMatrix

VotesGiven = VoteMatrix | Frame | Paths
"""Votes, a data frame with the columns of a table of votes, or paths of such tables."""

LabelsGiven = npt.ArrayLike | Frame | Paths
"""1, 0 or -1 for each row of votes, a frame with item_id and label, or paths of tables of labels."""

DATASET = "data"
"""The dataset of the rows of a frame that has no column dataset."""


def is_paths(given: object) -> TypeGuard[Paths]:
    """Return whether something is a path or paths."""
    listed = given if isinstance(given, list | tuple) else [given]
    return bool(listed) and all(isinstance(one, str | Path) for one in listed)


def as_votes(votes: object) -> VoteMatrix:
    """Return votes as a matrix.

    Parameters
    ----------
    votes : VoteMatrix, data frame of pandas, Polars or pyarrow, or path or sequence of paths
        A frame has the columns of a file (:func:`read_votes`); without a column dataset all rows are of one.

    Raises
    ------
    InputError
        It is something else, or cannot be read.

    Examples
    --------
    >>> import pandas as pd
    >>> from deep.datasets import as_votes
    >>> as_votes(pd.DataFrame({"item_id": ["a", "b"], "strict": [True, None]})).votes.tolist()
    [[1], [-1]]
    """
    if isinstance(votes, VoteMatrix):
        return votes
    if isinstance(votes, Frame):
        return VoteMatrix.from_frame(frame_with(votes, dataset=DATASET))
    if is_paths(votes):
        return read_votes(votes)
    raise InputError(
        "`votes` must be a VoteMatrix, a data frame of pandas, Polars or pyarrow with the columns item_id and one a "
        f"judge, or a path. Got {type(votes).__name__}."
    )


def as_examples(examples: Examples | Iterable[Example] | Frame | str | Path) -> Examples | Iterable[Example]:
    """Return examples of deep, whatever holds them: a frame has the columns of a file of examples, source and claim.

    Raises
    ------
    InputError
        It is something else, or cannot be read.
    """
    if isinstance(examples, Frame):
        return examples_from_dataset(frame_rows(examples), name=DATASET)
    if isinstance(examples, str | Path):
        return read_examples(examples)
    if isinstance(examples, Examples):
        return examples
    given = list(examples) if isinstance(examples, Iterable) else [examples]
    wrong = [type(one).__name__ for one in given if not isinstance(one, Example)]
    if wrong:
        raise InputError(f"`examples` must hold Examples, or be a data frame or a path. Got {wrong[0]}.")
    return given


def as_labels(labels: LabelsGiven, votes: VoteMatrix) -> VoteMatrix:
    """Return votes with labels, and no others on their datasets.

    Parameters
    ----------
    labels : array-like of shape (n_examples,), data frame, or path or sequence of paths
        An array has 1, 0, or -1 where there is none; others the columns dataset, item_id and label.
    votes : VoteMatrix
    """
    if isinstance(labels, Frame):
        found = frame_with(labels, dataset=votes.dataset_names[0], votes=np.zeros(len(frame_rows(labels)), np.int8))
        read = VoteMatrix.from_frame(found)
        return join_labels(votes, LabelTable(read.example_ids, read.datasets, read.labels, read.document_ids))
    if is_paths(labels):
        return join_labels(votes, read_labels(labels, votes))
    return VoteMatrix(**{**vars(votes), "labels": np.asarray(labels)})
