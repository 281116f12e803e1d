"""`deep panel`: what it prints, and how it refuses."""

import json

import numpy as np
import pandas as pd
import pytest

from tests.deep_commands import panel as main
from tests.deep_commands import votes as ask
from tests.scripted_llm import ScriptedLLM


@pytest.fixture
def table(tmp_path):
    """Return a table of two judges on three datasets."""
    rows = [f"d{i % 3},{i},{i % 2},{(i + i // 7) % 2},{i % 2 if i % 5 else 1 - i % 2}" for i in range(120)]
    path = tmp_path / "v.csv"
    path.write_text("\n".join(["dataset,item_id,label,a,b", *rows]))
    return path


def test_simulated_panel(capsys):
    """The ten simulated judges are worth few, and every judge is kept or dropped."""
    assert main(["--json", "--n-boot", "20"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["votes"] == "simulated"
    assert 1 < result["effective_votes"] < 5
    assert sorted(result["keep"] + result["drop"]) == sorted(result["judges"])
    assert [panel["n_judges"] for panel in result["steps"]] == list(range(10, 0, -1))
    assert [card["judge"] for card in result["cards"]] == result["judges"]


def test_text_says_what_to_do(table, capsys):
    """The card of each judge, then a line of recommendation each; the option is the same as the word."""
    assert main([str(table), "--full"]) == 0
    out = capsys.readouterr().out
    assert "Keep " in out
    assert "SIMULATED" not in out
    assert "Panel minus best judge (b)" in out
    assert "Against people (1 = consistent; 95 % intervals, clustered by item)" in out
    assert "24 of 120" in out
    assert main(["--votes", str(table), "--full"]) == 0
    assert capsys.readouterr().out == out


def test_a_missing_vote_of_another_judge_is_not_the_best_ones(table, capsys):
    """Beside the best judge, which the panel is held against on the items that it votes on."""
    table.write_text(f"{table.read_text()}\nd0,120,1,,1")
    assert main([str(table), "--n-boot", "20"]) == 0
    message = "Panel minus best judge (b): "  # which has all its votes
    assert message in capsys.readouterr().out


def test_one_voter_has_a_card(tmp_path, capsys):
    """A single judge is held against people; what needs several is left out, and said."""
    (tmp_path / "v.csv").write_text("dataset,item_id,label,a\nd,1,1,1\nd,2,0,0\nd,3,0,\n")
    assert main([str(tmp_path / "v.csv"), "--full"]) == 0
    out = capsys.readouterr().out
    assert "The benefit of the panel was not measured. There is one judge." in out
    assert "1 unknown" in out
    assert "effective" not in out.replace("effective votes a dollar", "")


def test_votes_without_labels(tmp_path, capsys):
    """The judges against themselves, and no figure that needs a label."""
    (tmp_path / "v.csv").write_text("dataset,item_id,a,b\nd,1,1,1\nd,2,0,0\n")
    assert main([str(tmp_path / "v.csv"), "--full"]) == 0
    out = capsys.readouterr().out
    assert "Against itself" in out
    assert "Against people" not in out


def test_people_come_first_and_json_goes_to_a_file_too(table, tmp_path, capsys):
    """Annotators' labels replace those beside the votes; the file holds what `--json` prints."""
    rows = [
        (f"d{i % 3}", str(i), who, i % 2 if who == "Ann" or i % 10 else 1 - i % 2) for i in range(60) for who in "AB"
    ]
    frame = pd.DataFrame(rows, columns=["dataset", "item_id", "annotator", "label"])
    frame["annotator"] = frame["annotator"].map({"A": "Ann", "B": "Bob"})
    frame.to_csv(tmp_path / "people.csv", index=False)
    words = [str(table), "--labels", str(tmp_path / "people.csv"), "--out", str(tmp_path / "card.json")]
    assert main([*words, "--full"]) == 0
    out = capsys.readouterr().out
    assert out.index("Krippendorff's alpha") < out.index("Against people")
    assert main([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads((tmp_path / "card.json").read_text())


def test_texts_costs_and_samples_of_a_run(tmp_path, monkeypatch, capsys):
    """Asked twice at a price: consistency, dollars, votes a dollar, and the claims of the worst disagreements."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    claims = tmp_path / "claims.csv"
    rows = [(f"It rained {i} days.", f"Day {i} was wet.", i % 2) for i in range(30)]
    pd.DataFrame(rows, columns=["source", "claim", "label"]).to_csv(claims, index=False)
    (tmp_path / "prices.toml").write_text("[tiny]\ninput = 1.0\noutput = 4.0\n")
    asked = iter(range(10_000))
    out = tmp_path / "votes.parquet"
    with ScriptedLLM(lambda _: f"So.\nVERDICT: {'NOT ' * (next(asked) % 3 == 0)}SUPPORTED") as server:
        words = ["--prompt", "deep-strict-steps", "deep-numbers", "--llm", "tiny", "--samples", "2", "--out", str(out)]
        priced = ["--base-url", server.url, "--prices", str(tmp_path / "prices.toml"), "--json"]
        assert ask([str(claims), *words, *priced]) == 0
    capsys.readouterr()
    assert main([str(out), "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    own = result["cards"][0]["itself"]
    assert own["n_sampled"] == 30
    assert 0 < own["consistency"] < 1
    assert own["ties"] == own["reasons"]["abstained"] > 0
    assert result["cost_per_1000"] == pytest.approx(sum(c["others"]["cost_per_1000"] for c in result["cards"]))
    assert result["effective_votes_a_dollar"] == pytest.approx(
        1000 * result["effective_votes"] / result["cost_per_1000"]
    )
    assert main([str(out), "--full"]) == 0
    printed = capsys.readouterr().out
    assert " was wet." in printed
    claims.unlink()
    assert main([str(out), "--full"]) == 0
    printed = capsys.readouterr().out
    assert " was wet." not in printed
    assert "is gone, so ids replace texts" in printed


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--people", "a"], "`labels` must be given with `people` and `consistent_from`. Got none."),
        (["--out", "card.txt"], "`out` must end in .json. Got 'card.txt'."),
        (["--limit", "-1"], "`limit` must be 0 or more. Got -1."),
        (["--labels", "none.csv"], "`paths`"),
    ],
)
def test_refusals(table, words, message, capsys):
    """One line, exit 2."""
    assert main([str(table), *words]) == 2
    assert capsys.readouterr().err.startswith(f"error: {message}")


def test_any_number_may_be_listed(table, capsys):
    """More than a machine can count is all."""
    assert main([str(table), "--limit", "9" * 30, "--n-boot", "1"]) == 0
    assert capsys.readouterr().err == ""


def test_more_resamples_than_can_be_drawn(table, capsys):
    """They would take all memory, or hours."""
    with pytest.raises(SystemExit) as ended:
        main([str(table), "--n-boot", "1000001"])
    assert ended.value.code == 2
    assert "argument --n-boot: must be at most 1,000,000. Got 1000001" in capsys.readouterr().err


def test_documents_of_examples_cluster_the_intervals(table, tmp_path, capsys):
    """Where the votes name none; items that all share a document leave wider intervals than items alone."""
    rows = [(f"d{i % 3}", str(i), "s", "c", f"doc{i % 6}") for i in range(120)]
    names = ["dataset", "example_id", "source", "claim", "document_id"]
    pd.DataFrame(rows, columns=names).to_csv(tmp_path / "claims.csv", index=False)
    result = []
    for more in ([], ["--examples", str(tmp_path / "claims.csv")]):
        assert main([str(table), "--no-worth", "--json", *more]) == 0
        result.append(json.loads(capsys.readouterr().out))
    alone, clustered = result
    assert (alone["n_documents"], clustered["n_documents"]) == (None, 6)
    (low, high), (least, most) = (each["cards"][0]["people"]["tpr_ci"] for each in result)
    assert most - least > high - low
    assert alone["cards"][0]["people"]["tpr"] == clustered["cards"][0]["people"]["tpr"]


def test_sixty_judges_fit_a_screen(tmp_path, monkeypatch, capsys):
    """A line each of the fifteen best, in columns that fit; names lose the hash where that tells them apart no more."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 200)
    votes = {f"judge-{i:02}@{i:08x}": np.where(rng.random(200) < 0.7, labels, 1 - labels) for i in range(60)}
    frame = pd.DataFrame({"dataset": "d", "item_id": [str(i) for i in range(200)], "label": labels, **votes})
    frame.to_csv(tmp_path / "v.csv", index=False)
    monkeypatch.setenv("COLUMNS", "80")
    assert main([str(tmp_path / "v.csv"), "--no-worth", "--n-boot", "10"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 40
    rows = [line for line in lines if line.startswith("  judge")]
    assert len(rows) == 16
    assert max(map(len, rows)) <= 80
    assert "@" not in "".join(rows)
    accuracy = [float(row.split()[1]) for row in rows[1:]]
    assert accuracy == sorted(accuracy, reverse=True)


def test_errors_that_were_never_made_are_alike_to_none(tmp_path, capsys):
    """Two judges that agree on each of 18 items, and err on none, are no pair of whom errors are told."""
    frame = pd.DataFrame({"dataset": "d", "item_id": range(18), "label": [0, 1] * 9, "a": [0, 1] * 9, "b": [0, 1] * 9})
    frame.to_csv(tmp_path / "v.csv", index=False)
    assert main([str(tmp_path / "v.csv"), "--no-worth", "--n-boot", "10"]) == 0
    assert "too few common errors to tell" in capsys.readouterr().out


def test_the_best_judge_is_the_first_of_the_table(tmp_path, capsys):
    """One that is often silent, and right where it is not, leads both; a missing vote is no vote for consistent."""
    rng, n = np.random.default_rng(0), 300
    label = rng.integers(0, 2, n)
    noisy = {f"j{k}": np.where(rng.random(n) < 0.3, 1 - label, label) for k in range(4)}
    silent = np.where(rng.random(n) < 0.5, None, np.where(rng.random(n) < 0.02, 1 - label, label))
    frame = pd.DataFrame({"dataset": [f"d{i % 3}" for i in range(n)], "item_id": range(n), "label": label, **noisy})
    frame.assign(silent=silent).to_csv(tmp_path / "v.csv", index=False)
    assert main([str(tmp_path / "v.csv"), "--n-boot", "20", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    accuracy = {each["judge"]: each["people"]["balanced_accuracy"] for each in result["cards"]}
    assert result["best_judge"] == max(accuracy, key=accuracy.get) == "silent"
    assert result["gain"] < 0.02  # on the items that it votes on
    assert not result["one_judge"]  # half of the items would have no decision
    assert main([str(tmp_path / "v.csv"), "--n-boot", "20"]) == 0
    lines = capsys.readouterr().out.splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("Each judge, in percent"))
    assert lines[at + 2].split()[0] == "silent"
    assert any(line.startswith("Panel minus best judge (silent; on the ") for line in lines)
