"""One number for one chain: terminal, tables, figures, chains.parquet and results.json of one run say the same."""

import contextlib
import io
import json
import re

import numpy as np
import pandas as pd
import pytest

from deep.calibration import balanced_accuracy, expected_calibration_error
from tests.deep_commands import loo
from tests.guests.experiments.test_paper_command import make_tables

CHAINS = ["--ensembler", "LabelModel", "LogisticRegression", "MajorityLabelVoter", "--n-boot", "100", "--jobs", "1"]
ENSEMBLERS = CHAINS[1:4]
NAMES = "|".join(ENSEMBLERS)
WORDS = re.compile(r"\S+(?: \S+)*")
"""A cell of a printed table: cells are two blanks apart."""

TEST = "aggrefact-xsum"


class Claims(dict):
    """What a run says of each chain: by ensembler, voters, calibrator and metric the values and their places."""

    def add(self, place, ensembler, size, calibrator, metric, value):
        """Note one figure, a share or text in percent, as it is printed."""
        shown = value if isinstance(value, str) else f"{100 * value:.1f}"
        if shown and shown != "nan":
            key = ensembler, int(size), calibrator or "none", metric
            self.setdefault(key, {}).setdefault(shown, []).append(place)

    def row(self, place, row):
        """Note the figures of a row of results.json."""
        calibrator = (
            f"{row['calibrator']} at its prior" if row["recipe"] == "deep" and "prior" in row else row["calibrator"]
        )
        for metric in ("balanced_accuracy", "ece"):
            self.add(place, row["ensembler"], row["n_prompts"], calibrator, metric, row[metric])

    def p(self, place, chain, labels, p, decided=None):
        """Note the figures that probabilities have, and decisions, at a half where none are given."""
        decided = p >= 0.5 if decided is None else decided
        self.add(place, *chain, "balanced_accuracy", balanced_accuracy(labels, decided))
        self.add(place, *chain, "ece", expected_calibration_error(labels, p))

    @property
    def contradictions(self):
        """Return the figures of which two places say two things."""
        return {key: places for key, places in self.items() if len(places) > 1}

    def places(self):
        """Return every place that said something."""
        return {place for values in self.values() for places in values.values() for place in places}


def printed(command, words):
    """Return what a command prints."""
    out = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(out):
        patch.setenv("COLUMNS", "200")  # where each label stands beside its figures
        assert command(words) == 0
    return out.getvalue()


def terminal_of_loo(claims, text, recipe):
    """Note the figures of the first screen and of the tables of ensemblers and calibrators."""
    head = (
        r"^  (recommended|the paper's recipe|best single chain by inner log loss|ORACLE: best of the table).*?"
        r"\s([\d.]+) +[\d.]+ to [\d.]+ +([\d.]+) .*measured\n      (\w+) on (\d+) voters .*calibrator ([\w-]+)"
    )
    for label, accuracy, ece, name, size, calibrator in re.findall(head, text, re.MULTILINE):
        moved = " at its prior" if recipe == "deep" and label == "recommended" else ""
        for metric, value in (("balanced_accuracy", accuracy), ("ece", ece)):
            claims.add("first screen", name, size, calibrator + moved, metric, value)
    sizes = [int(size) for size in re.search(r"calibrator.*\n +(.*loss)", text)[1].split() if size.isdecimal()]
    by_chain = {}
    best, size = re.search(r"Calibrators of the best chain, (\w+) on (\d+)", text).groups()
    for name, cells in re.findall(rf"^  ({NAMES}) +(\d.*)$", text, re.MULTILINE):
        words = cells.split()
        for i, of in enumerate(sizes):
            accuracy, errors = words[3 * i : 3 * i + 2]
            assert accuracy.endswith("*") == ((name, str(of)) == (best, size))
            by_chain[name, of] = accuracy.removesuffix("*"), errors
    if recipe == "paper":
        for (name, size), (accuracy, errors) in by_chain.items():
            claims.add("terminal, ensemblers", name, size, "platt", "balanced_accuracy", accuracy)
            claims.add("terminal, ensemblers", name, size, "platt", "ece", errors.split("/")[0])
    block = text.split("Calibrators of the best chain")[1].split("\n\n")[0]
    for calibrator, accuracy, ece in re.findall(r"^  (\w+) +([\d.]+) +([\d.]+)/", block, re.MULTILINE):
        claims.add("terminal, calibrators", best, size, calibrator, "balanced_accuracy", accuracy)
        claims.add("terminal, calibrators", best, size, calibrator, "ece", ece)


def wide_table(claims, path, metric, recipe):
    """Note the cells of a table of ensemblers by dataset, size and calibrator."""
    for row in pd.read_csv(path).drop(columns="votes").to_dict("records"):
        name = row.pop("ensembler").removesuffix(f" ({recipe})")
        for column, value in row.items():
            _, size, *calibrator = column.split()
            calibrator = "none" if calibrator in ([], ["uncalibrated"]) else calibrator[0]
            claims.add(path.name, name, size, calibrator, metric, value)


def errors_in(path):
    """Return the calibration errors that a drawing prints, before and after."""
    return re.findall(r"<!-- ECE ([\d.]+) %", path.read_text(encoding="utf-8"))


def loo_claims(folder, recipe):
    """Run `deep loo` and return all that it says."""
    votes, scores = make_tables(folder)
    words = ["--test", TEST, "--votes", str(votes), "--scores", str(scores), "--recipe", recipe, "--all-chains"]
    text = printed(loo, [*words, *CHAINS, "--out", str(folder / "out")])
    out, claims = folder / "out", Claims()
    run = json.loads((out / "results.json").read_text(encoding="utf-8"))
    for key in ("recommended", "recommended_chain", "recommended_paper", "oracle"):
        if run[key] is not None:
            claims.row("results.json", run[key])
    for row in run["rows"]:
        claims.row("results.json", row)
    terminal_of_loo(claims, text, recipe)
    for name, metric in (
        ("table2-ensemblers", "balanced_accuracy"),
        ("table4-platt", "ece"),
        ("table5-calibrators", "ece"),
    ):
        wide_table(claims, out / "tables" / f"{name}.csv", metric, recipe)
    best, chain = run["recommended"], lambda c: (run["recommended"]["ensembler"], run["recommended"]["n_prompts"], c)
    moved = " at its prior" if recipe == "deep" else ""
    scored = pd.read_parquet(out / "scores.parquet")
    called = scored["decision"] == 1 if recipe == "deep" else None
    claims.p("scores.parquet", chain(f"{best['calibrator']}{moved}"), scored["label"], scored["p_consistent"], called)
    claims.p("scores.parquet", chain("none"), scored["label"], scored["p_uncalibrated"])
    before, after = errors_in(out / "figures" / f"reliability-{TEST}.svg")
    claims.add("reliability.svg", *chain("none"), "ece", before)
    claims.add("reliability.svg", *chain(f"{best['calibrator']}{moved}"), "ece", after)
    labels = scored.set_index("item_id")["label"]
    for key, some in pd.read_parquet(out / "chains.parquet").groupby(
        ["ensembler", "size", "calibrator"], observed=True
    ):
        claims.p("chains.parquet", key, labels[some["item_id"]].to_numpy(), some["p"].to_numpy())
    return claims


@pytest.mark.figures
@pytest.mark.parametrize("recipe", ["deep", "paper"])
def test_one_run_of_loo_says_one_thing(recipe, tmp_path):
    """Every figure of every chain, wherever it stands."""
    claims = loo_claims(tmp_path, recipe)
    assert claims.places() >= {
        "first screen", "terminal, calibrators", "results.json", "table2-ensemblers.csv", "table4-platt.csv",
        "table5-calibrators.csv", "scores.parquet", "reliability.svg", "chains.parquet",
    }  # fmt: skip
    assert ("terminal, ensemblers" in claims.places()) == (recipe == "paper")
    assert len(claims) > 50
    assert claims.contradictions == {}
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "50.0 to 50.0" not in page, "an interval of no width"


def terminal_of_paper(claims, text):
    """Note Tables 2 and 4 of the terminal."""
    for table, metric in (("2", "balanced_accuracy"), ("4", "ece")):
        block = re.search(rf"^Table {table}, {TEST}: .*?(?=^Table|^Printed)", text, re.MULTILINE | re.DOTALL)[0]
        ends: dict[int, str] = {}
        for line in block.splitlines():
            name, *cells = [*WORDS.finditer(line)] or [None]
            if name is not None and name[0] == "method":  # columns are aligned to the right
                ends = {result.end(): result[0] for result in cells}
            for cell in cells[1:] if "this run" in line else ():
                size, *calibrator = ends[cell.end()].split(", ")
                if name[0] in ENSEMBLERS:
                    place = f"terminal, table {table}"
                    claims.add(place, name[0], size, (calibrator or ["none"])[0], metric, cell[0])


def paper_claims(out, text):
    """Return all that a run of `deep paper` says of one dataset."""
    claims = Claims()
    runs = {run["test"]: run for run in json.loads((out / "results.json").read_text(encoding="utf-8"))["runs"]}
    for row in (*runs[TEST]["rows"], runs[TEST]["recommended_paper"]):
        claims.row("results.json", row)
    terminal_of_paper(claims, text)
    figures = pd.read_csv(out / "figures.csv", dtype={"table": str})
    ours = figures[
        (figures["origin"] == "this run") & (figures["dataset"] == TEST) & figures["table"].isin(list("245"))
    ]
    for row in ours.fillna({"calibrator": "none"}).to_dict("records"):
        name = f"figures.csv, table {row['table']}"
        claims.add(name, row["method"], row["n_prompts"], row["calibrator"], row["metric"], f"{row['value']:.1f}")
    size = max(row["n_prompts"] for row in runs[TEST]["rows"])
    for calibrator, ece in zip(("none", "platt"), errors_in(out / "figure4-reliability.svg"), strict=True):
        claims.add("figure4.svg", "LabelModel", size, calibrator, "ece", ece)
    return claims


@pytest.mark.figures
def test_one_run_of_paper_says_one_thing(paper_run):
    """Figure 4 is Table 4's LabelModel, and the terminal is the file."""
    claims = paper_claims(*paper_run)
    assert claims.places() >= {"figure4.svg", "terminal, table 2", "terminal, table 4", "results.json"} | {
        f"figures.csv, table {table}" for table in "245"
    }
    assert claims.contradictions == {}


def test_a_contradiction_would_be_seen():
    """Two values of one figure are one."""
    claims = Claims()
    for place, value in (("a", 0.701), ("b", "70.1"), ("c", np.float64(0.72))):
        claims.add(place, "LGBM", 3, None, "ece", value)
    assert claims.contradictions == {("LGBM", 3, "none", "ece"): {"70.1": ["a", "b"], "72.0": ["c"]}}
