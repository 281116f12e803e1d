"""Reports: what is in them, of a run, a model and votes, and that names and texts of others stay text."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

import deep
from deep.calibration import bootstrap_balanced_accuracy
from deep.cli import main
from deep.datasets import simulate_votes
from deep.evaluate import (
    STATES,
    DecisionCounts,
    MeasuredMethod,
    Target,
    canary_report,
    dataset_rows,
    decision_metrics,
    in_percent,
    label_badges,
    suspect_words,
)
from deep.exceptions import InputError
from deep.model import checksum, fit
from deep.report import write_report
from deep.report._chapters import drift_chapter
from deep.report._sources import ReportMaterial, read_material, score_by
from deep.report._verdict import N_BOOT, find_drift, histogram_picture, methods_of, ours, verdict_of
from tests.model.fitted import QUICK, small_votes

CHAPTERS = ["items", "headline", "reliability", "methods", "panel", "prior", "watch"]
HOSTILE = "<script>alert(1)</script>"
CLAIM = "<img src=x onerror=alert(1)>"


class Elements(HTMLParser):
    """Collects the start tags of a page, and the sections' ids."""

    def __init__(self):
        super().__init__()
        self.tags = []

    def handle_starttag(self, tag, attrs):
        """Keep it."""
        self.tags.append((tag, dict(attrs)))


def elements(path):
    """Return the elements of a page."""
    parser = Elements()
    parser.feed(path.read_text(encoding="utf-8"))
    return parser.tags


def chapters(path):
    """Return the anchors of its chapters."""
    return [attrs["id"] for tag, attrs in elements(path) if tag == "section"]


def items(path):
    """Return the data of the item browser."""
    text = path.read_text(encoding="utf-8")
    return json.loads(re.search(r'id="items-data">(.*?)</script>', text, re.DOTALL)[1])


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """Return the report of votes whose names and texts try to be markup."""
    folder = tmp_path_factory.mktemp("hostile")
    rng = np.random.default_rng(0)
    examples = ["dataset,example_id,source,claim,label"]
    votes = [f'dataset,item_id,label,{HOSTILE},"b ""quoted""",{"x" * 300}']
    for i in range(40):
        label = i % 2
        claim = f"{CLAIM} \u202e{i}" if i else "</script><script>alert(2)</script>"
        examples.append(f"news,<b>{i}</b>,The source {HOSTILE} {i}.,{claim},{label}")
        cast = [str(label) if rng.random() < 0.8 else "" for _ in range(3)]
        votes.append(f"news,<b>{i}</b>,{label},{','.join(cast)}")
    (folder / "claims.csv").write_text("\n".join(examples) + "\n", encoding="utf-8")
    (folder / "votes.csv").write_text("\n".join(votes) + "\n", encoding="utf-8")
    out = folder / "report.html"
    write_report([folder / "votes.csv"], out, examples=folder / "claims.csv")
    return out


def test_names_and_texts_stay_text(hostile):
    """No tag of theirs is a tag of the page, and the policy allows one script, by its hash."""
    result = elements(hostile)
    assert [tag for tag, _ in result].count("script") == 2
    assert not [attrs for tag, attrs in result if any(name.startswith("on") for name in attrs)]
    assert not [tag for tag, _ in result if tag in ("b", "img", "iframe", "object", "embed")]
    policy = next(attrs["content"] for tag, attrs in result if tag == "meta" and "http-equiv" in attrs)
    assert re.search(r"default-src 'none'; .*script-src 'sha256-[\w+/=]{44}'", policy)
    data = items(hostile)
    assert data["voters"][0] == HOSTILE
    assert len(data["voters"][2]) == 300
    assert sum(CLAIM in claim for claim in data["claim"]) == 39


def test_nothing_is_loaded(hostile):
    """No element refers to anything but a part of the page."""
    links = [attrs.get("href") or attrs.get("src") for _, attrs in elements(hostile)]
    assert all(link.startswith(("#", "data:")) for link in links if link is not None)


def test_every_source_has_every_chapter(tmp_path, capsys):
    """A model alone, a model with votes, and votes; the command names the file."""
    votes = simulate_votes(0)
    rows = votes.rows(np.arange(0, len(votes.labels), 10))
    table = written(tmp_path, rows)
    model, out = tmp_path / "model.json", tmp_path / "report.html"
    assert main(["fit", str(table), "--out", str(model)]) == 0
    for sources in ([model], [model, table], [table]):
        capsys.readouterr()
        assert main(["report", *map(str, sources), "--out", str(out)]) == 0
        assert capsys.readouterr().out == f"report: open {out}\n"
        assert chapters(out) == (CHAPTERS[1:] + CHAPTERS[:1] if sources == [model] else ["verdict", *CHAPTERS])
    assert len(items(out)["id"]) == len(rows.labels)


@pytest.mark.parametrize("n_judges", [3, 13])
def test_votes_without_labels_have_a_report(tmp_path, n_judges):
    """Without a label nothing says what a judge adds, be they few or many, and the page says so."""
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(rng.integers(0, 2, (40, n_judges)), columns=[f"j{i}" for i in range(n_judges)])
    frame.insert(0, "item_id", [f"i{i}" for i in range(40)])
    frame.insert(0, "dataset", "news")
    frame.to_csv(tmp_path / "votes.csv", index=False)
    out = write_report([tmp_path / "votes.csv"], tmp_path / "report.html")
    assert "The benefit of the panel was not measured. No dataset has both labels, 1 and 0." in out.read_text(
        encoding="utf-8"
    )


def test_people_stand_in_place_of_labels(tmp_path):
    """Their agreement comes first, the label is that of most of them, and ties are counted."""
    rng = np.random.default_rng(1)
    truth = np.arange(60) % 2
    rows = [f"news,i{i},{y},{y if rng.random() < 0.8 else 1 - y}" for i, y in enumerate(truth)]
    (tmp_path / "votes.csv").write_text("dataset,item_id,strict,lenient\n" + "\n".join(rows) + "\n")
    people = [f"i{i},{1 + 4 * y},{1 + 4 * y},{1 + 4 * y if i else 5}" for i, y in enumerate(truth)]
    (tmp_path / "grades.csv").write_text("item_id,ann,bob,eve\n" + "\n".join(people) + "\n")
    out = tmp_path / "report.html"
    words = ["--labels", str(tmp_path / "grades.csv"), "--people", "ann", "bob", "eve", "--consistent-from", "4"]
    assert main(["report", str(tmp_path / "votes.csv"), *words, "--out", str(out)]) == 0
    text = out.read_text(encoding="utf-8")
    assert "The label is the majority of 3 people; 0 tied items are left out." in text
    assert items(out)["label"] == [int(truth[int(name[1:])]) for name in items(out)["id"]]
    assert text.index("People among themselves") < text.index("Against people (1 = consistent")
    assert main(["report", str(tmp_path / "votes.csv"), "--people", "ann", "--out", str(out)]) == 2


def test_a_sample_is_said_to_be_one(tmp_path):
    """The items on which judges disagree most, and likely label errors, are in it for certain."""
    rng = np.random.default_rng(2)
    n = 15_000
    truth = rng.integers(0, 2, n)
    votes = np.where(rng.random((n, 6)) < 0.95, truth[:, None], 1 - truth[:, None])
    labels = truth.copy()
    labels[:20] = 1 - labels[:20]
    votes[:20] = truth[:20, None]
    votes[20:40, :3] = 0
    votes[20:40, 3:] = 1
    frame = pd.DataFrame(votes, columns=[f"j{i}" for i in range(6)])
    frame.insert(0, "label", labels)
    frame.insert(0, "item_id", [f"i{i}" for i in range(n)])
    frame.insert(0, "dataset", rng.choice(["a", "b"], n, p=[0.99, 0.01]))
    frame.to_parquet(tmp_path / "votes.parquet", index=False)
    out = write_report([tmp_path / "votes.parquet"], tmp_path / "report.html")
    data = items(out)
    assert "This page holds a SAMPLE: 12,000 of 15,000 items." in out.read_text(encoding="utf-8")
    assert {f"i{i}" for i in range(40)} <= set(data["id"])
    share = np.mean([data["datasets"][i] == "b" for i in data["dataset"]])
    assert share == pytest.approx((frame["dataset"] == "b").mean(), abs=0.001)


def test_texts_that_changed_are_not_shown(tmp_path, capsys):
    """The page says so, and ids stand in place of them; --examples reads the file all the same."""
    claims, votes, out = tmp_path / "claims.csv", tmp_path / "votes.parquet", tmp_path / "report.html"
    rows = [f"Sales rose to {i}.,Sales rose to {i + i % 2}.,{1 - i % 2}" for i in range(12)]
    claims.write_text("source,claim,label\n" + "\n".join(rows) + "\n")
    assert main(["ask", str(claims), "--lexical", "numbers", "coverage", "--out", str(votes)]) == 0
    write_report([votes], out)
    data = items(out)
    assert len(data["sources"]) == 12
    marked = [
        (i, p)
        for i, message in data["said"].items()
        for j in message.values()
        for p in j.get("passages", ())
        if "where" in p
    ]
    assert marked
    assert all(data[p["where"]][int(i)][p["start"] : p["end"]].strip() for i, p in marked if p["where"] == "claim")
    claims.write_text(claims.read_text() + "More.,More.,1\n")
    write_report([votes], out)
    assert "has changed since it was judged" in out.read_text(encoding="utf-8")
    assert "claim" not in items(out)
    write_report([votes], out, examples=claims)
    assert len(items(out)["claim"]) == 12
    capsys.readouterr()


@pytest.mark.parametrize(
    ("names", "match"),
    [
        (["a", "b"], "must hold at most one run or model.*Got 2 runs and 0 models"),
        (["empty"], "must be a folder that holds results.json"),
    ],
)
def test_odd_sources_are_refused(tmp_path, names, match):
    """In one line."""
    for name in names:
        (tmp_path / name).mkdir()
    with pytest.raises(InputError, match=match):
        write_report([tmp_path / name for name in names], tmp_path / "report.html")


@pytest.mark.parametrize("changed", [{"left_out_scores": {"datasets": {"a": []}}}, {"notes": [{}]}, {"notes": [True]}])
def test_a_model_that_others_changed_is_one_line(changed, tmp_path):
    """What describes a model and decides nothing may be of any shape, and may be looked at only as the page is made."""
    path = tmp_path / "model.json"
    fit(small_votes(("a", "b")), **QUICK).save(path)
    document = json.loads(path.read_text(encoding="utf-8"))
    document |= changed
    path.write_text(json.dumps(document | {"checksum": checksum(document)}), encoding="utf-8")
    with pytest.raises(InputError, match=r"`sources` must be as deep wrote them\. Got .* this is a bug of deep"):
        write_report([path], tmp_path / "report.html")


@pytest.mark.parametrize("error", [TypeError, LookupError])
def test_a_fault_of_deep_is_not_said_to_be_one_of_the_files(error, tmp_path, monkeypatch):
    """Votes are checked as they are read: with them alone it keeps its traceback; else its place is said, and whose."""
    table = tmp_path / "votes.csv"
    table.write_text("dataset,item_id,label,a,b\nnews,a,1,1,1\nnews,b,0,0,1\n")

    def broken(_):
        raise error("of deep")

    monkeypatch.setattr("deep.report._chapters.drift_chapter", broken)
    with pytest.raises(error, match="of deep"):
        write_report([table], tmp_path / "report.html")
    model = tmp_path / "model.json"
    fit(small_votes(("a", "b")), **QUICK).save(model)
    with pytest.raises(InputError, match=r"Got a \w+ \('?of deep'?\) at test_report\.py:\d+ in '.*'\. .*report it"):
        write_report([model], tmp_path / "report.html")


def test_drift_that_cannot_be_tested_is_said(tmp_path):
    """A table that lacks a judge of the model has a report, which says why drift was not tested."""
    votes = small_votes(("a", "b"))
    fit(votes, **QUICK).save(tmp_path / "model.json")
    table = written(tmp_path, votes.judges(range(1, votes.shape[1])), labels=False)
    out = write_report([tmp_path / "model.json", table], tmp_path / "report.html")
    assert "Drift was not tested: " in out.read_text(encoding="utf-8")


def test_votes_that_are_all_empty_have_a_report_by_share(tmp_path):
    """Nothing can be learned from them: P is the share of votes with one on each side, a half."""
    rows = "".join(f"news,{number},,\n" for number in range(20))
    (tmp_path / "votes.csv").write_text(f"dataset,item_id,a,b\n{rows}")
    out = write_report([tmp_path / "votes.csv"], tmp_path / "report.html").read_text(encoding="utf-8")
    assert "P(consistent) is the share of votes for it, with one added on each side" in out


def test_rows_by_dataset_are_found_in_any_order():
    """Each dataset's rows ascend, the datasets by name."""
    votes = small_votes(n=5)
    shuffled = votes.rows(np.random.default_rng(0).permutation(20))
    result = dataset_rows(shuffled)
    assert [name for name, _ in result] == list(votes.dataset_names)
    assert all(rows.tolist() == np.flatnonzero(shuffled.datasets == name).tolist() for name, rows in result)


def test_the_canary_of_each_dataset_is_that_of_deep_check():
    """The same numbers and verdict, of labels as they are and turned round; a dataset without labels has no row."""
    votes = small_votes(("x", "y", "z"), seed=1)
    y, z = votes.datasets == "y", votes.datasets == "z"
    votes = replace(votes, labels=np.where(z, -1, np.where(y, 1 - votes.labels, votes.labels)))
    model = fit(small_votes(), **QUICK)
    chapter = drift_chapter(find_drift(ReportMaterial("", model=model, scored=score_by(model, votes))))
    rows = {row["dataset"]: row for row in chapter.parts[-1].rows}
    assert list(rows) == ["x", "y"]
    for name, row in rows.items():
        result = canary_report(model, Target(votes.rows(votes.datasets == name)))
        assert row["labels"] == str(result["n_labels"])
        assert row["p"] == f"{result['p_value']:.2g}"
        assert row["consistent, %"] == in_percent(result["observed"])
        assert row["expected, %"] == in_percent(result["expected"])
        assert row["the labels"] == ("DISAGREE with the model" if result["flagged"] else "do not disagree")
    assert rows["y"]["the labels"] == "DISAGREE with the model"
    assert rows["x"]["the labels"] == "do not disagree"


def test_judges_alone_are_measured_as_any_decision_is():
    """Of a judge there is no P: what is left are its decisions, on the rows that have a label and a vote of it."""
    votes = small_votes(("x", "y"), n=40)
    votes = replace(votes, labels=np.where(np.arange(80) % 7, votes.labels, -1))
    scored = score_by(fit(small_votes(), **QUICK), votes)
    result = next(method for method in methods_of(ReportMaterial("", scored=scored)) if method.name == "judge-1")
    rows = (votes.datasets == "y") & (votes.votes[:, 1] != -1)
    assert rows.sum() < (votes.datasets == "y").sum()
    decided = votes.votes[rows, 1] != 0
    whole = decision_metrics(
        votes.labels[rows], decided.astype(float), decided, n_bins=8, n_boot=N_BOOT, random_state=0
    )
    names = ("balanced_accuracy", "balanced_accuracy_ci", "precision", "recall")
    assert result.by_dataset["y"] == {name: whole[name] for name in names}
    scored = replace(scored, votes=replace(votes, document_ids=np.char.add("d", (np.arange(80) // 2).astype(str))))
    result = next(method for method in methods_of(ReportMaterial("", scored=scored)) if method.name == "judge-1")
    labeled = rows & (votes.labels != -1)
    of, documents = (votes.labels[labeled], votes.votes[labeled, 1] != 0), scored.votes.document_ids[labeled]
    by_document = list(bootstrap_balanced_accuracy(*of, documents=documents, n_boot=N_BOOT))
    assert result.by_dataset["y"]["balanced_accuracy_ci"] == by_document


@pytest.mark.parametrize(("sets", "measured"), [(["a", "b", "c", "d"], ["d"]), (["a", "b"], ["a", "b", "c"])])
def test_a_model_is_not_measured_by_labels_that_it_has_seen(sets, measured):
    """A model is measured on datasets it has not learned from, else by the fits that left each out."""
    everything = small_votes(n=40)
    model = fit(everything.rows(everything.datasets != "d"))
    shown = everything.rows(np.isin(everything.datasets, sets))
    material = ReportMaterial("", model=model, scored=score_by(model, shown))
    assert material.learned_from == tuple(name for name in sets if name != "d")
    assert list(ours(methods_of(material)).by_dataset) == measured
    assert set(material.measured.votes.datasets) == set(sets) - {"a", "b", "c"}


def first_words(path):
    """Return the text of the verdict by the class of its paragraph."""
    page = path.read_text(encoding="utf-8")
    verdict = re.search(r'<section id="verdict".*?</section>', page, re.DOTALL)[0]
    return {name: re.sub(r"<[^>]*>", "", text) for name, text in re.findall(r'(?s)<p class="(\w+)">(.*?)</p>', verdict)}


def written(folder, votes, *, labels=True):
    """Write votes as a table and return its path."""
    frame = pd.DataFrame(votes.votes, columns=list(votes.voter_names)).mask(lambda cell: cell < 0).astype("Int64")
    frame.insert(0, "dataset", votes.datasets)
    frame.insert(1, "item_id", votes.item_ids)
    if labels:
        frame.insert(2, "label", votes.labels)
    frame.to_csv(folder / "votes.csv", index=False)
    return folder / "votes.csv"


LEARNED = "is unverified here: all labels were used for training."


def test_claims_that_the_model_learned_from_are_not_called_unlabeled():
    """Their labels are counted, and tell nothing of P; what was measured is of each dataset left out."""
    votes = small_votes(n=40)
    message = str(deep.report(fit(votes, **QUICK), votes))
    assert f"; {len(votes.labels)} labels." in message
    assert LEARNED in message
    assert re.search(
        r"On \d training datasets, .* each left out in turn: balanced accuracy [\d.]+ % \(95 % interval \d", message
    )
    assert "Next: score claims that the model was not trained on, and label 30 of them" in message
    assert "OTHER" not in message
    assert "none of these claims" not in message


def test_the_flow_of_the_readme_knows_what_the_model_was_fitted_with(tmp_path, capsys):
    """Votes without labels, a file of thirty labels, fit, report: these are no other dataset, and not without labels.

    Claims of the same dataset that the model has not met have no label; but that dataset is no other one.
    """
    votes = small_votes(("rte",), n=90)
    seen = votes.rows(np.arange(90) < 60)
    table, labels = written(tmp_path, seen, labels=False), tmp_path / "labels.csv"
    frame = pd.DataFrame({"dataset": "rte", "item_id": seen.item_ids, "label": seen.labels})[:30]
    frame.to_csv(labels, index=False)
    model, page = str(tmp_path / "model.json"), tmp_path / "report.html"
    assert main(["fit", str(table), "--labels", str(labels), "--out", model]) == 0
    assert main(["report", model, str(table), "--out", str(page)]) == 0
    message = page.read_text(encoding="utf-8")
    assert "OTHER" not in message
    assert "NO LABELS" not in message
    assert "on other data" not in message
    assert first_words(page)["trust"] == f"P {LEARNED}"
    assert "the model has labels of them" in message

    new = written(tmp_path, votes.rows(np.arange(90) >= 60), labels=False)
    assert main(["report", model, str(new), "--out", str(page)]) == 0
    message = page.read_text(encoding="utf-8")
    assert "OTHER" not in message
    assert first_words(page)["trust"].startswith("P is unverified here: none of these claims has a label")


def test_how_many_decisions_are_wrong_is_said_with_their_number():
    """As many as their P says: 20 claims at .25 that are sure are about 5 wrong ones."""
    counts, names, ones = DecisionCounts(), np.arange(30).astype(str), np.ones(30)
    p = np.repeat([0.25, 0.9], [20, 10])
    columns = {"p_consistent": p, "p_low": p, "p_high": p, "decision": p > 0.5, "sure": ones, "n_votes": ones}
    counts.add(names, names, columns)
    assert [line.strip() for line in suspect_words(counts).split("\n")][:3] == [
        "20 inconsistent: P expects 5 of them to be wrong",
        "10 consistent: P expects 1 of them to be wrong",
        "0 undecided",
    ]


def test_new_claims_beside_those_that_the_model_learned_from_are_to_be_labeled():
    """The labels that there are tell nothing, and thirty of the new ones would."""
    every = small_votes(("a", "b", "c", "new"), n=40)
    new = every.datasets == "new"
    message = str(deep.report(fit(every.rows(~new), **QUICK), replace(every, labels=np.where(new, -1, every.labels))))
    assert LEARNED in message
    assert "label 30 random claims" in message


def test_of_one_training_dataset_parts_were_left_out():
    """It cannot be left out as a whole, and has no interval over datasets."""
    votes = small_votes(("a",), n=40)
    message = str(deep.report(fit(votes), votes))
    assert re.search(
        r"On 1 training dataset, .*, parts of it left out in turn: balanced accuracy [\d.]+ %, log loss", message
    )


def test_unlabeled_claims_come_with_a_verdict_and_no_figure_of_other_data(tmp_path):
    """Outside the boxes that say so: how many are suspect, whether P holds, what to do; of a model without a label."""
    fit(small_votes(), **QUICK).save(tmp_path / "model.json")
    new = small_votes(("new",), n=40, seed=3)
    out = write_report([tmp_path / "model.json", written(tmp_path, new, labels=False)], tmp_path / "report.html")
    says = first_words(out)
    states = re.findall(r"(?m)^ *(\d+) (?:inconsistent|consistent|undecided)", says["suspect"])
    assert (len(states), sum(map(int, states))) == (3, 40)
    large = re.findall(r"<strong>(\d+)</strong> (?:inconsistent|consistent|undecided)", out.read_text(encoding="utf-8"))
    assert large == states
    assert says["trust"].startswith("P is unverified here: none of these claims has a label")
    assert "deep label " in says["then"]
    page = out.read_text(encoding="utf-8")
    outside = re.sub(r"<(section|aside)[^>]* class=\"elsewhere\".*?</\1>", "", page, flags=re.DOTALL)
    outside = re.sub(r"<(style|script).*?</\1>", "", outside, flags=re.DOTALL)
    assert "balanced accuracy" in page
    assert "balanced accuracy" not in outside


def test_labels_that_disagree_take_the_first_line(tmp_path):
    """A canary that fails stands above all else, and P is called untrustworthy."""
    votes = small_votes(seed=1, n=80)
    fit(votes, **QUICK).save(tmp_path / "model.json")
    new = small_votes(("new",), n=80, seed=2)
    turned = replace(new, labels=1 - new.labels)
    out = write_report([tmp_path / "model.json", written(tmp_path, turned)], tmp_path / "report.html")
    says = first_words(out)
    assert "DISAGREE with the model" in says["failure"]
    assert says["trust"].startswith("Do not trust P here: failed “labels agree with P”")
    assert "deep adapt " in says["then"]
    page = out.read_text(encoding="utf-8")
    assert page.index('class="failure"') < page.index('class="suspect"')
    assert 'class="fail"' in page


def measured(accuracy, half, n=1):
    """Return a method with one balanced accuracy a dataset, each with its interval."""
    rows = {
        f"d{at}": {"balanced_accuracy": value, "balanced_accuracy_ci": [value - half, value + half]}
        for at, value in enumerate(np.broadcast_to(accuracy, n))
    }
    return MeasuredMethod("a", "judge", rows)


@pytest.mark.parametrize(
    ("own", "its", "half", "n", "level"),
    [
        (0.709, 0.691, 0.02, 1, "warn"),  # higher, and no more than that
        (0.709, 0.651, 0.02, 1, "ok"),
        (0.651, 0.709, 0.02, 1, "fail"),
        (0.70, 0.70, 0.02, 1, "warn"),
        ([0.70, 0.80, 0.60], [0.68, 0.78, 0.59], 0.1, 3, "ok"),  # each dataset, by nearly as much: paired
        ([0.70, 0.80, 0.60], [0.66, 0.84, 0.58], 0.0, 3, "warn"),
        ([0.68, 0.78, 0.59], [0.70, 0.80, 0.60], 0.1, 3, "fail"),
    ],
)
def test_the_panel_beats_a_judge_only_beyond_chance(own, its, half, n, level):
    """The interval of the paired difference decides, not which of two means is higher."""
    badge = next(label_badges(measured(own, half, n), measured(its, half, n), None))
    assert (badge.name, badge.level) == ("beats the best judge", level)


def test_the_histogram_holds_the_claims_that_somebody_voted_on(tmp_path):
    """As the sentence counts them; and the badge of the best judge names it without its hash."""
    votes = small_votes(("new",), n=40, seed=3)
    silent = votes.votes.copy()
    silent[:7] = -1
    names = [f"{name}@0123456{at}" for at, name in enumerate(votes.voter_names)]
    material = read_material([written(tmp_path, replace(votes, votes=silent, voter_names=names))])
    at = np.arange(40)
    (table,) = histogram_picture(replace(material.scored, sure=at >= 10, decided=at % 4 == 0)).tables
    assert [sum(int(row[state]) for row in table.rows) for state in STATES] == [7, 23, 3]
    result = verdict_of(material, methods_of(material), find_drift(material))
    assert "\n     7 without a vote\n" in result.suspect
    (best,) = (badge.says for badge in result.badges if badge.name == "beats the best judge")
    assert "@" not in best


def test_items_show_grades_as_grades(tmp_path):
    """With the scale, in place of the vote that each counts as; votes beside them stay votes."""
    rng, votes = np.random.default_rng(0), small_votes()
    grades = np.clip(np.round(2 + 2 * votes.labels + rng.normal(0, 1, len(votes.labels))), 1, 5)
    graded = votes.with_answers(grades[:, None], ["grader"], {"grader": "1-5"})
    fit(graded).save(tmp_path / "model.json")
    frame = pd.DataFrame(votes.votes, columns=votes.voter_names).replace(-1, None).assign(grader=grades)
    frame.assign(dataset=votes.datasets, item_id=votes.item_ids).to_csv(tmp_path / "votes.csv", index=False)
    out = tmp_path / "report.html"
    write_report([tmp_path / "model.json", tmp_path / "votes.csv"], out)
    data = items(out)
    at = str(data["voters"].index("grader"))
    grade_of = dict(zip(zip(votes.datasets, votes.item_ids, strict=True), grades, strict=True))
    for i, message in data["said"].items():
        key = data["datasets"][data["dataset"][int(i)]], data["id"][int(i)]
        assert message == {at: {"grade": f"{grade_of[key]:.0f} (1-5)"}}
    assert len(data["said"]) == len(data["id"])
