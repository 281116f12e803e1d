"""Fixtures of runs that draw only where a test looks at what is drawn."""

from pathlib import Path

import pytest
from matplotlib.figure import Figure

from deep._util import figures


@pytest.fixture(scope="session")
def blank(tmp_path_factory):
    """Return the names of a figure with nothing on it, to be copied."""
    return figures.save_figure(Figure(figsize=(1, 1)), tmp_path_factory.mktemp("blank") / "blank")


@pytest.fixture(autouse=True)
def _blank_figures(request, monkeypatch, blank):
    """Save every figure as that one, which takes no time, unless the test is marked `figures`."""
    if request.node.get_closest_marker("figures") is not None:
        return

    def save(figure, path):
        made = tuple(Path(f"{path}{file.suffix}") for file in blank)
        for file, copy in zip(blank, made, strict=True):
            copy.write_bytes(file.read_bytes())
        return made

    monkeypatch.setattr(figures, "save_figure", save)
    monkeypatch.setattr(figures, "fit_to_phone", lambda _: False)
