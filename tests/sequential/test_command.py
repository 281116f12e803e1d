"""Counting the questions that asking one by one saves."""

import json

import pytest

from tests.deep_commands import sequential as main


def test_simulated_panel_keeps_every_decision(capsys):
    """On the embedded votes no decision changes, and questions are saved on every dataset."""
    assert main(["--sizes", "3,5", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["votes"] == "simulated"
    assert [mean["judges"] for mean in found["means"]] == [3, 5]
    assert all(row["changed"] == 0 and row["saved"] > 0.1 for row in found["rows"])
    assert all(row["balanced_accuracy_panel"] == row["balanced_accuracy_sequential"] for row in found["rows"])


def test_table_says_that_it_is_simulated(capsys):
    """The printed table ends with the means and the notice."""
    assert main(["--sizes", "2", "--error-cost", "5"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-2].startswith("mean ")
    assert "SIMULATED" in lines[-1]


@pytest.mark.parametrize(
    ("words", "message"),
    [(["--sizes", "11"], "`sizes` must be whole numbers from 2 to 10"), (["--ensembler", "X"], "`ensembler` must be")],
)
def test_bad_options(words, message, capsys):
    """One line, exit 2."""
    assert main(words) == 2
    assert capsys.readouterr().err.startswith(f"error: {message}")


def test_one_voter_has_no_order(tmp_path, capsys):
    """Said as it is, with no range that holds nothing."""
    (tmp_path / "votes.csv").write_text("dataset,item_id,label,a\nx,1,1,1\nx,2,0,0\ny,1,1,1\ny,2,0,0\n")
    assert main(["--votes", str(tmp_path / "votes.csv")]) == 2
    assert capsys.readouterr().err.startswith("error: `votes` must have at least two voters")
