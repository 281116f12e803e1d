"""Tables of votes that break what was not thought of: each a small data frame with the reason in its name."""

import numpy as np
import pandas as pd

__all__ = ["PANELS", "panel"]

VOTERS = 5


def panel(
    sizes=(40, 40, 40, 40), voters=VOTERS, share=0.5, accuracy=0.75, abstain=0.0, seed=0, names=None, columns=None
):
    """Return a plain panel: datasets of these sizes, independent voters of one accuracy, some abstaining."""
    rng = np.random.default_rng(seed)
    labels, cells = [], []
    for n in sizes:
        label = (rng.random(n) < share).astype(int)
        if n > 1:
            label[0], label[1] = 0, 1
        votes = np.where(rng.random((n, voters)) < accuracy, label[:, None], 1 - label[:, None]).astype(float)
        votes[rng.random((n, voters)) < abstain] = np.nan
        labels.append(label)
        cells.append(votes)
    frame = pd.DataFrame(np.concatenate(cells), columns=columns or [f"v{j}" for j in range(voters)]).astype("Int8")
    frame.insert(0, "dataset", np.repeat(names or [f"d{d}" for d in range(len(sizes))], sizes).astype(object))
    frame.insert(1, "item_id", [f"i{i}" for n in sizes for i in range(n)])
    frame.insert(2, "label", np.concatenate(labels))
    return frame


def _labels(frame, dataset, value):
    frame = frame.astype({"label": "Int8"})
    frame.loc[frame["dataset"] == dataset, "label"] = value
    return frame


def _votes(frame, value, dataset=None, voters=None):
    rows = slice(None) if dataset is None else frame["dataset"] == dataset
    for voter in voters or [name for name in frame.columns if name.startswith("v")]:
        frame.loc[rows, voter] = value
    return frame


def _from_label(frame, voters, inverted=False):
    for voter in voters:
        frame[voter] = (1 - frame["label"] if inverted else frame["label"]).astype("Int8")
    return frame


def _duplicated(frame, n=5):
    for j in range(n):
        frame[f"v9{j}"] = frame["v0"]
    return frame


def _one_labeled(frame):
    frame = frame.astype({"label": "Int8"})
    frame.loc[(frame["dataset"] != "d0") & (frame.index % 40 > 1), "label"] = pd.NA
    return frame


def _independent(frame):
    frame["label"] = np.random.default_rng(5).permutation(frame["label"].to_numpy())
    return frame


PANELS = {
    "plain": lambda: panel(),
    "one dataset": lambda: panel((60,)),
    "two datasets": lambda: panel((60, 60)),
    "three datasets": lambda: panel((60, 60, 60)),
    "a training dataset of one class": lambda: _labels(panel(), "d1", 1),
    "the target of one class": lambda: _labels(panel(), "d0", 0),
    "all training data of one class": lambda: _labels(_labels(_labels(panel(), "d1", 1), "d2", 1), "d3", 1),
    "the target has no label": lambda: _labels(panel(), "d0", pd.NA),
    "no label anywhere": lambda: panel().assign(label=pd.array([pd.NA] * 160, dtype="Int8")),
    "two labels a training dataset": lambda: _one_labeled(panel()),
    "all abstain": lambda: _votes(panel(), pd.NA),
    "the target abstains": lambda: _votes(panel(), pd.NA, "d0"),
    "one voter never votes": lambda: _votes(panel(), pd.NA, voters=["v2"]),
    "a voter only in training": lambda: _votes(panel(), pd.NA, "d0", ["v0"]),
    "a voter only in the target": lambda: _votes(
        _votes(_votes(panel(), pd.NA, "d1", ["v0"]), pd.NA, "d2", ["v0"]), pd.NA, "d3", ["v0"]
    ),
    "a third abstain": lambda: panel(abstain=0.33),
    "nearly all abstain": lambda: panel(abstain=0.97),
    "a target of one row": lambda: panel((1, 60, 60, 60)),
    "two rows each": lambda: panel((2, 2, 2, 2)),
    "two rows in all": lambda: panel((2,)),
    "one voter": lambda: panel(voters=1),
    "two voters": lambda: panel(voters=2),
    "200 voters": lambda: panel((60, 60, 60, 60), voters=200, accuracy=0.7),
    "more voters than rows": lambda: panel((8, 8, 8, 8), voters=40),
    "identical voters": lambda: _from_label(panel(), [], False).assign(
        **{f"v{j}": panel()["v0"] for j in range(1, VOTERS)}
    ),
    "a perfect voter": lambda: _from_label(panel(), ["v1"]),
    "all perfect": lambda: _from_label(panel(), [f"v{j}" for j in range(VOTERS)]),
    "all inverted": lambda: _from_label(panel(), [f"v{j}" for j in range(VOTERS)], inverted=True),
    "an inverted voter": lambda: _from_label(panel(), ["v1"], inverted=True),
    "constant voters": lambda: _votes(_votes(panel(), 1, voters=["v0", "v1"]), 0, voters=["v2"]),
    "all constant": lambda: _votes(panel(), 1),
    "a duplicated voter": lambda: _duplicated(panel()),
    "1 in 10,000": lambda: panel((10_000, 10_000, 10_000, 10_000), share=0.0001),
    "nearly all consistent": lambda: panel((400, 400, 400, 400), share=0.99),
    "labels independent of votes": lambda: _independent(panel()),
    "names with a slash": lambda: panel(names=["a/b", "a b", "../x", "d3"]),
    "ten thousand datasets": lambda: panel((2,) * 10_000),
    "names of every kind": lambda: panel(names=["CON", "..", "x" * 300, "日本語"]),
    "names that differ by case": lambda: panel(names=["A", "a", "É", "é"]),
    "voters that look like markup": lambda: panel(
        columns=["|", "<script>alert(1)</script>", "$x$ & y", "v[3]", "{v4}"]
    ),
    "names that look like numbers": lambda: panel(
        names=["1", "01", "1.0", "nan"], columns=["0", "1", "2", "nan", "None"]
    ),
    "a dataset called all": lambda: panel(names=["all", "simulated", "mean", "d3"]),
    "sizes far apart": lambda: panel((20_000, 4, 60, 300)),
}
"""Panels by what is odd about them; the first dataset is the target."""
