"""Which of the packages that the paper's methods were asked to be made with take part in the main job, by a trace."""

import re
import sys
from collections import defaultdict

import numpy as np
import pandas as pd
import pytest

from deep.experiments.loo._show import LIBRARY_PURPOSES
from tests.deep_commands import loo

WORK = {
    "catboost": "fit",
    "lightgbm": "train",
    "matplotlib": "savefig",
    "mrmr": "mrmr_base",
    "netcal": "measure",
    "numpy": "bincount",
    "sklearn": "fit",
    "snorkel": "fit",
    "xgboost": "update",
}
"""A function of each package, as it is imported, that does its part; being imported alone is none."""

MADE_BY = {"mrmr": "mrmr-selection", "sklearn": "scikit-learn"}


def traced(function):
    """Return the names of the functions of other packages that a call runs, by package."""
    called = defaultdict(set)

    def note(frame, event, arg):
        if event == "call":
            result = re.search(r"site-packages/(\w+)", frame.f_code.co_filename)
            if result is not None:
                called[result[1]].add(frame.f_code.co_name)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        assert function() == 0
    finally:
        sys.setprofile(before)
    return called


@pytest.mark.slow
def test_every_package_takes_part_where_the_last_lines_say_so(tmp_path, capsys):
    """All but openai's, which asks: the trace of one process, beside what the run itself prints."""
    for name in ("catboost", "lightgbm", "mrmr", "netcal", "snorkel", "xgboost"):
        pytest.importorskip(name)
    rng, tables = np.random.default_rng(0), []
    for dataset in ("a", "b", "c", "d"):
        y = rng.integers(0, 2, 80)
        right = rng.random((80, 5)) < [0.85, 0.8, 0.75, 0.7, 0.6]
        votes = pd.DataFrame(np.where(right, y[:, None], 1 - y[:, None]), columns=[f"judge-{k}" for k in range(5)])
        tables.append(votes.assign(dataset=dataset, item_id=np.arange(80), label=y))
    pd.concat(tables).to_csv(tmp_path / "v.csv", index=False)
    words = ["--test", "b", "--votes", str(tmp_path / "v.csv"), "--compare-recipes", "--sizes", "3", "--n-boot", "100"]
    words += ["--jobs", "1", "--out", str(tmp_path / "out")]
    words += ["--ensembler", "CatBoost,LGBM,XGB,DecisionTree,snorkel-labelmodel"]
    called = traced(lambda: loo(words))
    worked = {package for package, function in WORK.items() if function in called[package]}
    table = capsys.readouterr().out.partition("Which library did what\n")[2].partition("\n\n")[0]
    message = dict(line.strip().split(": ", 1) for line in table.replace("\n    ", " ").splitlines())
    assert list(message) == list(LIBRARY_PURPOSES)
    for package in WORK:
        name = MADE_BY.get(package, package)
        # The choice of voters may be RFE's for every size: then mRMR was asked, and no chain is its.
        if package != "mrmr":
            assert (package in worked) == (message[name] != "no part here"), name
        assert package in worked, name
    assert "openai" not in called or not called["openai"] & {"create", "request"}
    assert message["openai"].startswith("nothing")
