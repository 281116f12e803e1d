"""The card of each judge: its figures are those of other libraries and of sums by hand, and its lists are in order."""

import json
import re
from dataclasses import replace

import krippendorff
import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr
from sklearn.metrics import balanced_accuracy_score, cohen_kappa_score, confusion_matrix

from deep.cli import main
from deep.console import card_lines
from deep.datasets import PeopleLabels, VoterUsage, read_people, read_reasons, read_votes
from deep.evaluate import clustered_share, panel_card, people_words
from deep.exceptions import InputError
from deep.features import agreement_interval, cohen_kappa
from deep.records import VoteMatrix
from tests.deep_commands import panel

KEYS = ["dataset", "item_id"]
EXPERTS = ["expert_1", "expert_2", "expert_3"]


@pytest.fixture(scope="module")
def summeval(data_home):
    """Return the votes, and the labels of three experts with the documents that the ids name."""
    folder = data_home / "summeval_llm"
    votes = read_votes(folder / "votes_ge5.csv")
    grades = pd.read_csv(folder / "scores.csv")
    people = read_people(folder / "scores.csv", votes, people=EXPERTS, consistent_from=5)
    documents = np.array([item.partition("|")[2] for item in votes.item_ids], object)
    return votes, PeopleLabels(people.names, people.ratings, document_ids=documents), grades


@pytest.fixture(scope="module")
def summeval_card(summeval):
    """Return the card of its judges against the experts, without the fits that say what a judge adds."""
    votes, people, _ = summeval
    return panel_card(votes, people, n_boot=50, limit=3, worth=False)


@pytest.fixture(scope="module")
def alttest(data_home):
    """Return votes with the labels beside them."""
    return read_votes(data_home / "alttest" / "votes.parquet")


@pytest.fixture(scope="module")
def fect(data_home, tmp_path_factory):
    """Return the votes of lexical checks on FECT, which abstain often, and the files of them."""
    out = tmp_path_factory.mktemp("fect") / "votes.parquet"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DEEP_DATA_HOME", str(data_home))
        assert main(["ask", "fect", "--lexical", "numbers,entities,coverage,opposites", "--out", str(out)]) == 0
    return read_votes(out), out


def check_against_people(card, votes, labels):
    """Hold every figure of every judge to other libraries and to sums by hand."""
    frame = card.frame("judges").set_index("judge")
    for column, name in enumerate(votes.voter_names):
        own = votes.votes[:, column]
        both = (own >= 0) & (labels >= 0)
        vote, label = own[both].astype(int), np.asarray(labels)[both].astype(int)
        row = frame.loc[name]
        tn, fp, fn, tp = confusion_matrix(label, vote, labels=[0, 1]).ravel()
        counts = row[["true_negative", "false_positive", "false_negative", "true_positive"]]
        assert counts.tolist() == [tn, fp, fn, tp]
        assert row["kappa"] == pytest.approx(cohen_kappa_score(label, vote), abs=1e-12)
        alpha = krippendorff.alpha(np.stack([label, vote]), level_of_measurement="nominal", value_domain=[0, 1])
        assert row["alpha"] == pytest.approx(alpha, abs=1e-12)
        assert row["tpr"] == pytest.approx(sum(vote[label == 1]) / sum(label), abs=1e-12)
        assert row["tnr"] == pytest.approx(sum(1 - vote[label == 0]) / sum(1 - label), abs=1e-12)
        assert row["balanced_accuracy"] == pytest.approx(balanced_accuracy_score(label, vote), abs=1e-12)
        assert row["agreement"] == pytest.approx((vote == label).mean(), abs=1e-12)
        assert row["base_rate"] == pytest.approx(label.mean(), abs=1e-12)
        assert row["leniency"] == pytest.approx(vote.mean() - label.mean(), abs=1e-12)
        assert (row["n"], row["n_without_vote"]) == (both.sum(), ((labels >= 0) & (own < 0)).sum())
        for name_of in ("kappa", "tpr", "tnr"):
            low, high = row[f"{name_of}_ci"]
            assert low <= row[name_of] <= high
        assert row["n_disagreements"] == (vote != label).sum()


def test_experts_of_summeval(summeval, summeval_card):
    """Confusion, kappa, alpha and rates against the majority of three experts, and their own agreement first."""
    (votes, people, grades), card = summeval, summeval_card
    rated = (grades[EXPERTS] >= 5).astype(int).to_numpy()
    labels = (rated.sum(axis=1) >= 2).astype(int)
    assert people.labels.tolist() == labels.tolist()
    check_against_people(card, votes, labels)
    measured = card.frame("people").set_index("name")["value"]
    assert measured["Cohen's kappa, expert_1 and expert_3"] == pytest.approx(
        cohen_kappa_score(rated[:, 0], rated[:, 2])
    )
    alpha = krippendorff.alpha(rated.T, level_of_measurement="nominal")
    assert measured["Krippendorff's alpha"] == pytest.approx(alpha, abs=1e-12)
    assert (card.n_documents, card.n_tied, card.n_replaced) == (100, 0, (labels != grades["label"]).sum())
    by_person = card.frame("by_person").set_index(["judge", "person"])["kappa"]
    judge = votes.voter_names[0]
    assert by_person[judge, "expert_2"] == pytest.approx(cohen_kappa_score(votes.votes[:, 0], rated[:, 1]))
    of_m10 = card.frame("by_dataset").set_index(["judge", "dataset"]).loc[(judge, "M10")]
    mine = votes.datasets == "M10"
    assert of_m10["kappa"] == pytest.approx(cohen_kappa_score(votes.votes[mine, 0], labels[mine]))


def test_a_card_says_whose_labels_it_has(summeval_card):
    """Of several people, of nobody by name, and of none; an interval that there is not is left empty."""
    card = summeval_card
    assert people_words(card) == "The label is the majority of 3 people; 0 tied items are left out."
    alone = replace(card, people=())
    assert people_words(alone) == "Each item has one label, so agreement between people cannot be measured."
    assert people_words(replace(alone, n_labeled=0)).startswith("No labels: ")
    known = card.people_agreement[0]
    lacks = replace(card, people_agreement=({**known, "low": None, "high": None},))
    value = f"{known['value']:.2f}"
    lines = [next(line for line in card_lines(one, {}) if known["name"] in line) for one in (card, lacks)]
    assert re.search(rf" {value} +{known['low']:.2f} to ", lines[0])
    assert lines[1].split()[-1] == value


def test_alttest_by_the_labels_beside_the_votes(alttest):
    """Ten datasets of several base rates; nobody is named, so nothing is said of people's agreement."""
    card = panel_card(alttest, n_boot=50, worth=False)
    check_against_people(card, alttest, alttest.labels)
    assert (card.people, card.people_agreement, card.n_labeled) == ((), (), len(alttest.labels))
    voted = [(alttest.votes[alttest.datasets == name] >= 0).any(axis=0).sum() for name in alttest.dataset_names]
    assert len(card.frame("by_dataset")) == sum(voted)


def test_fect_with_judges_that_abstain(fect):
    """What a judge leaves out is counted, and is in no figure; each missing vote has its reason."""
    votes, out = fect
    card = panel_card(votes, failures=read_reasons([out], votes), n_boot=50, worth=False)
    check_against_people(card, votes, votes.labels)
    for column, each in enumerate(card.judges):
        assert each.itself.reasons == {"abstained": (votes.votes[:, column] < 0).sum()}
        assert each.itself.failure_rate == 0
        assert each.itself.coverage == pytest.approx((votes.votes[:, column] >= 0).mean())


def test_kappa_between_judges(summeval, summeval_card):
    """Each pair as scikit-learn has it, on the items that both vote on."""
    votes, between = summeval[0], summeval_card.between
    both = (votes.votes[:, 0] >= 0) & (votes.votes[:, 5] >= 0)
    assert between[0, 5] == pytest.approx(cohen_kappa_score(votes.votes[both, 0], votes.votes[both, 5]))
    assert np.allclose(between, between.T)
    assert np.diag(between).tolist() == [1.0] * 9


def votes_of(rows, labels, *, datasets=None, documents=None):
    """Return a matrix of votes."""
    k = len(rows[0])
    return VoteMatrix(
        rows, range(len(rows)), [f"j{i}" for i in range(k)], datasets or ["d"] * len(rows), labels, documents
    )


def test_disagreements_are_worst_first():
    """Unanimous people before divided ones, and a judge alone before one with company; equals in the order of rows."""
    votes = votes_of([[0, 0], [0, 1], [1, 0], [1, 1]], [-1] * 4)
    people = PeopleLabels(("a", "b", "c"), np.array([[1, 1, 1], [1, 1, 1], [0, 0, 1], [1, 1, 1]], np.int8))
    card = panel_card(votes, people, n_boot=10)
    first = card.judges[0]
    assert first.n_disagreements == 3
    assert [(row["item_id"], row["severity"]) for row in first.disagreements] == [
        ("1", 1.0),
        ("2", pytest.approx(1 / 3)),
        ("0", 0.0),
    ]
    assert [row["item_id"] for row in card.doubtful_labels] == ["0"]
    assert panel_card(votes, people, limit=1, n_boot=10).judges[0].disagreements == first.disagreements[:1]


def test_a_tie_is_dropped_and_counted():
    """Two people who differ leave an item without a label; one who is alone decides."""
    people = PeopleLabels(("a", "b"), np.array([[1, 0], [1, -1], [0, 0], [-1, -1]], np.int8))
    card = panel_card(votes_of([[1], [1], [1], [1]], [1, -1, 1, 1]), people, n_boot=10)
    assert (people.labels.tolist(), card.n_tied, card.n_labeled) == ([-1, 1, 0, -1], 1, 2)
    assert card.n_replaced == 1
    assert (card.judges[0].people.true_positive, card.judges[0].people.false_positive) == (1, 1)
    assert card.worth is None
    assert card.worth_missing == "There is one judge."


def usage_of(samples, rows=None, *, cost=None):
    """Return what a file of judgments would say of one voter."""
    samples = np.array(samples, np.int8)
    rows = np.arange(len(samples)) if rows is None else np.array(rows)
    return VoterUsage(len(samples), cost, None, None, sample_rows=rows, samples=samples)


def test_consistency_of_repeated_samples():
    """Pairs that agree, alpha, ties; a sample without a vote makes no pair."""
    samples = [[1, 1, 1], [1, 0, -1], [0, 0, 1], [-1, -1, 1]]
    own = panel_card(votes_of([[1], [-1], [0], [1]], [-1] * 4), usage={"j0": usage_of(samples)}).judges[0].itself
    assert own.consistency == pytest.approx((3 + 0 + 1) / (3 + 1 + 3))
    assert (own.n_sampled, own.ties) == (4, 1)
    assert own.unanimous == pytest.approx(1 / 3)
    known = np.where(np.array(samples) < 0, np.nan, samples)
    assert own.consistency_alpha == pytest.approx(krippendorff.alpha(known.T, level_of_measurement="nominal"))


def coins(seed, n=3000, flip=(0.2, 0.2, 0.2), shared=()):
    """Return labels and votes of judges that err by themselves; those in `shared` all err where the first does."""
    draw = np.random.default_rng(seed)
    labels = draw.integers(0, 2, n)
    wrong = draw.random((n, len(flip))) < flip
    for column in shared:
        wrong[:, column] = wrong[:, 0]
    return labels, np.where(wrong, 1 - labels[:, None], labels[:, None])


def test_a_copy_is_dropped_first():
    """Of three judges, two of which are one, a copy goes first where prices are equal or unknown."""
    labels, votes = coins(0, shared=[1])
    card = panel_card(votes_of(votes, labels), n_boot=10)
    assert card.drop_first in ("j0", "j1")
    assert card.frame("steps")["n_judges"].tolist() == [3, 2, 1]
    assert card.judges[2].others.votes_without == pytest.approx(1.0)
    assert card.effective_votes == pytest.approx(1.8, abs=0.1)


def test_a_dear_judge_is_dropped_first_where_prices_are_known():
    """Three independent judges, one of which costs a hundred times as much."""
    labels, votes = coins(1)
    usage = {f"j{i}": VoterUsage(3000, cost, None, None) for i, cost in enumerate((3.0, 300.0, 3.0))}
    card = panel_card(votes_of(votes, labels), usage=usage, n_boot=10)
    assert card.cost_per_1000 == pytest.approx(102.0)
    assert card.effective_votes_a_dollar == pytest.approx(card.effective_votes / 0.102)
    assert card.drop_first == "j1"


@pytest.mark.parametrize("seed", range(3))
def test_the_judge_that_is_noise_is_sampled_twice(seed):
    """A judge whose errors are drawn anew each time gains by a second sample; one that repeats itself does not."""
    draw = np.random.default_rng(seed)
    labels, votes = coins(seed)
    second = np.where(draw.random(3000) < 0.2, 1 - labels, labels)
    usage = {
        "j0": usage_of(np.column_stack([votes[:, 0], votes[:, 0]])),
        "j1": usage_of(np.column_stack([votes[:, 1], second])),
    }
    card = panel_card(votes_of(votes, labels), usage=usage, n_boot=10)
    gains = card.frame("judges")["second_sample"]
    assert card.sample_twice == "j1"
    assert gains[1] == pytest.approx(1.0, abs=0.3)
    assert gains[0] < 0
    assert np.isnan(gains[2])


def test_intervals_cover_at_their_level():
    """Of judges whose hits share documents, 95 % intervals cover about so often; those that ignore it do not."""
    draw = np.random.default_rng(5)
    covered, ignored, kappas, n = 0, 0, 0, 200
    documents = np.repeat(np.arange(60), 8)
    for _ in range(n):
        rate = np.repeat(draw.beta(2.0, 1.0, 60), 8)
        hits = draw.random(480) < rate
        low, high = clustered_share(hits, documents)
        covered += low <= 2 / 3 <= high
        low, high = clustered_share(hits, None)
        ignored += low <= 2 / 3 <= high
        labels = draw.integers(0, 2, 480)
        ratings = np.column_stack([labels, np.where(hits, labels, 1 - labels)])
        low, high = agreement_interval(cohen_kappa, ratings, documents=documents, n_boot=300)
        kappas += low <= 1 / 3 <= high
    assert 0.90 <= covered / n <= 0.99
    assert ignored / n < 0.88
    assert 0.88 <= kappas / n <= 0.99


def test_intervals_at_the_edge():
    """A judge that never errs is not certain, less so the fewer its documents; no items, no interval."""
    few, many = (clustered_share([True] * 40, np.arange(40) // size)[0] for size in (10, 1))
    assert 0.2 < few < many < 1
    assert np.isnan(clustered_share([], None)).all()


def test_rows_repeated_in_documents_widen_the_interval():
    """The same items ten times over, in the documents of the first, say no more than the first."""
    ratings = np.column_stack([np.tile([1, 1, 0, 1, 0, 0], 20), np.tile([1, 0, 0, 1, 1, 0], 20)])
    once = agreement_interval(cohen_kappa, ratings)
    copies = agreement_interval(cohen_kappa, np.repeat(ratings, 10, axis=0), documents=np.repeat(np.arange(120), 10))
    assert copies == pytest.approx(once)


def test_parts_are_tables_and_json(summeval_card):
    """Every part has a table, of which an unknown one is refused; the whole is JSON without NaN."""
    card = summeval_card
    for part in ("judges", "people", "by_dataset", "by_person", "disagreements", "between", "error_correlation"):
        assert len(card.frame(part)) > 0
    kappas = [each.people.kappa for each in card.judges]
    assert card.frame("judges")["kappa"].tolist() == kappas
    assert card.frame("reasons").to_dict("records") == [{"judge": "gpt-4-0314__rts", "reason": "unknown", "items": 1}]
    assert len(card.frame("doubtful_labels")) == 3
    text = json.dumps(card.as_dict(), allow_nan=False)
    assert json.loads(text)["cards"][5]["judge"] == "gpt-4-0314__rts"
    with pytest.raises(InputError, match="`part` must be one of between, by_dataset"):
        card.frame("nothing")


@pytest.mark.parametrize(
    ("labels", "datasets", "why"),
    [
        ([-1] * 40, ["d"] * 40, "No dataset has both labels, 1 and 0."),
        ([1] * 40, ["d"] * 40, "No dataset has both labels, 1 and 0."),
        ([0, 1] * 20, ["c", "c", "d", "d"] * 10, "or of at least three. Got two."),
        ([1, *[0] * 39], ["d"] * 40, "class"),
    ],
)
def test_why_the_worth_cannot_be_measured(labels, datasets, why):
    """All else that can be measured is."""
    card = panel_card(votes_of([[1, 0], [0, 1]] * 20, labels, datasets=datasets), n_boot=10)
    assert card.worth is None
    assert why in card.worth_missing
    assert card.judges[0].itself.coverage == 1
    assert (card.error_correlation is None) == (max(labels) < 0)
    json.dumps(card.as_dict(), allow_nan=False)


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
