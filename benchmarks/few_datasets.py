"""P on a dataset without labels, learned from one labeled dataset to all: `fit` beside its rivals on the same draws.

    DEEP_DATA_HOME=... python benchmarks/few_datasets.py [--draws 40] [--jobs 2] [--panels span_mt ...]
    DEEP_DATA_HOME=... python benchmarks/few_datasets.py --table --draws 20
        decisions and log loss beside thirty lines of scikit-learn and the majority, on all panels

What the rule for the intercept knows across panels (`AcrossPanels`) is fitted here: the best of a grid by log loss plus
ECE over panels, K and draws. The row "deep" has, for each panel, what the other panels chose; panels that share items
are left out together and count as one. The row "before" is the rule of commit fbc87a9 on the same draws.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from thirty_lines import thirty_lines

from deep._util.odds import expit, logit
from deep.console import parallel_map, progress_bars
from deep.datasets import read_votes
from deep.evaluate import hold_out
from deep.experiments.few_datasets import ALL_SIZES, Draw, StudyPanel, draws_of, fit_and_score, measurable
from deep.experiments.few_datasets import transfer_metrics as measures
from deep.experiments.loo import Baseline
from deep.features import distinct_patterns
from deep.model import AcrossPanels, LabeledRows, LearnedPrior, Scores, fit_average, fit_best_judge
from deep.records import VoteMatrix

PANELS = {
    "llm_aggrefact": "votes.parquet",
    "alttest": "votes.parquet",
    "css_binary": "votes.parquet",
    "llmbar": "votes.parquet",
    "summeval_llm": "votes_ge5.csv",
    "umass_triviaqa": "votes.parquet",
    "faithbench": "votes.parquet",
    "relevance_methods": "votes.parquet",
    "span_mt": "votes.parquet",
    "relevance_prompts": "votes.parquet",
}
LATER = dict.fromkeys(("ice_code", "hatecheck", "span_d2t", "llm_rubric"), "votes.parquet")
"""Panels that had no part in the choice of the constants."""

WITHIN = {"relevance_prompts": "relevance_methods"}
"""A panel whose items are among those of another."""

MANY_ROWS = 40
SIZES = (1, 2, 3, ALL_SIZES)
TABLE_SIZES = (1, 2, ALL_SIZES)
MORE = {"llm_aggrefact": (4, 6, 10)}
GRID = tuple(
    AcrossPanels(mean, following, spread, degrees)
    for mean, following, spread, degrees in product((0.8, 1.5, 3.0), (0.5, 1.1), (0.06, 0.13, 0.3), (2.0, 3.0, 4.0))
)
BEFORE = Path(__file__).resolve().parent / "few" / "before.json"
MEASURES = ("ece", "log_loss", "balanced_accuracy")
RIVALS = ("before", "logistic regression + Platt", "best judge + Platt", "training prior", "constant")

Found = dict[str, Any]


def signed(votes: VoteMatrix) -> np.ndarray:
    """Return votes as 1, -1, and 0 for none."""
    return (votes.votes == 1).astype(float) - (votes.votes == 0)


def rivals(train: VoteMatrix, test: VoteMatrix) -> Iterator[Baseline]:
    """Yield the rivals of this page alone, beside those of `deep loo --few`: what thirty lines of scikit-learn do."""
    from sklearn.linear_model import LogisticRegression

    X, new, y = signed(train), signed(test), train.labels
    p = thirty_lines(X, y, train.datasets, new)
    balanced = LogisticRegression(class_weight="balanced", max_iter=500).fit(X, y)
    yield Baseline("logistic regression + Platt", "other", balanced.decision_function(new) >= 0, p=p)
    judge = int(np.argmax(np.abs(fit_best_judge(LabeledRows.of(train)).ones)))
    platt = LogisticRegression(C=1e6).fit(X[:, [judge]], y)
    p = platt.predict_proba(new[:, [judge]])[:, 1]
    yield Baseline("best judge + Platt", "other", new[:, judge] >= 0, p=p)
    shares = [train.labels[train.datasets == name].mean() for name in train.dataset_names]
    z = fit_average(LabeledRows.of(train)).log_odds(test.votes)
    yield Baseline("training prior", "other", z >= 0, p=expit(z + logit(shares, clip=0.01).mean()))
    yield Baseline("constant", "other", np.ones(len(z), dtype=bool), p=np.full(len(z), np.mean(shares)))
    shares_of_1, new_shares = X.sum(axis=1, keepdims=True), new.sum(axis=1, keepdims=True)
    platt = LogisticRegression(C=1e6).fit(shares_of_1 / X.shape[1], y)
    yield Baseline("majority", "other", new_shares[:, 0] >= 0, p=platt.predict_proba(new_shares / X.shape[1])[:, 1])


def measure(panels: Sequence[StudyPanel], draw: Draw) -> Found:
    """Return the figures of one draw, and what the rule for the intercept looks at."""
    panel = panels[draw.panel]
    votes = panel.votes.rows(np.isin(panel.votes.datasets.astype(str), [draw.target, *draw.others]))
    split = hold_out(votes, draw.target)
    y = split.test.labels
    model, scored = fit_and_score(split, None, random_state=0)
    result = {rival.name: measures(y, rival.p, rival.decisions) for rival in rivals(split.train, split.test)}
    raw = model.blend.raw(model.rows(model.select(split.test)))
    contexts = model.blend.contexts(raw, np.ones(len(y)))
    values, cell = np.unique(np.round(scored.log_odds, 9), return_inverse=True)
    rule = model.prior_rule
    assert isinstance(rule, LearnedPrior)
    return {
        "panel": panel.name,
        "k": draw.k,
        "target": draw.target,
        "rivals": result,
        "shipped": measures(y, scored.p_consistent, scored.decisions),
        "interval": of_interval(scored, split.test.votes, y),
        "seen": (rule.profiles_, rule.priors_, model.blend.profile(contexts), model.blend.offset(contexts)),
        "cells": (values, np.bincount(cell[y == 1], minlength=len(values)), np.bincount(cell, minlength=len(values))),
    }


def of_interval(scored: Scores, votes: np.ndarray, y: np.ndarray) -> Found:
    """Return which patterns the interval covers, its width, and how often sure decisions and others are right."""
    inverse = distinct_patterns(votes)[1]
    n, ones, first = np.bincount(inverse), np.bincount(inverse, y), np.unique(inverse, return_index=True)[1]
    low, high = scored.interval(n[inverse])
    rate, held = ones / n, n >= MANY_ROWS
    covered = (rate >= low[first] - 1e-12) & (rate <= high[first] + 1e-12)
    right = scored.decisions == y
    sure = [
        int(scored.sure.sum()),
        int(right[scored.sure].sum()),
        int((~scored.sure).sum()),
        int(right[~scored.sure].sum()),
    ]
    return {"covered": covered[held], "width": float(np.mean(np.diff(scored.bounds, axis=0))), "sure": sure}


def with_rule(row: Found, across: AcrossPanels) -> tuple[float, float, bool]:
    """Return ECE, log loss, and whether the interval holds the share, of one draw by a rule."""
    profiles, priors, profile, offset = row["seen"]
    z, ones, n = row["cells"]
    told = LearnedPrior(across).fit(profiles, priors).predict(profile, offset)
    p = np.clip(expit(told.line(z)), 1e-6, 1 - 1e-6)
    off = np.bincount(np.minimum((8 * p).astype(int), 7), weights=n * p - ones)
    loss = -(ones @ np.log(p) + (n - ones) @ np.log1p(-p)) / n.sum()
    return float(np.abs(off).sum() / n.sum()), float(loss), bool(told.low <= ones.sum() / n.sum() <= told.high)


def groups(rows: Sequence[Found]) -> dict[tuple[str, Any], list[int]]:
    """Return the positions of the draws of each panel and number of training datasets."""
    result: dict[tuple[str, Any], list[int]] = {}
    for i, row in enumerate(rows):
        result.setdefault((row["panel"], row["k"]), []).append(i)
    return result


def choose(table: np.ndarray, cells: Mapping[tuple[str, Any], list[int]], without: str | None) -> int:
    """Return the position of the best rule, every K and every panel within it weighing the same."""
    by_k: dict[Any, list[np.ndarray]] = {}
    for (panel, k), at in cells.items():
        if WITHIN.get(panel, panel) != without:
            weight = 0.5 if panel in (*WITHIN, *WITHIN.values()) else 1.0
            by_k.setdefault("more" if k not in (1, 2, 3) else k, []).append(weight * table[:, at].mean(axis=1))
    return int(np.argmin(sum(np.mean(losses, axis=0) for losses in by_k.values())))


def summary(rows: Sequence[Found], before: Mapping[str, Any]) -> Found:
    """Return what each panel's rule is, chosen by the others, and all figures by K and panel."""
    tried = np.array([[with_rule(row, across) for row in rows] for across in GRID], dtype=float)
    losses, cells = tried[:, :, 0] + tried[:, :, 1], groups(rows)
    names = {WITHIN.get(row["panel"], row["panel"]) for row in rows}
    chosen = (
        {name: choose(losses, cells, name) for name in sorted(names)} if len(names) > 1 else dict.fromkeys(names, 0)
    )
    result: Found = {
        "across": vars(GRID[choose(losses, cells, None)]),
        "chosen_by_the_others": {name: vars(GRID[at]) for name, at in chosen.items()},
        "cells": [],
    }
    for (panel, k), at in cells.items():
        nested = tried[chosen[WITHIN.get(panel, panel)], at].mean(axis=0)
        mine = [rows[i] for i in at]
        by_rival = {
            name: {m: float(np.mean([row["rivals"][name][m] for row in mine])) for m in MEASURES}
            for name in mine[0]["rivals"]
        }
        shipped = {m: float(np.mean([row["shipped"][m] for row in mine])) for m in MEASURES}
        deep = {"ece": nested[0], "log_loss": nested[1], "balanced_accuracy": shipped["balanced_accuracy"]}
        old = np.array(before.get(panel, {}).get(str(k), []))[: len(at)]
        by_rival |= (
            {} if len(old) < len(at) else {"before": dict(zip(MEASURES, old.mean(axis=0).tolist(), strict=True))}
        )
        cell = {"panel": panel, "k": k, "draws": len(at), "deep": deep, "shipped": shipped}
        result["cells"].append(cell | {"covered": float(nested[2]), "rivals": by_rival})
    return result


def lines(found: Found) -> Iterator[str]:
    """Yield the tables as Markdown: ECE / log loss / balanced accuracy."""
    yield f"Across panels: {found['across']}"
    for name, across in found["chosen_by_the_others"].items():
        yield f"- without {name}: {across}"
    for k in dict.fromkeys(cell["k"] for cell in found["cells"]):
        mine = [cell for cell in found["cells"] if cell["k"] == k]
        names = [name for name in RIVALS if all(name in cell["rivals"] for cell in mine)]
        yield ""
        yield f"| K = {k} | deep | shipped | {' | '.join(names)} | 90 % interval covers |"
        yield f"|---|{'---|' * (len(names) + 3)}"
        for cell in mine:
            figures = [cell["deep"], cell["shipped"], *(cell["rivals"][name] for name in names)]
            yield f"| {cell['panel']} | {' | '.join(map(shown, figures))} | {100 * cell['covered']:.0f} |"
        columns = [[cell["deep"] for cell in mine], [cell["shipped"] for cell in mine]]
        columns += [[cell["rivals"][name] for cell in mine] for name in names]
        means = [{m: float(np.mean([one[m] for one in column])) for m in MEASURES} for column in columns]
        covered = 100 * np.mean([cell["covered"] for cell in mine])
        yield f"| **mean** | {' | '.join(map(shown, means))} | {covered:.1f} |"


def beside(rows: Sequence[Found]) -> Iterator[str]:
    """Yield the table of decisions and log loss beside thirty lines and the majority, means over draws, as Markdown."""
    names = ("deep", "logistic regression + Platt", "majority")
    for k in TABLE_SIZES:
        mine = [row for row in rows if row["k"] == k]
        means = {
            panel: np.array(
                [
                    [
                        np.mean([(row["rivals"] | {"deep": row["shipped"]})[name][m] for row in of])
                        for m in ("balanced_accuracy", "log_loss")
                    ]
                    for name in names
                ]
            )
            for panel in dict.fromkeys(row["panel"] for row in mine)
            for of in [[row for row in mine if row["panel"] == panel]]
        }
        yield f"\n| K = {k}: balanced accuracy / log loss | deep | thirty lines | majority | less thirty lines |"
        yield "|---|---|---|---|---|"
        for panel, result in means.items():
            cells = " | ".join(f"{100 * accuracy:.1f} / {loss:.3f}" for accuracy, loss in result)
            accuracy, loss = result[0] - result[1]
            yield f"| {panel} | {cells} | {100 * accuracy:+.1f} / {loss:+.3f} |"
        apart = np.array([result[0] - result[1] for result in means.values()])
        error = apart.std(axis=0, ddof=1) / np.sqrt(len(apart)) if len(apart) > 1 else np.zeros(2)
        cells = " | ".join(f"{100 * a:.1f} / {b:.3f}" for a, b in np.mean(list(means.values()), axis=0))
        (accuracy, loss), (its, losses) = apart.mean(axis=0), error
        yield f"| **mean** | {cells} | {100 * accuracy:+.2f} ± {100 * its:.2f} / {loss:+.4f} ± {losses:.4f} |"
        by_panel = {panel: [row["interval"] for row in mine if row["panel"] == panel] for panel in means}
        patterns = {panel: np.concatenate([one["covered"] for one in of]) for panel, of in by_panel.items()}
        each = [
            np.mean([one["covered"].mean() for one in of if len(one["covered"])])
            for panel, of in by_panel.items()
            if len(patterns[panel])
        ]
        width = np.mean([one["width"] for of in by_panel.values() for one in of])
        of_all, of_panels = 100 * np.mean(np.concatenate(list(patterns.values()))), 100 * np.mean(each)
        yield f"\n90 % intervals, width {width:.2f}, cover {of_all:.1f} % of the patterns of {MANY_ROWS} rows and more,"
        yield f"{of_panels:.1f} % in the mean over panels."
        sure = {panel: np.sum([one["sure"] for one in of], axis=0) for panel, of in by_panel.items()}
        rates = {panel: (a, b / max(a, 1), d / max(c, 1)) for panel, (a, b, c, d) in sure.items()}
        share = np.mean([a / (a + c) for a, _, c, _ in sure.values()])
        told = ", ".join(
            f"{panel} {a} items, {100 * b:.0f} / {100 * c:.0f} %" for panel, (a, b, c) in rates.items() if a
        )
        yield f"Sure: {100 * share:.1f} % of the items; right among the sure / the others: {told or 'none'}."
        worst, least = min(((100 * (f[0] - f[2])[0], panel) for panel, f in means.items()))
        yield f"\nBehind the majority by most: {least}, {worst:+.1f}."


def shown(one: Mapping[str, float]) -> str:
    """Return ECE / log loss / balanced accuracy."""
    return f"{100 * one['ece']:.1f} / {one['log_loss']:.3f} / {100 * one['balanced_accuracy']:.1f}"


def main() -> None:
    """Read panels, run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--panels", nargs="+", choices=[*PANELS, *LATER])
    parser.add_argument("--table", action="store_true", help="beside thirty lines and the majority, on all panels")
    parser.add_argument("--draws", type=int, default=40)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, help="a JSON file")
    args = parser.parse_args()
    started, data = time.perf_counter(), Path(os.environ.get("DEEP_DATA_HOME", "../shared/data"))
    files = PANELS | LATER
    names = args.panels or list(files if args.table else PANELS)
    panels = [StudyPanel(name, measurable(read_votes([str(data / name / files[name])]))[0]) for name in names]
    tasks = []
    for i, panel in enumerate(panels):
        sizes = TABLE_SIZES if args.table else (*SIZES, *MORE.get(panel.name, ()))
        wanted = [k for k in sizes if k == ALL_SIZES or k < len(panel.votes.dataset_names)]
        tasks += [Draw(i, d.k, d.target, d.others) for d in draws_of([panel], wanted, args.draws, 0)]
    with progress_bars() as progress:
        rows = list(parallel_map(args.jobs, progress, "draws")(partial(measure, panels), tasks))
    if args.table:
        sys.stdout.write("\n".join(beside(rows)) + f"\n\n{round(time.perf_counter() - started)} s\n")
        return
    result = summary(rows, json.loads(BEFORE.read_text()) if BEFORE.exists() else {})
    result["seconds"] = round(time.perf_counter() - started)
    sys.stdout.write("\n".join(lines(result)) + f"\n\n{result['seconds']} s\n")
    if args.out is not None:
        args.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
