"""Studies draw only where a test looks at what is drawn, and are run once for all that only read them."""

import contextlib
import io

import pytest

from tests.blank_figures import _blank_figures, blank

__all__ = ["_blank_figures", "blank"]


@pytest.fixture(scope="session")
def paper_run(tmp_path_factory):
    """Return the folder of one `deep paper` on three invented datasets, drawn, and what it prints on 200 columns."""
    from tests.deep_commands import paper
    from tests.guests.experiments.test_paper_command import QUICK, make_tables

    home, out = tmp_path_factory.mktemp("paper"), io.StringIO()
    votes, scores = make_tables(home)
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(out):
        patch.setenv("COLUMNS", "200")  # where each label stands beside its figures
        assert paper(["--votes", str(votes), "--scores", str(scores), "--out", str(home / "out"), *QUICK]) == 0
    return home / "out", out.getvalue()
