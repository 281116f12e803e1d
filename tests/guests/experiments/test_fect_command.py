"""FECT from its command line: figures worked out by hand, the published file, faulty replies, and what it refuses."""

import csv
import json
import math
import re
from pathlib import Path

import pandas as pd
import pytest

import deep
from tests.deep_commands import fect as main
from tests.deep_commands import fit
from tests.scripted_llm import Fault, ScriptedLLM

pytestmark = pytest.mark.usefixtures("own_key")

GUIDE = Path(__file__).parents[3] / "docs" / "fect.md"

T_2 = 4.302652729911275
"""The factor of a 95 % interval over three runs."""

LABELS = (1, 1, 1, 1, 0, 0)
LIMIT = 4096
"""Tokens: no prompt of FECT asks for more; a reply that was cut off is asked for again with more."""


@pytest.fixture
def claims(tmp_path):
    """Return a file of four factual and two non-factual claims."""
    path = tmp_path / "claims.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["source", "claim", "label", "example_id"])
        table.writerows([f"conversation {i}", f"claim {i}", label, i] for i, label in enumerate(LABELS, start=1))
    return path


def prompt_of(asked):
    """Return which of the paper's four prompts was asked."""
    reasoned = "reasoning" in (asked.properties or asked.user.rpartition("Reply in XML")[2])
    return ("3d" if "take it apart" in asked.user else "basic") + ("-ttc" if reasoned else "")


def item_of(asked):
    """Return the number of the item."""
    return int(re.findall(r"conversation (\d)", asked.user)[0])


def say(asked, vote):
    """Reply in the form that is asked for."""
    verdict = "TRUE" if vote else "FALSE"
    if asked.properties:
        parts = {"units": ["a unit"], "concrete": ["unit"], "interpretive": [], "failed": [] if vote else ["a tie"]}
        return {**{name: parts.get(name, "because") for name in asked.properties}, "verdict": verdict}
    return f"<reasoning>because</reasoning>\n<verdict>{verdict}</verdict>"


def alpha(asked):
    """Judge: factual always, never, rightly, and rightly but for one slip in each of the last two runs."""
    item, run, prompt = item_of(asked), asked.times + 1, prompt_of(asked)
    if prompt in ("basic", "basic-ttc"):
        return say(asked, prompt == "basic")
    slip = prompt == "3d-ttc" and (item, run) in ((5, 2), (1, 3))
    return say(asked, bool(LABELS[item - 1]) != slip)


def limit_of(asked):
    """Return how many tokens the reply may have."""
    return asked.body.get("max_completion_tokens", asked.body.get("max_tokens", 0))


def beta(asked):
    """Judge rightly, where a reply can be read at all."""
    cut = Fault("truncated")
    faults = {(6, 2): cut, (1, 3): '{"reasoning": "hm"}', (2, 1): Fault("refused"), (2, 2): "No idea."}
    if limit_of(asked) > LIMIT:
        return cut  # asked again, with a longer limit
    if prompt_of(asked) == "3d-ttc" and (item_of(asked), asked.times + 1) in faults:
        return faults[item_of(asked), asked.times + 1]
    return say(asked, LABELS[item_of(asked) - 1])


def script(asked):
    """Answer for either model."""
    return (alpha if asked.model == "alpha" else beta)(asked)


def command(data, url, *more):
    """Return a command line; one request after another, so that the n-th answer to a question is its n-th run's."""
    out = data.with_name("fect")
    common = ["--data", str(data), "--base-url", url, "--out", str(out), "--concurrency", "1", "--backoff", "0.01"]
    return [*common, *map(str, more)]


def close(value):
    """Return a value to compare with, equal but for rounding in the last place."""
    return pytest.approx(value, rel=1e-12)


def test_every_figure_is_the_one_worked_out_by_hand(claims, capsys):
    """Six claims, two models, four prompts, three runs: counts, means, deviations, intervals, flips, alpha."""
    models = ["--llm", "alpha", "--llm", "beta", "--reasoning", "alpha", "--runs", "3"]
    with ScriptedLLM(script) as server:
        assert main(command(claims, server.url, *models)) == 0
        assert server.count == 6 * 2 * 4 * 3 + 1  # the reply that is cut off is asked for again, with a longer limit
    out = claims.with_name("fect")
    results = json.loads((out / "results.json").read_text(encoding="utf-8"))
    assert results["counts"] == {"items": 6, "factual": 4, "nonfactual": 2}
    summary = {(s["model"], s["prompt"], s["metric"]): s for s in results["summary"]}

    always, never, right, slips = (("alpha", prompt) for prompt in ("basic", "basic-ttc", "3d", "3d-ttc"))
    assert summary[*always, "precision"]["mean"] is None
    assert [summary[*always, m]["mean"] for m in ("recall", "f1")] == [0.0, 0.0]
    assert [summary[*never, m]["mean"] for m in ("precision", "recall", "f1")] == [close(1 / 3), 1.0, 0.5]
    assert [summary[*right, m]["mean"] for m in ("precision", "recall", "f1")] == [1.0, 1.0, 1.0]
    assert summary[*right, "f1"]["sd"] == 0.0
    by_run = {"precision": (1, 1, 2 / 3), "recall": (1, 1 / 2, 1), "f1": (1, 2 / 3, 4 / 5)}
    for metric, values in by_run.items():
        mean = sum(values) / 3
        sd = math.sqrt(sum((value - mean) ** 2 for value in values) / 2)
        result = summary[*slips, metric]
        assert (result["n_runs"], result["mean"], result["sd"]) == (3, close(mean), close(sd))
        assert result["high"] == pytest.approx(mean + T_2 * sd / math.sqrt(3), rel=1e-9)
        assert result["low"] == pytest.approx(mean - T_2 * sd / math.sqrt(3), rel=1e-9)

    repeats = {(c["model"], c["prompt"]): c for c in results["consistency"]}
    assert (repeats[slips]["n_flipped"], repeats[slips]["n_repeated"]) == (2, 6)
    assert repeats[slips]["alpha"] == close(19 / 36)
    assert (repeats[right]["n_flipped"], repeats[right]["alpha"]) == (0, 1.0)
    assert repeats[always]["alpha"] is None

    scores = {(s["model"], s["prompt"], s["run"]): s for s in results["scores"]}
    names = ("tp", "fp", "fn", "tn", "no_vote")
    counted = [[scores["beta", "3d-ttc", run][name] for name in names] for run in (1, 2, 3)]
    assert counted == [[2, 0, 0, 3, 1], [1, 0, 0, 3, 2], [2, 0, 0, 3, 1]]
    assert [scores["beta", "3d-ttc", run]["no_vote_nonfactual"] for run in (1, 2, 3)] == [0, 1, 0]
    lossy = repeats["beta", "3d-ttc"]
    assert [lossy[name] for name in ("n_items", "n_repeated", "n_flipped", "no_vote", "alpha")] == [6, 5, 0, 4, 1.0]

    message = re.sub(" +", " ", capsys.readouterr().out)
    assert re.search(r"\nreport: open \S+/report\.html\n$", message)
    assert message.splitlines()[1].startswith(
        "2 of 6 claims are non-factual by label; alpha (3d) finds them best, F1 1.00"
    )
    assert "alpha - 0.33 ± 0.00 1.00 ± 0.00 0.89 ± 0.19" in message
    assert "| alpha | - | 0.33 ± 0.00 | **1.00 ± 0.00** | 0.89 ± 0.19 |" in (out / "report.md").read_text("utf-8")
    assert "4 verdicts are without a vote (1 on non-factual claims)" in message
    assert "2 of 6 (33.3 %)" in message
    shown = re.search(r"```text\n(2 of 6 claims.*?)\n```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)[1]
    shown = re.sub(" +", " ", shown)
    assert all(line in message.splitlines() for line in shown.splitlines()), "the guide shows what is printed"
    verdicts = pd.read_csv(out / "verdicts.csv")
    lost = verdicts[verdicts["vote"] == -1]
    assert sorted(lost["reason"]) == ["refused", "truncated", "unparsable", "unparsable"]
    assert len(verdicts) == 144


def test_xml_gives_the_same_verdicts(claims):
    """The form of the answers changes neither votes nor parts."""
    result = []
    for output in ("json", "xml"):
        with ScriptedLLM(script) as server:
            assert main(command(claims, server.url, "--llm", "alpha", "--runs", "1", "--output", output)) == 0
        verdicts = pd.read_csv(claims.with_name("fect") / "verdicts.csv")
        result.append(verdicts.set_index(["prompt", "item_id"])["vote"])
    pd.testing.assert_series_equal(*result)
    assert result[0].groupby("prompt").sum().to_dict() == {"3d": 4, "3d-ttc": 4, "basic": 6, "basic-ttc": 0}


@pytest.mark.figures
def test_the_tables_are_laid_out_as_the_papers(claims):
    """A row a model, a column a prompt, mean ± deviation; the best of each column is marked in the report."""
    with ScriptedLLM(script) as server:
        models = ["--llm", "alpha,beta", "--prompt", "3d-ttc,3d,basic-ttc,basic", "--runs", "3"]
        assert main(command(claims, server.url, *models)) == 0
    out = claims.with_name("fect")
    table = pd.read_csv(out / "table-2-f1.csv", index_col="model", dtype=str)
    assert list(table.columns) == ["3d-ttc", "3d", "basic-ttc", "basic"]
    assert table.loc["alpha"].tolist() == ["0.82 ± 0.17", "1.00 ± 0.00", "0.50 ± 0.00", "0.00 ± 0.00"]
    over_all = (1 + 2 / 3 + 1) / 3
    assert table.loc["beta"].tolist() == [f"1.00 ± 0.00 (all: {over_all:.2f})"] + ["1.00 ± 0.00"] * 3
    report = (out / "report.md").read_text(encoding="utf-8")
    assert f"| beta | **1.00 ± 0.00 (all: {over_all:.2f})** |" in report
    assert "Figure 5. F1, mean and 95 % t-interval over runs" in report
    mean, sd = (1 + 2 / 3 + 4 / 5) / 3, math.sqrt(((8 / 45) ** 2 + (7 / 45) ** 2 + (1 / 45) ** 2) / 2)
    half = T_2 * sd / math.sqrt(3)
    assert f"| alpha | {mean:.3f} ({mean - half:.3f} to {mean + half:.3f}) | 1.000 |" in report, (
        "runs that do not differ have no interval"
    )
    for title in ("Table 2. F1", "Table 4. Precision", "Table 5. Recall", "Self-consistency"):
        assert title in report
    for figure in ("figure-5-f1", "figure-7-precision", "figure-8-recall"):
        assert (out / f"{figure}.png").stat().st_size > 5000


def test_a_3d_verdict_keeps_its_parts(claims):
    """Units, what is concrete, what interpretive, and what failed lie beside every 3d-ttc verdict."""
    with ScriptedLLM(script) as server:
        assert main(command(claims, server.url, "--llm", "beta", "--runs", "1", "--prompt", "3d-ttc,basic")) == 0
    verdicts = pd.read_csv(claims.with_name("fect") / "verdicts.csv").set_index(["prompt", "item_id"])
    assert json.loads(verdicts.loc[("3d-ttc", 5), "evidence"]) == ["units: a unit", "concrete: unit", "failed: a tie"]
    assert json.loads(verdicts.loc[("3d-ttc", 3), "evidence"]) == ["units: a unit", "concrete: unit"]
    assert verdicts.loc["basic", "evidence"].isna().all()


@pytest.mark.slow
def test_the_published_file_and_the_judges_of_one_answer(tmp_path, data_home, monkeypatch, capsys):
    """345 factual and 65 not; always factual and never factual get what these counts imply."""
    monkeypatch.setenv("DEEP_DATA_HOME", str(data_home))
    out = tmp_path / "fect"
    judges = ["--llm", "always", "never", "--prompt", "basic", "--runs", "1", "--json"]
    with ScriptedLLM(lambda asked: {"verdict": "TRUE" if asked.model == "always" else "FALSE"}) as server:
        words = ["--data", "fect", "--base-url", server.url, "--out", str(out), *judges]
        assert main(words) == 0
        assert server.count == 410 * 2
        assert main(words) == 0
        assert server.count == 410 * 2
    results = json.loads(capsys.readouterr().out.partition("\n}\n")[0] + "\n}")
    assert results["counts"] == {"items": 410, "factual": 345, "nonfactual": 65}
    summary = {(s["model"], s["metric"]): (s["mean"], s["sd"]) for s in results["summary"]}
    assert summary["always", "precision"] == (None, None)
    assert summary["always", "recall"] == summary["always", "f1"] == (0.0, None)
    assert summary["never", "precision"] == (close(65 / 410), None)
    assert summary["never", "recall"] == (1.0, None)
    assert summary["never", "f1"] == (close(130 / 475), None)
    counted = [[s[name] for name in ("tp", "fp", "fn", "tn")] for s in results["scores"]]
    assert counted == [[0, 0, 65, 345], [65, 345, 0, 0]]


def test_a_dry_run_counts_every_call(claims, capsys):
    """Claims times prompts times models times runs, and nothing is sent or written."""
    with ScriptedLLM(script) as server:
        assert main(command(claims, server.url, "--llm", "alpha", "--runs", "10", "--dry-run")) == 0
        assert server.count == 0
    assert "240 calls to make" in capsys.readouterr().out
    assert not claims.with_name("fect").exists()


def test_the_budget_stops_it_before_anything_is_written(claims, tmp_path, capsys):
    """Status 3; more money goes on where it was."""
    prices = tmp_path / "prices.toml"
    prices.write_text("[alpha]\ninput = 10.0\noutput = 10.0\n")
    options = ["--llm", "alpha", "--prompt", "basic", "--runs", "2", "--prices", prices]
    with ScriptedLLM(script) as server:
        assert main(command(claims, server.url, *options, "--budget", "0.03")) == 3
        bought = server.count
        assert 0 < bought < 12
        assert not claims.with_name("fect").exists()
        assert "stopped: the budget is reached" in capsys.readouterr().err
        assert main(command(claims, server.url, *options)) == 0
        assert server.count == 12


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--prompt", "4d"], "`prompt` must be one of 3d, 3d-ttc, basic, basic-ttc, or a .toml file. Got '4d'."),
        (["--runs", "1000000000"], "`runs` must be at most 10,000. Got 1000000000."),
        (["--llm", "alpha"], "`llm` must name each LLM once. Got 'alpha' twice."),
        (["--temperature", "-1"], "`temperature` must be a number of at least 0. Got -1.0."),
        (["--out", "."], "`out` must be a folder with a name. Got '.'."),
        (["--out", "CLAIMS/below"], "`out` must be in a writable folder"),
        (["--ensembler", "DawidSkene"], "`ensembler` must be given with `votes` or judges that need no key"),
        (["--reasoning", "o1"], "`reasoning` must be among `llm`. Got 'o1'."),
        (["--label-column", "none"], "none"),
    ],
)
def test_what_it_refuses_is_one_line(claims, capsys, words, complaint):
    """Status 2, nothing sent, nothing written."""
    words = [word.replace("CLAIMS", str(claims)) for word in words]
    assert main(command(claims, "http://127.0.0.1:9/v1", "--llm", "alpha", *words)) == 2
    message = capsys.readouterr().err
    assert complaint in message
    assert message.count("\n") == 1
    assert not claims.with_name("fect").exists()


def test_the_authors_file_is_read_as_it_is(tmp_path, data_home, capsys):
    """By its path, under their names of the columns."""
    file = data_home / "fect" / "fect_benchmark.csv"
    words = ["--data", str(file), "--llm", "m", "--prompt", "basic", "--dry-run", "--out", str(tmp_path / "fect")]
    assert main([*words, "--base-url", "http://127.0.0.1:9/v1"]) == 0
    assert "4,100 calls to make" in capsys.readouterr().out


def test_a_file_in_another_layout_is_named_by_its_option(tmp_path, capsys):
    """The complaint is about --data; a claim without a label cannot be scored."""
    labels = b"source,claim,label\na,b,1\nc,d,\n"
    for content in (b"a,b\n1,2\n", b"", b"source,claim\n\xff,x\n", labels, None):
        data = tmp_path / ("absent" if content is None else "claims.csv")
        if content is not None:
            data.write_bytes(content)
        assert main(command(data, "http://127.0.0.1:9/v1", "--llm", "alpha")) == 2
        message = capsys.readouterr().err
        assert message.startswith("error: `data` must ")
        assert message.count("\n") == 1
        if content is labels:
            assert "must have a label, 0 or 1, in every row. Got 1 rows without" in message
    assert not (tmp_path / "fect").exists()


def write_votes(path, rows, voters=("mine",)):
    """Write a vote file of the claims; a row an item, in their order."""
    lines = [",".join(["dataset", "item_id", "label", *voters])]
    lines += [",".join(["claims", str(i), str(label), *map(str, votes)]) for i, label, votes in rows]
    path.write_text("\n".join([*lines, ""]), encoding="utf-8")
    return path


def given(*columns):
    """Return the rows of a vote file on the six claims."""
    return [(i, LABELS[i - 1], votes) for i, votes in enumerate(zip(*columns, strict=True), 1)]


def fitted(folder):
    """Fit a model of two voters and return its file."""
    train = folder / "train.csv"
    rows = ["dataset,item_id,label,good,poor"]
    for name, n in (("one", 40), ("two", 50)):
        rows += [f"{name},{i},{i % 2},{(i % 2) if i % 10 else 1 - i % 2},{i % 3 % 2}" for i in range(n)]
    train.write_text("\n".join([*rows, ""]), encoding="utf-8")
    assert fit(["--out", str(folder / "model.json"), str(train)]) == 0
    return folder / "model.json"


def test_vote_files_are_runs_of_their_voters(claims, tmp_path, capsys):
    """A voter in two files has two runs; prompts are columns and their LLMs rows; nothing is sent."""
    voters = ("fect-3d-direct-json@0123abcd/o1", "lexical-numbers@0123abcd")
    first = write_votes(tmp_path / "a.csv", given((1, 1, 1, 0, 0, 1), (1, 0, 1, 1, 0, "")), voters)
    second = write_votes(tmp_path / "b.csv", given((1, 1, 1, 1, 0, 0), (1, 1, 1, 1, 0, 0)), voters[:2])
    words = ["--data", str(claims), "--votes", str(first), str(second), "--out", str(tmp_path / "fect")]
    assert main([*words, "--ensembler", "MajorityLabelVoter"]) == 0
    message = capsys.readouterr().out
    summary = pd.read_csv(tmp_path / "fect" / "summary.csv").set_index(["model", "prompt", "metric"])
    f1 = [0.5, 1.0]
    half = 12.706204736432095 * (0.5 / math.sqrt(2)) / math.sqrt(2)
    o1 = summary.loc[("o1", "3d", "f1")]
    assert (o1["n_runs"], o1["mean"]) == (2, close(sum(f1) / 2))
    assert o1["high"] - o1["mean"] == pytest.approx(half, rel=1e-9)
    assert summary.loc[("lexical-numbers", "no prompt", "precision"), "mean"] == close((1 / 2 + 1) / 2)
    assert "o1 0.75 ± 0.35 -" in re.sub(" +", " ", message)
    # Where the two disagree there is no vote; of the two non-factual claims the first run calls one, the second both.
    assert summary.loc[("MajorityLabelVoter of 2", "no prompt", "f1"), "n_runs"] == 2
    assert summary.loc[("MajorityLabelVoter of 2", "no prompt", "recall"), "mean"] == close((1 / 2 + 1) / 2)
    assert "as printed" not in message


def test_a_model_file_decides_by_its_rule(claims, tmp_path):
    """On the votes given; the rule is the name beside the model's."""
    model = fitted(tmp_path)
    votes = write_votes(tmp_path / "v.csv", given(LABELS, (1, 1, 0, 0, 1, 0)), ("good", "poor"))
    words = ["--data", str(claims), "--votes", str(votes), "--model-file", str(model), "--out", str(tmp_path / "fect")]
    assert main(words) == 0
    summary = pd.read_csv(tmp_path / "fect" / "summary.csv").set_index(["model", "prompt", "metric"])
    assert summary.loc[("model", "balanced", "f1"), "mean"] == 1.0
    loaded = deep.load(model)
    matrix = deep.read_votes(votes)
    verdicts = pd.read_csv(tmp_path / "fect" / "verdicts.csv").set_index(["model", "prompt"])
    result = loaded.scores_of(matrix)
    assert verdicts.loc[("model", "balanced"), "vote"].tolist() == (result.p_consistent >= result.threshold).tolist()


def test_judges_that_need_no_llm_stand_beside_those_asked(claims, tmp_path):
    """A lexical check is a row without a prompt; LLMs are asked as before."""
    with ScriptedLLM(script) as server:
        words = ["--llm", "alpha", "--prompt", "3d", "--runs", "1", "--lexical", "numbers"]
        assert main(command(claims, server.url, *words)) == 0
        assert server.count == 6
    table = pd.read_csv(tmp_path / "fect" / "table-2-f1.csv", index_col="model", dtype=str)
    assert list(table.columns) == ["3d", "no prompt"]
    assert table.loc["alpha"].tolist() == ["1.00", "-"]
    assert table.loc["lexical-numbers", "3d"] == "-"


def test_a_prompt_of_ones_own_is_a_column(claims, tmp_path):
    """By its file, under its id; as the prompts that papers print are."""
    path = tmp_path / "mine.toml"
    path.write_text(
        'id = "mine"\nversion = "1"\nfamily = "m"\nfollows = "own design"\nreasons_first = false\nfenced = false\n'
        'user = "{{source}}? {{claim}}? True or False."\ndocument_first = true\n[labels]\nTrue = 1\nFalse = 0\n',
        encoding="utf-8",
    )
    with ScriptedLLM(lambda asked: '{"answer": %s}' % ("true" if LABELS[item_of(asked) - 1] else "false")) as server:
        assert main(command(claims, server.url, "--llm", "alpha", "--prompt", path, "basic", "--runs", "1")) == 0
    table = pd.read_csv(tmp_path / "fect" / "table-2-f1.csv", index_col="model", dtype=str)
    assert table.loc["alpha", "mine"] == "1.00"
    assert list(table.columns) == ["mine", "basic"]


def test_what_cannot_be_scored_is_one_line(claims, tmp_path, capsys):
    """Votes on other claims, a model without its votes, a voter that is asked and given; nothing is asked before."""
    other = tmp_path / "other.csv"
    other.write_text("dataset,item_id,mine\nnews,1,1\n", encoding="utf-8")
    mine = write_votes(tmp_path / "mine.csv", given(LABELS))
    model = str(fitted(tmp_path))
    asked = write_votes(tmp_path / "asked.csv", given(LABELS), ["fect-3d-direct-json@0123abcd/alpha"])
    capsys.readouterr()
    with ScriptedLLM(script) as server:
        again = ["--llm", "alpha", "--prompt", "3d", "--runs", "1", "--base-url", server.url]
        for words, complaint in (
            (["--votes", str(other)], "`votes` must hold votes on the examples of `data`, by dataset and item_id."),
            (["--votes", str(mine), "--model-file", model], "`model_file` must have its voters in `votes`."),
            (["--votes", str(asked), *again], "`votes` must hold no voter that is asked too. Got '3d' of 'alpha'."),
            ([*again, "--votes", str(tmp_path / "none.csv")], "must name existing files. Got "),
            ([], "`llm` must be given. Got none."),
            (["--lexical", "all", "--runs", "3"], "`runs` must be given where LLMs are asked. Got it without `llm`."),
            (["--votes", str(mine), "--rpm", "-1"], "`rpm` must be given where LLMs are asked. Got it without"),
        ):
            assert main(["--data", str(claims), "--out", str(tmp_path / "fect"), *words]) == 2
            message = capsys.readouterr().err.splitlines()
            assert complaint in message[-1]
        assert server.count == 0
    assert not (tmp_path / "fect" / "results.json").exists()


def test_printed_tables_stand_beside_those_of_the_benchmark(data_home, tmp_path, monkeypatch, capsys):
    """Each as a table and a figure of its own, and never mixed with the run's rows."""
    monkeypatch.setenv("DEEP_DATA_HOME", str(data_home))
    out = tmp_path / "fect"
    assert main(["--data", "fect", "--lexical", "numbers", "--out", str(out)]) == 0
    message = capsys.readouterr().out
    assert "Table 4 as printed (Shin et al. 2025, arXiv:2508.00889, ten runs a model and" in message
    assert "o1 0.80 ± 0.01 0.80 ± 0.02 0.85 ± 0.01 0.86 ± 0.02" in re.sub(" +", " ", message)
    printed = pd.read_csv(out / "table-2-f1-printed.csv", index_col="model", dtype=str)
    assert len(printed) == 17
    assert printed.loc["HallOumi-8B"].tolist() == ["-", "0.60 ± 0.00", "-", "-"]
    assert list(pd.read_csv(out / "table-2-f1.csv")["model"]) == ["lexical-numbers"]
    assert {path.stem for path in out.glob("figure-*.png")} >= {"figure-5-f1-printed", "figure-8-recall-printed"}
    results = json.loads((out / "results.json").read_text(encoding="utf-8"))
    o1 = next(s for s in results["printed"] if (s["model"], s["prompt"], s["metric"]) == ("o1", "3d-ttc", "f1"))
    assert o1["high"] - o1["mean"] == pytest.approx(2.262157 * 0.02 / math.sqrt(10), rel=1e-6)


def test_a_judge_that_seldom_votes_is_no_best(claims, tmp_path, capsys):
    """Its share of the claims stands in its cell, and another is marked."""
    rows = given((1, 1, 1, 0, 0, 0), ("", "", "", "", 0, ""))
    votes = write_votes(tmp_path / "v.csv", rows, ("full", "rare"))
    assert main(["--data", str(claims), "--votes", str(votes), "--out", str(tmp_path / "fect")]) == 0
    message = " ".join(capsys.readouterr().out.split())
    assert "full (no prompt) finds them best, F1 0.80 (one run), of 1 judges." in message
    assert "Of 2 judges 1 vote on less than half of the claims and are not compared." in message
    told = (tmp_path / "fect" / "report.md").read_text(encoding="utf-8")
    assert "| full | **0.80** |" in told
    assert "| rare | 1.00 (all: 0.67, 17 % of claims) |" in told, "1 of 2 found, and nothing else called"
    assert "| rare | 1.00 (17 % of claims) |" in told, "precision has no figure over all"
    summary = pd.read_csv(tmp_path / "fect" / "summary.csv").set_index(["model", "metric"])
    assert summary.loc[("rare", "f1"), "coverage"] == close(1 / 6)


@pytest.mark.figures
def test_a_judge_that_seldom_votes_is_drawn_nowhere(claims, tmp_path, monkeypatch):
    """Its F1 of 1.00, of one claim, is no winner of the figure: neither a point nor the dashed line of the best."""
    drawn = {}
    monkeypatch.setattr("deep.experiments.study.save_figures", lambda figures, folder, **_: drawn.update(figures))
    rows = given((1, 1, 1, 0, 0, 0), ("", "", "", "", 0, ""))
    votes = write_votes(tmp_path / "v.csv", rows, ("full", "rare"))
    assert main(["--data", str(claims), "--votes", str(votes), "--out", str(tmp_path / "fect")]) == 0
    (axes,) = drawn["figure-5-f1"].axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["full"]
    assert max(line.get_xdata()[0] for line in axes.lines) == close(0.8)
    assert drawn["figure-5-f1"].get_size_inches()[0] <= 8, "it fits a page"
