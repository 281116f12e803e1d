"""Every odd panel is fitted or refused in one line, as training datasets, as own labels, and as a target."""

from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest

from deep.datasets import read_votes
from deep.exceptions import DeepWarning, InputError
from deep.model import fit, load
from tests.nasty_panels import PANELS

QUICK = ("all constant", "all inverted", "all perfect", "identical voters", "nearly all abstain", "two rows each")
HUGE = ("1 in 10,000", "ten thousand datasets")
EACH = [
    pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in sorted(PANELS) if name not in HUGE
]


def fitted(votes, way):
    """Return a model of all datasets, of two labels in three of the first, or of the others and the first."""
    if way == "all":
        return fit(votes)
    first = votes.dataset_names[0]
    if way == "target":
        return fit(votes, target=first)
    own = votes.rows(votes.datasets == first)
    return fit(replace(own, labels=np.where(np.arange(len(own.labels)) % 3, own.labels, -1)))


def always_right(name, way):
    """Expect a warning of a voter that is always right, on as many labels as make it doubtful: not on a few own."""
    doubtful = "perfect" in name and way != "own"
    return pytest.warns(DeepWarning, match="equals the label on all") if doubtful else nullcontext()


@pytest.mark.parametrize("name", EACH)
@pytest.mark.parametrize("way", ["all", "own", "target"])
def test_an_odd_panel_gives_p_or_one_line(name, way, tmp_path):
    """P lies strictly within 0 and 1 and within its interval, and a file brings it back."""
    PANELS[name]().to_csv(tmp_path / "votes.csv", index=False)
    try:
        votes = read_votes([str(tmp_path / "votes.csv")])
        with always_right(name, way):
            model = fitted(votes, way)
    except InputError as error:
        message = str(error)
    else:
        message = None
    if message is not None:
        assert message.isprintable()
        assert name not in ("plain", *QUICK)
        return
    p, (low, high) = model.score(votes), model.intervals(votes).T
    assert ((low > 0) & (low <= p) & (p <= high) & (high < 1)).all()
    model.save(tmp_path / "model.json")
    assert np.array_equal(load(tmp_path / "model.json").score(votes), p)
