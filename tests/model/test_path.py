"""The way of the votes through `fit`: few files of deep, in few stays."""

import sys
from itertools import groupby
from pathlib import Path

import deep
from deep.features import Cells
from deep.model import ChainTask, TrainingSet, fit
from deep.model.chain import KeptCells
from deep.records import VoteMatrix
from tests.model.fitted import QUICK, small_votes

HOME = Path(deep.__file__).parent
DATA = (VoteMatrix, Cells, TrainingSet, KeptCells, ChainTask)
MOST_FILES = 8
MOST_STAYS = 18
"""Fewer files than when each step had one of its own, so that some are entered more than twice."""


def stays(run):
    """Return the files of deep in which the training data stay while `run()` is at work, in order.

    A file is entered where a function of it is handed the votes, or what they become: a vote matrix, cells, a
    training set, the cells that a model keeps, or a task of the search. A record that answers for itself (its own
    methods) is no stay. A call counts the first time that one function makes it of another, so that a loop over
    datasets, folds or ensemblers counts once; neighbouring calls into one file are one stay.
    """
    known, files = set(), []

    def profile(frame, event, _):
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(str(HOME)):
            return
        names = [name for name in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount] if name != "self"]
        call = frame.f_back.f_code, code
        if call not in known and any(isinstance(frame.f_locals.get(name), DATA) for name in names):
            known.add(call)
            files.append(str(Path(code.co_filename).relative_to(HOME)))

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        run()
    finally:
        sys.setprofile(before)
    return [name for name, _ in groupby(files)]


def test_votes_go_one_way():
    """From rows to folds, cells, subsets, candidates, the chosen chain and its fits: few files, none a crossroads."""
    votes = small_votes(n_voters=5)
    route = stays(lambda: fit(votes, **QUICK))
    assert route[0] == "model/regimes/_fit.py"
    assert "model/chain/_search.py" in route
    assert len(set(route)) <= MOST_FILES, route
    assert len(route) <= MOST_STAYS, "\n".join(route)
    assert route == stays(lambda: fit(votes, **QUICK))  # whatever was fitted before
