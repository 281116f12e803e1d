"""`deep panel`: what it prints, and how it refuses."""

import json

from tests.deep_commands import panel as main


def test_simulated_panel(capsys):
    """The ten simulated judges are worth few, and every judge is kept or dropped."""
    assert main(["--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["votes"] == "simulated"
    assert 1 < found["effective_votes"] < 5
    assert sorted(found["keep"] + found["drop"]) == sorted(found["judges"])
    assert [panel["n_judges"] for panel in found["steps"]] == list(range(10, 0, -1))


def test_text_says_what_to_do(tmp_path, capsys):
    """A line of recommendation each, in a table of few judges."""
    rows = [f"d{i % 3},{i},{i % 2},{(i + i // 7) % 2},{i % 2 if i % 5 else 1 - i % 2}" for i in range(120)]
    (tmp_path / "v.csv").write_text("\n".join(["dataset,item_id,label,a,b", *rows]))
    assert main(["--votes", str(tmp_path / "v.csv")]) == 0
    out = capsys.readouterr().out
    assert "Keep: " in out
    assert "SIMULATED" not in out
    assert "Panel minus best judge (b)" in out


def test_one_voter_is_refused(tmp_path, capsys):
    """One line, exit 2."""
    (tmp_path / "v.csv").write_text("dataset,item_id,label,a\nd,1,1,1\nd,2,0,0\n")
    assert main(["--votes", str(tmp_path / "v.csv")]) == 2
    assert capsys.readouterr().err.startswith("error: `votes` must have labeled rows and at least two voters.")
