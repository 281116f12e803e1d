"""One decision: every table, program, server and page says the same of an item, by the rule of the model."""

import json
import re
import sqlite3
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import deep
from deep.asking import TextScorer
from deep.evaluate import DecisionCounts, Target, select_decisions, state_words, suspect_words
from deep.exceptions import InputError
from deep.integrations.committee import Verdict
from deep.integrations.serve import CheckOptions, create_app, serving
from deep.model import DecisionRule, HeldOutData
from deep.report import write_report
from tests.commands.model_case import frame_of
from tests.deep_commands import export, fit, score, votes
from tests.guests.serve.serving_case import ask
from tests.model.fitted import small_votes

N = 400
CHECKS = ["numbers", "entities", "negation"]


def claims():
    """Return pairs of texts, labeled; some have nothing that a check can judge."""
    rng = np.random.default_rng(0)
    for i in range(N):
        days, feet, place = rng.integers(1, 9), rng.integers(1, 9), rng.choice(["Basel", "Kyoto"])
        message, label = (days, 1) if rng.random() < 0.6 else (days + 1, 0)
        source = f"It rained for {days} days in {place}. The river rose by {feet} feet."
        claim = f"It did not rain for {message} days in {place}." if i % 3 else f"The river rose by {message} feet."
        yield deep.Example(source, "Yes." if i % 50 == 0 else claim, str(i), label=label, dataset="rain")


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """Return a folder with the claims, the checks' votes on them, and a model of those alone."""
    folder, examples = tmp_path_factory.mktemp("decision"), list(claims())
    rows = [{"source": e.source, "claim": e.claim, "example_id": e.example_id, "dataset": "rain"} for e in examples]
    pd.DataFrame(rows).to_csv(folder / "claims.csv", index=False)
    votes = deep.ask(examples, CHECKS)
    frame_of(votes).to_parquet(folder / "votes.parquet")
    deep.fit(replace(votes, labels=np.full(N, -1))).save(folder / "model.json")
    return folder


def by_table(folder, ending):
    """Return what `deep score --votes` writes."""
    out = folder / f"scores.{ending}"
    assert score([str(folder / "ruled.json"), "--votes", str(folder / "votes.parquet"), "--out", str(out)]) == 0
    table = pd.read_csv(out, dtype={"item_id": str}) if ending == "csv" else pd.read_parquet(out)
    return table.set_index("item_id")


def by_texts(folder):
    """Return what `deep score --input` writes."""
    out = folder / "texts.jsonl"
    assert score([str(folder / "ruled.json"), "--input", str(folder / "claims.csv"), "--out", str(out)]) == 0
    return pd.DataFrame(map(json.loads, out.read_text().splitlines())).set_index("item_id")


def by_database(folder):
    """Return what the table in SQL says, joined as the file says."""
    assert export([str(folder / "ruled.json"), "--to", "sql", "--out", str(folder / "model.sql")]) == 0
    script = (folder / "model.sql").read_text(encoding="utf-8")
    join = "\n".join(line[2:] for line in script.splitlines() if line.startswith("--   "))
    connection = sqlite3.connect(":memory:")
    connection.executescript(script)
    votes = pd.read_parquet(folder / "votes.parquet").astype(object)
    votes.where(votes.notna(), None).to_sql("votes", connection, index=False)
    result = pd.read_sql(join.replace("m.decision", "m.decision, m.sure, m.threshold"), connection)
    connection.close()
    return result.set_index("item_id")


def by_server(folder):
    """Return what the server answers."""
    texts = pd.read_csv(folder / "claims.csv", dtype=str)
    pairs = [{"id": row.example_id, "source": row.source, "claim": row.claim} for row in texts.itertuples()]
    with serving(create_app(deep.load(folder / "ruled.json"), CheckOptions())) as address:
        status, body, _ = ask(address, body=pairs)
    assert status == 200
    return pd.DataFrame(body["results"]).set_index("id")


def by_frame(folder):
    """Return what `Model.score_frame` gives."""
    return deep.load(folder / "ruled.json").score_frame(folder / "votes.parquet").set_index("item_id")


def by_scorer(folder):
    """Return what the scorers for MLflow, Inspect, DeepEval and Langfuse say, text by text."""
    texts, scorer = pd.read_csv(folder / "claims.csv", dtype=str), TextScorer(folder / "ruled.json")
    scored = [scorer.score(row.source, row.claim) for row in texts.itertuples()]
    named = {"decision": [Verdict.of(each).decision for each in scored], "item_id": texts["example_id"]}
    return pd.DataFrame([each.columns for each in scored]).assign(**named).set_index("item_id")


def by_page(folder):
    """Return what the page of a report holds."""
    page = write_report([folder / "ruled.json", folder / "votes.parquet"], folder / "report.html").read_text("utf-8")
    (data,) = re.findall(r'id="items-data">(.*?)</script>', page, re.DOTALL)
    items = json.loads(data)
    named = {"decision": items["decided"], "sure": items["sure"], "threshold": items["limit"]}
    return pd.DataFrame(named | {"item_id": items["id"]}).set_index("item_id")


@pytest.mark.parametrize("rule", ["balanced", "accuracy", "cost=1:2", "precision=0.8"])
def test_every_output_gives_the_same_decision(here, rule, tmp_path):
    """Of 400 items: files, frame, JSON, exported and others' scorers, a database, server and report."""
    for name in ("claims.csv", "votes.parquet"):
        (tmp_path / name).write_bytes((here / name).read_bytes())
    votes = deep.read_votes([str(here / "votes.parquet")])
    few = np.where(np.arange(N) < 100, votes.labels, -1)
    ruled = deep.load(here / "model.json").adapted(votes, few, target="rain", decide=rule)
    assert ruled.correction is not None
    ruled.save(tmp_path / "ruled.json")
    table = by_table(tmp_path, "parquet")
    voted = table["n_votes"] > 0
    assert 0 < (~voted).sum() < 100
    assert table["decision"].isna().equals(~voted)
    assert set(table.loc[voted, "decision"]) == {0, 1}
    assert (table["decision"][voted] == (table["p_consistent"] >= table["threshold"])[voted]).all()
    above, below = table["threshold"].clip(lower=2 / 3), table["threshold"].clip(upper=1 / 3)
    is_sure = (table["p_low"] >= above) | (table["p_high"] < below)
    assert (table["sure"] == (is_sure & voted)).all()
    assert table["threshold"].iloc[0] == ruled.threshold()
    same(table, by_table(tmp_path, "csv"), 1e-12)
    for output in (by_texts, by_database, by_frame, by_scorer, by_server):
        same(table, output(tmp_path), 1e-12)
    same(table, by_page(tmp_path), 1e-4)


def same(table, other, within):
    """Hold the decisions of another output against those of a table."""
    other = other.loc[table.index.astype(str)]
    assert len(other) == N
    for name in ("decision", "sure"):
        assert other[name].astype("Float64").fillna(-1).tolist() == table[name].astype("Float64").fillna(-1).tolist()
    np.testing.assert_allclose(other["threshold"].astype(float), table["threshold"], rtol=0, atol=within)


def test_select_keeps_decisions_of_the_rule(here):
    """It leaves some out, and changes none."""
    votes, model = deep.read_votes([str(here / "votes.parquet")]), deep.load(here / "model.json")
    model = model.adapted(votes, np.where(np.arange(N) < 100, votes.labels, -1), decide="cost=1:3")
    result = select_decisions(model, Target(votes), accuracy=0.95)
    decisions = model.scores_of(votes).decisions
    kept = [
        (message, bool(own))
        for (*_, message, _), own in zip(result.rows(), decisions, strict=True)
        if message is not None
    ]
    assert 0 < len(kept) < N
    assert all(message == own for message, own in kept)


@pytest.mark.parametrize(
    ("text", "p", "called"),
    [("accuracy", 0.5, True), ("accuracy", 0.49, False), ("cost=4:1", 0.79, False), ("cost=4:1", 0.8, True)],
)
def test_a_rule_of_costs_decides_where_the_expected_cost_is_less(text, p, called):
    """Of P alone, whatever the share of consistent items."""
    assert all((p >= DecisionRule.parse(text).threshold(share)) == called for share in (0.1, 0.9))


def test_the_balanced_rule_decides_at_the_share():
    """A P that rounding puts a little beside it is at it, and then consistent only if most items are."""
    below, above = DecisionRule().threshold(0.7), DecisionRule().threshold(0.3)
    assert 0.7 * (1 - 1e-9) < below <= 0.7 - 1e-13
    assert 0.3 * (1 + 1e-9) > above >= 0.3 + 1e-13
    assert "P is at least 0.700" in DecisionRule().sentence(below)
    assert "P is above 0.300" in DecisionRule().sentence(above)


def constant(vote, n, k, labels=()):
    """Return items on which all judges give one vote, the first of them labeled."""
    frame = pd.DataFrame({"item_id": map(str, range(n)), **{f"judge{j}": [vote] * n for j in range(k)}})
    return frame.assign(label=pd.array([*labels, *[None] * (n - len(labels))], dtype="Int8"))


LABELS = {"none": (), "zeros": (0,) * 6, "few ones": (1, 0, 0) * 10, "all": (1, 0, 0, 0) * 10}


@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
@pytest.mark.parametrize("k", [1, 9])
def test_what_every_judge_calls_inconsistent_is_not_called_consistent(k, labels):
    """Where one P stands for all items, it is at their share: the side of one half decides."""
    frame = constant(0, 40, k, labels)
    scored = deep.fit(frame).score_frame(frame)
    assert scored["p_consistent"].nunique() == 1
    assert scored["p_consistent"].max() < 0.5
    assert (scored["decision"] == 0).all()


@pytest.mark.parametrize("labels", [(), (0,) * 6], ids=["none", "zeros"])
@pytest.mark.parametrize("gaps", [0.3, 0.8])
@pytest.mark.parametrize("n_ones", [0, 1])
def test_a_row_of_few_zeros_is_not_called_consistent(n_ones, gaps, labels):
    """Where nearly all votes are 0, the mean P is far below one half, and rows with gaps stand above it."""
    frame, rng = constant(0.0, 40, 6, labels), np.random.default_rng(0)
    votes = np.where(rng.random((40, 6)) < gaps, np.nan, 0.0)
    votes[0] = 0
    votes[:n_ones, 0] = 1
    frame[[f"judge{j}" for j in range(6)]] = votes
    scored = deep.fit(frame).score_frame(frame)
    assert scored["p_consistent"].nunique() > 2
    assert not scored["decision"][(votes == 0).any(axis=1) & ~(votes == 1).any(axis=1)].eq(1).any()


@pytest.mark.parametrize("vote", [0, 1])
@pytest.mark.parametrize(("n", "k"), [(1, 1), (20, 6)])
def test_one_p_for_all_items_is_decided_alike_everywhere(vote, n, k, tmp_path):
    """By the frame, the table, the exported SQL, and for one text at a time."""
    frame = constant(vote, n, k).drop(columns="label").assign(dataset="d")
    frame.to_csv(tmp_path / "votes.csv", index=False)
    assert fit([str(tmp_path / "votes.csv"), "--out", str(tmp_path / "ruled.json")]) == 0
    model = deep.load(tmp_path / "ruled.json")
    result = [*model.score_frame(frame)["decision"]]
    out, sql = (tmp_path / name for name in ("scores.csv", "model.sql"))
    assert score([str(tmp_path / "ruled.json"), "--votes", str(tmp_path / "votes.csv"), "--out", str(out)]) == 0
    result += [*pd.read_csv(out)["decision"]]
    assert export([str(tmp_path / "ruled.json"), "--to", "sql", "--out", str(sql)]) == 0
    base = sqlite3.connect(":memory:")
    base.executescript(sql.read_text(encoding="utf-8"))
    same = " AND ".join(f"judge{j} = {vote}" for j in range(k))
    result += [base.execute(f"SELECT decision FROM deep_model WHERE {same}").fetchone()[0]]
    base.close()
    (row,) = model.scores_of(np.full((1, k), vote, dtype=np.int8), streamed=True).records()
    assert {*result, row["decision"]} == {vote}


def test_labels_of_a_dataset_with_one_p_decide_by_one_half():
    """A model of other datasets, corrected by labels of one on which all judges vote alike."""
    model = deep.fit(small_votes(("a", "b", "c", "d")))
    names = model.voter_names
    votes = np.zeros((30, len(names)), dtype=np.int8)
    adapted = model.adapted(votes, np.where(np.arange(30) < 8, 0, -1))
    assert not adapted.scores_of(votes).decisions.any()
    assert adapted.threshold() == pytest.approx(0.5)


@pytest.mark.parametrize(
    "text",
    ["", "best", "cost=1", "cost=0:1", "cost=1:nan", "cost=1:inf", "precision=1", "recall=x", "accuracy=1"],
)
def test_other_rules_are_refused(text):
    """By the forms that there are."""
    wanted = r"`decide` must be accuracy, balanced, cost=FP:FN, precision=SHARE or recall=SHARE, costs above 0"
    with pytest.raises(InputError, match=rf"{wanted}.*Got {re.escape(repr(text))}"):
        DecisionRule.parse(text)


@pytest.mark.parametrize("name", ["precision", "recall"])
def test_a_share_is_kept_on_labels(name):
    """On datasets left out the threshold keeps it, by the fewest errors of the other kind; the interval holds it."""
    model = deep.fit(small_votes(("a", "b", "c", "d")))
    rule = model.deciding(f"{name}=0.8").rule
    called = [(one, one.score >= rule.log_odds) for one in model.left_out.values()]
    total = [one.ones.sum() + one.zeros.sum() for one, _ in called]
    hits = sum(one.ones[on].sum() / n for (one, on), n in zip(called, total, strict=True))
    all_of = sum((one.ones + one.zeros)[on].sum() / n for (one, on), n in zip(called, total, strict=True))
    all_ones = sum(one.ones.sum() / n for (one, _), n in zip(called, total, strict=True))
    share = hits / (all_of if name == "precision" else all_ones)
    assert share >= 0.8 - 1e-9
    assert rule.kept.share == pytest.approx(share)
    assert rule.kept.low < share < rule.kept.high
    assert rule.kept.n_labels == len(small_votes(("a", "b", "c", "d")).labels)
    assert f"keeps a {name} of 0.8 on {rule.kept.n_labels} labels of 4 training datasets" in rule.sentence(0.5)


def test_the_interval_of_a_precision_covers_it():
    """At 90 %, on datasets of the same kind: within what 200 draws show."""
    rng, covered = np.random.default_rng(1), 0
    for _ in range(200):
        z = rng.normal(0, 1.5, 300)
        y = rng.random(300) < 1 / (1 + np.exp(-z))
        rule = DecisionRule.parse("precision=0.8").learn({"a": HeldOutData(z, y.astype(float), 1.0 - y)}, "a")
        fresh = rng.normal(0, 1.5, 20_000)
        truth = (1 / (1 + np.exp(-fresh)))[fresh >= rule.log_odds].mean()
        covered += rule.kept.low <= truth <= rule.kept.high
    assert covered >= 160


def test_what_labels_cannot_give_is_refused():
    """A share that no threshold keeps, a model without labels, and one whose labels are not at hand."""
    votes = small_votes(("a", "b", "c"))
    model = deep.fit(votes)
    with pytest.raises(InputError, match=r"`decide` must be a share that some threshold keeps\. Got 'precision=0.9999"):
        model.deciding("precision=0.99999")
    alone = deep.fit(replace(votes, labels=np.full_like(votes.labels, -1)))
    with pytest.raises(InputError, match=r"for a model of no labeled datasets.*Give labels to `deep fit`"):
        alone.deciding("recall=0.9")
    adapted = model.adapted(votes.rows(votes.datasets == "a"), votes.labels[votes.datasets == "a"])
    with pytest.raises(InputError, match="`decide` must be given with the labels that corrected the model"):
        adapted.deciding("recall=0.9")
    own = model.adapted(votes.rows(votes.datasets == "a"), votes.labels[votes.datasets == "a"], decide="recall=0.9")
    assert own.rule.kept.of == "target, which corrected P"


def test_the_rule_goes_through_the_commands(tmp_path, capsys):
    """In the model file and in one sentence of what is printed."""
    frame_of(small_votes(("a", "b", "c"))).to_csv(tmp_path / "votes.csv", index=False)
    model = str(tmp_path / "model.json")
    assert fit([str(tmp_path / "votes.csv"), "--out", model, "--decide", "cost=2:1"]) == 0
    assert "rule: consistent if P is at least 0.667, because a wrong 'consistent' costs 2" in capsys.readouterr().out
    assert deep.load(model).rule == DecisionRule.parse("cost=2:1")
    words = [model, "--votes", str(tmp_path / "votes.csv"), "--out", str(tmp_path / "s.csv")]
    assert score(words) == 0
    assert capsys.readouterr().out.count("rule: consistent if P is at least 0.667") == 1
    assert score([*words, "--decide", "balanced", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)["decision"]
    assert result["decide"] == "balanced"
    assert set(result["thresholds"]) == {"a", "b", "c"}
    table = pd.read_csv(tmp_path / "s.csv")
    assert table.groupby("dataset")["threshold"].first().to_dict() == pytest.approx(result["thresholds"])
    assert fit([str(tmp_path / "votes.csv"), "--out", model, "--decide", "luck"]) == 2
    assert "`decide` must be accuracy, balanced" in capsys.readouterr().err


@pytest.mark.parametrize("ending", ["csv", "parquet", "jsonl"])
def test_texts_beside_scores(here, tmp_path, ending):
    """Of a file of examples, and of votes that remember theirs; a formula stays a text."""
    examples = pd.DataFrame(
        {"source": ["It rained for 3 days.", "=1+1"], "claim": ["It rained for 4 days.", "2 is 1+1."]}
    )
    examples.to_csv(tmp_path / "claims.csv", index=False)
    words = ["--lexical", *CHECKS, "--out", str(tmp_path / "votes.parquet")]
    assert votes([str(tmp_path / "claims.csv"), *words]) == 0
    given = ["--input", str(tmp_path / "claims.csv")]
    given = given if ending == "jsonl" else ["--votes", str(tmp_path / "votes.parquet")]
    out = tmp_path / f"scores.{ending}"
    assert score([str(here / "model.json"), *given, "--with-texts", "--out", str(out)]) == 0
    if ending == "jsonl":
        result = pd.DataFrame(map(json.loads, out.read_text().splitlines()))
    else:
        result = pd.read_csv(out) if ending == "csv" else pd.read_parquet(out)
    assert result["claim"].tolist() == examples["claim"].tolist()
    assert [text.lstrip("'") for text in result["source"]] == examples["source"].tolist()


def test_texts_need_a_table(here, capsys):
    """Printed scores of one pair show no texts."""
    words = ["--source-text", "It rained.", "--claim-text", "It rained.", "--with-texts"]
    assert score([str(here / "model.json"), *words]) == 2
    assert "`with_texts` must be given with `out` and without `to`" in capsys.readouterr().err


def test_the_terminal_says_the_state_in_the_words_of_the_pages(here, capsys):
    """Consistent, inconsistent, undecided with its leaning, or that no judge voted."""
    seen = set()
    for example in list(claims())[:12]:
        words = [str(here / "model.json"), "--source-text", example.source, "--claim-text", example.claim]
        assert score([*words, "--json"]) == 0
        row = json.loads(capsys.readouterr().out)
        assert score(words) == 0
        message = re.search(r"^decision: (.*)$", capsys.readouterr().out, re.MULTILINE)[1]
        assert message == state_words(decided=row["decision"], sure=bool(row["sure"]))
        seen.add(message.partition(",")[0])
    assert "undecided" in seen
    assert state_words(decided=None, sure=False) == "no judge voted"


def test_three_states_make_up_all_items(capsys, here):
    """Surely consistent, surely inconsistent, undecided with those that lean, and without a vote: each item once."""
    votes = [[1, 0, 0, 1, 0], [1, 1, 0, 0, 1], [1, 1, 1, 1, 0]]
    decided, sure, voted = (np.array(row, dtype=bool) for row in votes)
    names, p = np.arange(5).astype(str), np.linspace(0.1, 0.9, 5)
    counts = DecisionCounts()
    columns = {"p_consistent": p, "p_low": p, "p_high": p, "decision": decided, "sure": sure, "n_votes": voted}
    counts.add(names, names, columns)
    assert [line.strip() for line in suspect_words(counts).split("\n")] == [
        "1 inconsistent: P expects 0 of them to be wrong",
        "1 consistent: P expects 1 of them to be wrong",
        "2 undecided: 1 lean inconsistent, 1 consistent",
        "1 without a vote",
        "An item is decided where its whole 90 % interval gives that answer a chance of 2 in 3 or more.",
    ]
    assert not any(line.startswith("The highest P") for line in counts.lines())
    none = DecisionCounts(most=2)
    none.add(names, names, columns | {"sure": ~voted})
    assert suspect_words(none).endswith("below 2 in 3. Label about 30 of these claims to narrow the intervals.")
    assert suspect_words(none, labeled=True).endswith("includes chances below 2 in 3.")
    shown = [line.split()[0] for line in none.lines()]
    assert shown == ["The", "10.0", "30.0", "The", "70.0", "50.0"]  # the item of the highest P has no vote
    none.add(names, names, columns | {"p_consistent": p + 0.05, "sure": ~voted})
    assert [round(item.p, 2) for item in none.highest] == [0.75, 0.7]
    assert score([str(here / "model.json"), str(here / "votes.parquet"), "--out", str(here / "all.csv"), "--json"]) == 0
    result = json.loads(capsys.readouterr().out)["counts"]
    assert sum(result[state] for state in ("consistent", "inconsistent", "undecided", "unvoted")) == result["n"] > 0
