"""What a panel's card says of judges that grade: by level, and how alike they rank."""

import json

import numpy as np
import pytest
from scipy.stats import spearmanr

from deep.evaluate import clustered_share, panel_card
from deep.records import VoteMatrix
from tests.deep_commands import panel


def graded(n=60, *, labels=True):
    """Return a grader from 1 to 5, a score, one from 5 to 1 and a judge that votes."""
    rng = np.random.default_rng(0)
    y = np.arange(n) % 2
    grade = np.clip(np.round(2 + 2 * y + rng.normal(0, 1, n)), 1, 5)
    grade[:3] = np.nan
    numbers = np.column_stack([grade, rng.random(n), 6 - np.nan_to_num(grade, nan=2.0), y])
    names, scales = ["grader", "scorer", "turned", "voter"], ["1-5", "unit", "5-1", "binary"]
    documents = [str(row // 2) for row in range(n)]
    known = y if labels else [-1] * n
    return VoteMatrix(numbers, range(n), names, ["news"] * n, known, documents, scales=scales), numbers


def test_each_level_is_counted_with_its_share_of_consistent_items():
    """From the worst; a level that nobody gave is there; a score is counted in tenths."""
    votes, numbers = graded()
    rows = [row for row in panel_card(votes, n_boot=5, worth=False).levels if row["judge"] == "grader"]
    assert [row["answer"] for row in rows] == ["1", "2", "3", "4", "5"]
    for row in rows:
        at = numbers[:, 0] == float(row["answer"])
        assert row["items"] == row["labeled"] == at.sum()
        assert row["consistent"] == pytest.approx(votes.labels[at].mean())
        documents = votes.document_ids[at]
        assert (row["low"], row["high"]) == clustered_share(votes.labels[at] == 1, documents)
    card = panel_card(votes, n_boot=5, worth=False)
    answers = {judge: [row["answer"] for row in card.levels if row["judge"] == judge] for judge in votes.voter_names}
    assert answers["turned"] == ["5", "4", "3", "2", "1"]
    assert answers["scorer"][0] == "0 to 0.1"
    assert len(answers["scorer"]) == 10
    assert answers["voter"] == []
    assert sum(row["items"] for row in card.levels if row["judge"] == "scorer") == 60


def test_judges_that_grade_are_compared_by_rank():
    """On the items that both answer, as SciPy does."""
    votes, numbers = graded()
    result = panel_card(votes, n_boot=5, worth=False).rank_agreement
    both = ~np.isnan(numbers[:, 0])
    assert result[0, 1] == result[1, 0] == pytest.approx(spearmanr(numbers[both, 0], numbers[both, 1]).statistic)
    assert result[0, 2] == pytest.approx(1.0)
    assert result[3, 0] == pytest.approx(spearmanr(numbers[both, 0], numbers[both, 3]).statistic)


def test_without_labels_levels_are_counted_alone():
    """There is no share of consistent items."""
    card = panel_card(graded(labels=False)[0], n_boot=5, worth=False)
    assert {row["labeled"] for row in card.levels} == {0}
    assert card.as_dict()["levels"][0]["consistent"] is None
    assert np.isnan(card.frame("levels")["low"]).all()
    assert card.frame("rank_agreement").shape == (4, 5)


def test_a_panel_of_votes_has_no_levels():
    """Its JSON is as before."""
    votes, _ = graded()
    card = panel_card(votes.judges([3]), n_boot=5, worth=False).as_dict()
    assert not {"levels", "rank_agreement"} & card.keys()


def test_the_command_shows_grades_as_grades(tmp_path, capsys):
    """A table for each scale: items by level, and the share that is consistent."""
    votes, numbers = graded()
    path = tmp_path / "grades.csv"
    lines = ["dataset,item_id,label,grader,scorer,turned,voter"]
    for row, cells in enumerate(numbers.tolist()):
        message = ",".join("" if np.isnan(cell) else repr(cell) for cell in cells)
        lines.append(f"news,{row},{votes.labels[row]},{message}")
    path.write_text("\n".join(lines) + "\n")
    words = [str(path), "--n-boot", "5", "--no-worth", "--scale", "turned=5-1"]
    assert panel(words) == 0
    shown = capsys.readouterr().out
    for scale in ("1-5", "unit", "5-1"):
        assert f"Answers on the scale {scale} (items, % of them consistent" in shown
    at = numbers[:, 0] == 5
    assert f"{at.sum()} ({100 * votes.labels[at].mean():.0f})" in shown
    assert panel([*words, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["levels"][4]["items"] == at.sum()
