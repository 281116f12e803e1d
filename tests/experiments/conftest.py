"""Studies draw only where a test looks at what is drawn, and are run once for all that only read them."""

import contextlib
import io
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


@pytest.fixture(scope="session")
def paper_run(tmp_path_factory):
    """Return the folder of one `deep paper` on three invented datasets, drawn, and what it prints on 200 columns."""
    from tests.deep_commands import paper
    from tests.experiments.test_paper_command import QUICK, make_tables

    home, out = tmp_path_factory.mktemp("paper"), io.StringIO()
    votes, scores = make_tables(home)
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(out):
        patch.setenv("COLUMNS", "200")  # where each label stands beside its figures
        assert paper(["--votes", str(votes), "--scores", str(scores), "--out", str(home / "out"), *QUICK]) == 0
    return home / "out", out.getvalue()
