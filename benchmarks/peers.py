"""deep beside its peers, on the same votes in the same process, and beside the label models published on WRENCH.

    make peers                                                     # everything, and the page
    DEEP_DATA_HOME=... python benchmarks/peers.py [--size quick] [--only wrench] [--out FILE.json]
    python benchmarks/peers.py --render                            # docs/benchmarks.md from the committed JSON

Peers that are not installed are named as missing; nothing takes their place. What an older
commit reaches without labels is measured with a checkout OLD of it, and shown beside (`peers/fbc87a9.json`):

    PYTHONPATH=OLD:OLD/benchmarks:benchmarks python -P benchmarks/peers.py --only wrench crowds --methods deep --out F
"""

import argparse
import json
import logging
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from bench import git, machine, short
from peers_page import PAGE, page

from deep.datasets import read_votes
from deep.ensembles import MajorityLabelVoter
from deep.records import VoteMatrix

HERE = Path(__file__).resolve().parent
FOUND, UNTUNED = HERE / "peers" / "found.json", HERE / "peers" / "fbc87a9.json"
PACKAGES = (
    "snorkel",
    "crowd-kit",
    "ppi-python",
    "glide-py",
    "truescore",
    "judgy",
    "cje-eval",
    "netcal",
    "scikit-learn",
    "numpy",
)
WRENCH = ("cdr", "commercial", "imdb", "sms", "tennis", "yelp", "youtube")
CROWDS = {"RTE": "votes_RTE.csv", "bluebirds": "votes_bluebirds_duck.csv"}
LEVEL = 0.9
CUT = 1e-6
"""P is held this far from 0 and 1 where log loss is taken, for every method alike."""
BOOTSTRAP = 200

QUICK = ("deep", "majority", "snorkel LabelModel", "crowd-kit DawidSkene")
SIZES: Mapping[str, Mapping[str, Any]] = {
    "full": {"sets": WRENCH, "draws": 10, "pairs": 4, "panels": None, "fits": 2, "years": 6},
    "quick": {
        "sets": ("youtube",),
        "draws": 1,
        "pairs": 1,
        "panels": ("css_binary",),
        "fits": 1,
        "years": 1,
        "methods": QUICK,
    },
}

Found = dict[str, Any]
Labeled = tuple[np.ndarray, np.ndarray]
Share = tuple[float, float, float]


def data_home() -> Path:
    """Return the folder of real data."""
    return Path(os.environ.get("DEEP_DATA_HOME", HERE.parents[1] / "shared" / "data"))


# Votes alone


def deep_alone(votes: np.ndarray) -> np.ndarray:
    """Return P by what deep learns from votes alone."""
    from unlabeled import unlabeled

    return unlabeled(votes)


def by_majority(votes: np.ndarray) -> np.ndarray:
    """Return the share of votes for 1."""
    return np.asarray(MajorityLabelVoter().fit(votes).predict_proba(votes)[:, 1])


def by_snorkel(votes: np.ndarray) -> np.ndarray:
    """Return P of snorkel's label model, as its tutorial fits it."""
    from snorkel.labeling.model import LabelModel

    model = LabelModel(cardinality=2, verbose=False)
    model.fit(votes.astype(np.int64), n_epochs=500, seed=0, progress_bar=False)
    return np.asarray(model.predict_proba(votes.astype(np.int64))[:, 1])


def by_crowdkit(name: str, votes: np.ndarray) -> np.ndarray:
    """Return P of an aggregator of crowd-kit at its defaults."""
    from crowdkit import aggregation

    row, voter = np.nonzero(votes >= 0)
    answers = pd.DataFrame({"task": row, "worker": voter, "label": votes[row, voter].astype(int)})
    p = getattr(aggregation, name)().fit_predict_proba(answers)
    return p.reindex(index=range(len(votes)), columns=[0, 1]).fillna(0.0)[1].to_numpy()


ALONE: Mapping[str, Callable[[np.ndarray], np.ndarray]] = {
    "deep": deep_alone,
    "majority": by_majority,
    "snorkel LabelModel": by_snorkel,
    "crowd-kit DawidSkene": partial(by_crowdkit, "DawidSkene"),
    "crowd-kit OneCoinDawidSkene": partial(by_crowdkit, "OneCoinDawidSkene"),
    "crowd-kit GLAD": partial(by_crowdkit, "GLAD"),
}
LARGE = 1_000
SLOW = ("crowd-kit GLAD",)
"""Left out of sets of more than `LARGE` rows, where it takes minutes."""


def losses(p: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return hit, log loss and squared error of each row, shape (3, n)."""
    held = np.clip(p, CUT, 1 - CUT)
    return np.array([(p >= 0.5) == y, -np.where(y == 1, np.log(held), np.log1p(-held)), (p - y) ** 2], dtype=float)


def alone(votes: VoteMatrix, names: Sequence[str] | None) -> Found:
    """Return accuracy, log loss and Brier score of each method, and deep's less each, with standard errors by rows."""
    rows, seconds, y = {}, {}, np.asarray(votes.labels)
    for name, method in ALONE.items():
        if (name in SLOW and len(y) > LARGE) or (names and name not in names):
            continue
        started = time.process_time()
        try:
            rows[name] = losses(method(votes.votes), y)
        except ImportError:
            continue
        seconds[name] = round(time.process_time() - started, 2)
    apart = {name: rows["deep"] - row for name, row in rows.items() if name != "deep"}
    return {
        "rows": len(y),
        "figures": {name: row.mean(axis=1).tolist() for name, row in rows.items()},
        "less": {
            name: [row.mean(axis=1).tolist(), (row.std(axis=1) / np.sqrt(len(y))).tolist()]
            for name, row in apart.items()
        },
        "seconds": seconds,
    }


def of_wrench(size: Mapping[str, Any]) -> Found:
    """Return the figures of each set of WRENCH, and of the label models published on them."""
    folder = data_home() / "wrench"
    result = {name: alone(read_votes([str(folder / f"{name}.parquet")]), size.get("methods")) for name in size["sets"]}
    table = pd.read_csv(folder / "published_label_models.csv")
    table["brier"] = table.brier_sum / 2
    for name, one in result.items():
        mine = table[table.dataset == name].set_index("method")[["acc", "log_loss", "brier"]]
        one["published"] = {
            str(method): [*map(float, row)] for method, row in zip(mine.index, mine.values, strict=True)
        }
    return result


def of_crowds(size: Mapping[str, Any]) -> Found:
    """Return the figures of each crowd."""
    folder, names = data_home() / "crowd", size.get("methods")
    return {name: alone(read_votes([str(folder / file)]), names) for name, file in CROWDS.items()}


# A few labels


def labeled(p: np.ndarray, labels: np.ndarray) -> Labeled:
    """Return P and label of the labeled items."""
    return p[labels >= 0], labels[labels >= 0].astype(float)


def by_ppi(p: np.ndarray, labels: np.ndarray, votes: np.ndarray) -> Share:  # noqa: ARG001
    """Return ppi-python's estimate, its power tuned, and interval."""
    from ppi_py import ppi_mean_ci, ppi_mean_pointestimate

    known, y = labeled(p, labels)
    rest = p[labels < 0]
    low, high = ppi_mean_ci(y, known, rest, alpha=1 - LEVEL)
    return float(np.ravel(ppi_mean_pointestimate(y, known, rest))[0]), float(np.ravel(low)[0]), float(np.ravel(high)[0])


def by_glide(p: np.ndarray, labels: np.ndarray, votes: np.ndarray) -> Share:  # noqa: ARG001
    """Return GLIDE's prediction-powered estimate with P as its proxy, and interval."""
    from glide.estimators import PPIMeanEstimator

    return of_glide(PPIMeanEstimator().estimate(with_gaps(labels), p, confidence_level=LEVEL))


def by_glide_judges(p: np.ndarray, labels: np.ndarray, votes: np.ndarray) -> Share:  # noqa: ARG001
    """Return GLIDE's estimate with each judge as a proxy: one half where it has no vote, and none that is constant."""
    from glide.estimators import MultiPPIMeanEstimator

    proxies = np.where(votes < 0, 0.5, votes)
    proxies = proxies[:, proxies.min(axis=0) < proxies.max(axis=0)]
    return of_glide(MultiPPIMeanEstimator().estimate(with_gaps(labels), proxies, confidence_level=LEVEL))


def with_gaps(labels: np.ndarray) -> np.ndarray:
    """Return the labels, NaN where there is none."""
    return np.where(labels < 0, np.nan, labels.astype(float))


def of_glide(result: Any) -> Share:
    """Return estimate and bounds of a result of GLIDE."""
    interval = result.confidence_interval
    return float(interval.mean), float(interval.lower_bound), float(interval.upper_bound)


def by_truescore(p: np.ndarray, labels: np.ndarray, votes: np.ndarray) -> Share:  # noqa: ARG001
    """Return truescore's estimate and interval."""
    from truescore import ppi_estimate

    at = np.flatnonzero(labels >= 0)
    result = ppi_estimate(p, labels[at].astype(float), at, alpha=1 - LEVEL)
    return float(result.point), float(result.low), float(result.high)


def by_judgy(p: np.ndarray, labels: np.ndarray, votes: np.ndarray) -> Share:
    """Return judgy's estimate and interval, from votes: P cut at one half."""
    from judgy import estimate_success_rate

    known, y = labeled(p, labels)
    np.random.seed(0)  # noqa: NPY002 - it draws from the global generator
    votes, rest = (known >= 0.5).astype(int), (p[labels < 0] >= 0.5).astype(int)
    result = estimate_success_rate(y.astype(int), votes, rest, bootstrap_iterations=BOOTSTRAP, confidence_level=LEVEL)
    return tuple(map(float, result))


def by_cje(p: np.ndarray, labels: np.ndarray, votes: np.ndarray) -> Share:  # noqa: ARG001
    """Return CJE's calibrated mean and interval."""
    from cje import calibrated_mean_ci

    result = calibrated_mean_ci(p, np.where(labels < 0, np.nan, labels.astype(float)), alpha=1 - LEVEL)
    return float(result.estimate), float(result.ci[0]), float(result.ci[1])


def by_labels(p: np.ndarray, labels: np.ndarray, votes: np.ndarray) -> Share:  # noqa: ARG001
    """Return the mean of the labels and Wilson's interval."""
    y = labeled(p, labels)[1]
    n, mean, z = len(y), float(y.mean()), 1.6448536269514722
    middle = (mean + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * np.sqrt(mean * (1 - mean) / n + z * z / (4 * n * n))
    return mean, float(middle - half), float(middle + half)


SHARES: Mapping[str, Callable[[np.ndarray, np.ndarray, np.ndarray], Share]] = {
    "ppi-python": by_ppi,
    "glide-py, P": by_glide,
    "glide-py, judges": by_glide_judges,
    "truescore": by_truescore,
    "judgy": by_judgy,
    "cje-eval": by_cje,
    "labels alone": by_labels,
}


def or_labels(name: str, p: np.ndarray, labels: np.ndarray, votes: np.ndarray) -> Share | None:
    """Return a peer's share; NaN where it refuses or finds no number, None where it is not installed."""
    try:
        result = SHARES[name](p, labels, votes)
    except ImportError:
        return None
    except (ValueError, RuntimeError, np.linalg.LinAlgError):
        result = (np.nan,) * 3
    return result if np.isfinite(result).all() else (np.nan,) * 3


def tells_ppi(p: np.ndarray, labels: np.ndarray, system: np.ndarray, documents: np.ndarray) -> bool:  # noqa: ARG001
    """Return whether ppi-python's intervals of both systems, taken as normal and independent, tell them apart."""
    (a, low_a, high_a), (b, low_b, high_b) = (by_ppi(p[system == one], labels[system == one], p) for one in (0, 1))
    return bool(abs(a - b) > np.hypot(high_a - low_a, high_b - low_b) / 2)


def tells_cje(p: np.ndarray, labels: np.ndarray, system: np.ndarray, documents: np.ndarray) -> bool:
    """Return whether CJE's comparison, paired by document, has p < .1."""
    from cje import analyze_dataset

    rows = zip(system, documents, p, labels, strict=True)
    draws: dict[str, list[Found]] = {"0": [], "1": []}
    for one, document, score, label in rows:
        oracle = {"oracle_label": float(label)} if label >= 0 else {}
        draws[str(one)].append({"prompt_id": str(document), "judge_score": float(score)} | oracle)
    return bool(analyze_dataset(fresh_draws_data=draws).compare_policies(0, 1)["p_value"] < 1 - LEVEL)


PAIRS = {"ppi-python": tells_ppi, "cje-eval": tells_cje}


def panels_of(size: Mapping[str, Any]) -> dict[str, VoteMatrix]:
    """Return the panels of judges that a size measures on."""
    from few_datasets import PANELS

    names = size["panels"] or PANELS
    return {name: read_votes([str(data_home() / name / PANELS[name])]) for name in names}


def _quiet() -> None:
    """Keep warnings of libraries, in each process, off the screen."""
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)


def spread(work: Callable[[Any], Any], tasks: Sequence[Any], jobs: int, what: str) -> Iterator[Any]:
    """Yield what each task gives, of several processes."""
    from deep.console import parallel_map, progress_bars

    with progress_bars() as progress:
        yield from parallel_map(jobs, progress, what)(work, tasks)


def shares_of(panels: Mapping[str, VoteMatrix], draws: int, task: Any) -> list[tuple[Any, ...]]:
    """Return the rows of one target of the study of shares."""
    from share import of_share

    _quiet()
    peers = {name: partial(or_labels, name) for name in SHARES}
    return list(of_share(panels[task.panel], task, "items", draws, peers))


def of_share(size: Mapping[str, Any], jobs: int) -> Found:
    """Return RMSE, coverage, width and refusals of each method by number of labels, with deep's less each."""
    from share import LABELS, RULE, tasks_of

    panels = panels_of(size)
    tasks = tasks_of("items", panels, "all", 0)
    rows = [row for part in spread(partial(shares_of, panels, size["draws"]), tasks, jobs, "shares") for row in part]
    table = pd.DataFrame(rows, columns=["labels", "method", "panel", "dataset", "error", "held", "width"])
    table = table[table.method.isin([RULE, *SHARES])].replace({"method": {RULE: "deep"}})
    return {str(n): share_table(table[table.labels == n]) for n in LABELS if (table.labels == n).any()}


def share_table(table: pd.DataFrame) -> Found:
    """Return a row a method; where it refuses, the mean of the labels counts, and neither coverage nor width."""
    by = ["panel", "dataset"]
    draw = table.groupby([*by, "method"]).cumcount()
    errors = table.assign(draw=draw).pivot(index=[*by, "draw"], columns="method", values="error")
    filled = errors.apply(lambda column: column.fillna(errors["labels alone"]))
    rmse = (filled**2).groupby(by).mean() ** 0.5
    result = {}
    for name, mine in table[table.method.isin(errors)].groupby("method"):
        told = mine[mine.error.notna()]
        less = rmse["deep"] - rmse[name]
        result[str(name)] = {
            "rmse": float(rmse[name].mean()),
            "covered": float(told.groupby(by).held.mean().mean()),
            "width": float(told.groupby(by).width.mean().mean()),
            "refused": float(mine.error.isna().mean()),
            "less": [float(less.mean()), float(less.std() / np.sqrt(len(less)))],
            "datasets": len(rmse),
        }
    return result


def pairs_of(panels: Mapping[str, VoteMatrix], draws: int, task: Any) -> list[tuple[Any, ...]]:
    """Return the rows of one pair of the study of A against B."""
    from share import of_pairs

    _quiet()
    return list(of_pairs(panels[task.panel], task, draws, installed(PAIRS)))


def installed(peers: Mapping[str, Any]) -> dict[str, Any]:
    """Return the peers whose package is there."""
    return {name: peer for name, peer in peers.items() if versions()[name] is not None}


def of_compare(size: Mapping[str, Any], jobs: int) -> Found:
    """Return by method how often two systems are told apart: where they differ, and where they are alike."""
    from share import FAITHBENCH, tasks_of

    full = size["panels"] is None
    panels = panels_of({"panels": (FAITHBENCH,)})
    tasks = [task for task in tasks_of("compare", panels, "all", 0) if len(task.others) > 1]
    tasks = tasks if full else [*tasks[:1], *tasks[-1:]]
    rows = [row for part in spread(partial(pairs_of, panels, size["pairs"]), tasks, jobs, "pairs") for row in part]
    table = pd.DataFrame(rows, columns=["many", "what", "method", "told"]).astype({"told": float})
    table = table[table.method.isin(["deep", *PAIRS, "labels alone"])]
    result: Found = {}
    for (what, name), mine in table.groupby(["what", "method"]):
        deep = table[(table.what == what) & (table.method == "deep")].told.to_numpy()
        less = deep - mine.told.to_numpy()
        error = float(less.std() / np.sqrt(len(less)))
        result.setdefault(what, {})[name] = {
            "told": float(mine.told.mean()),
            "less": [float(less.mean()), error],
            "n": len(mine),
        }
    return result


# A stream looked at every week

WEEK_LABELS = 30
"""Of the items of a week, those that have a label for GLIDE; deep sees none."""

FALL = 0.1
"""By which the share of consistent items is lower from the week of the change on."""


def years_of(panels: Mapping[str, VoteMatrix], years: int, task: Any) -> list[tuple[Any, ...]]:
    """Return whether deep and GLIDE alarm in years without change, and after how many weeks they find a fall."""
    from share import ONSET, WEEK, WEEKS

    from deep.evaluate import stream_rates
    from deep.model import changed_rates, fit

    _quiet()
    votes = panels[task.panel]
    mine = votes.rows((votes.datasets == task.target[0]) & (votes.labels >= 0))
    model = fit(mine.with_columns(labels=np.full(len(mine.labels), -1)))
    p, y, share = model.score(mine), mine.labels, float(mine.labels.mean())
    rng = np.random.default_rng([years, task.draw])

    def week(consistent: float) -> np.ndarray:
        ones = rng.binomial(WEEK, consistent)
        return np.concatenate(
            [rng.choice(np.flatnonzero(y == 1), ones), rng.choice(np.flatnonzero(y == 0), WEEK - ones)]
        )

    def deep_alarms(weeks: Sequence[np.ndarray]) -> list[bool]:
        rates = [stream_rates(model, mine.rows(one)) for one in weeks]
        # Half of a gate's alpha is for votes.
        return [bool(changed_rates(rates[:n], alpha=(1 - YEAR_LEVEL) / 2)) for n in range(1, len(rates) + 1)]

    def glide_alarms(weeks: Sequence[np.ndarray]) -> list[bool]:
        from glide.monitors import AsymptoticPPRM

        rows = np.concatenate(weeks)
        result = AsymptoticPPRM().detect(
            np.where(np.arange(len(rows)) % WEEK < WEEK_LABELS, y[rows], np.nan),
            p[rows],
            np.repeat(np.arange(len(weeks)), WEEK),
            higher_is_better=True,
            threshold=share,
            confidence_level=YEAR_LEVEL,
        )
        return [bool(alarm) for alarm in result.alarms]

    rows = []
    monitors = {"deep": deep_alarms} | ({} if versions()["glide-py"] is None else {"glide-py": glide_alarms})
    for _ in range(years):
        before, after = ([rng.permutation(week(at)) for _ in range(WEEKS)] for at in (share, max(share - FALL, 0.0)))
        for name, alarms in monitors.items():
            result = [*alarms([*before[:ONSET], *after[ONSET:]])[ONSET:], True]
            rows.append((name, task.panel, task.target[0], any(alarms(before)), result.index(True) + 1))
    return rows


YEAR_LEVEL = 0.95
"""Of a monitor's years without any change so many have no alarm."""


def of_monitor(size: Mapping[str, Any], jobs: int) -> Found:
    """Return by method the share of years without change that alarm, and the weeks until a fall is found."""
    from share import tasks_of

    panels = panels_of(size)
    tasks = tasks_of("stream", panels, "all", 0)
    rows = [row for part in spread(partial(years_of, panels, size["years"]), tasks, jobs, "years") for row in part]
    table = pd.DataFrame(rows, columns=["method", "panel", "dataset", "alarm", "weeks"])
    return {
        str(name): {
            "alarms": float(mine.alarm.mean()),
            "weeks": float(mine.groupby("panel").weeks.mean().mean()),
            "most": float(mine.groupby("panel").weeks.mean().max()),
            "years": len(mine),
        }
        for name, mine in table.groupby("method")
    }


# Labeled datasets


def of_p(size: Mapping[str, Any], jobs: int) -> Found:
    """Return ECE, log loss and balanced accuracy on a dataset without labels, of deep and of what scikit-learn does."""
    from few_datasets import MEASURES, measurable, measure

    from deep.experiments.few_datasets import ALL_SIZES, Draw, StudyPanel, draws_of

    panels = [StudyPanel(name, measurable(votes)[0]) for name, votes in panels_of(size).items()]
    tasks = [
        Draw(i, d.k, d.target, d.others)
        for i, panel in enumerate(panels)
        for d in draws_of([panel], [1, 2, 3, ALL_SIZES][: max(2, len(panel.votes.dataset_names) - 1)], size["fits"], 0)
        if d.k == ALL_SIZES or d.k < len(panel.votes.dataset_names)
    ]
    result: Found = {}
    for row in spread(partial(measure, panels), tasks, jobs, "fits"):
        rivals = {name: row["rivals"][name] for name in ("logistic regression + Platt", "best judge + Platt")}
        for name, one in {"deep": row["shipped"], **rivals}.items():
            figures = result.setdefault(str(row["k"]), {}).setdefault(row["panel"], {}).setdefault(name, [])
            figures.append([float(one[m]) for m in MEASURES])
    return {
        k: {panel: {name: np.mean(rows, axis=0).tolist() for name, rows in of.items()} for panel, of in by.items()}
        for k, by in result.items()
    }


def of_calibrators(size: Mapping[str, Any]) -> Found:  # noqa: ARG001 - a minute
    """Return log loss and seconds of each calibrator and of netcal's of the same name, by kind of scores."""
    try:
        from netcal_maps import measured, samples

        from deep.calibration import CALIBRATORS, NETCAL_CALIBRATORS

        for kind in NETCAL_CALIBRATORS.values():
            kind().fit(np.array([0.2, 0.8, 0.4, 0.6] * 25), np.array([0, 1, 1, 0] * 25))
    except ImportError:
        return {}
    result: Found = {}
    for scores, fitted_on, test in samples():
        for option, kind in NETCAL_CALIBRATORS.items():
            own = option.removeprefix("netcal-").replace("enir", "isotonic")
            p, _, theirs = measured(kind, fitted_on, test)
            q, _, ours = measured(CALIBRATORS[own], fitted_on, test)
            if theirs is None or ours is None:
                continue
            less = losses(q, test[1])[1] - losses(p, test[1])[1]
            result.setdefault(option, {})[scores] = {
                "deep": [ours["log_loss"], ours["seconds"]],
                "netcal": [theirs["log_loss"], theirs["seconds"]],
                "less": [float(less.mean()), float(less.std() / np.sqrt(len(less)))],
            }
    return result


STUDIES: Mapping[str, Callable[..., Found]] = {
    "wrench": of_wrench,
    "crowds": of_crowds,
    "share": of_share,
    "compare": of_compare,
    "monitor": of_monitor,
    "p": of_p,
    "calibrators": of_calibrators,
}
IN_PARALLEL = ("share", "compare", "monitor", "p")


def versions() -> dict[str, str | None]:
    """Return the version of each peer; None where it is not installed."""
    result: dict[str, str | None] = {}
    for name in PACKAGES:
        try:
            result[name] = version(name)
        except PackageNotFoundError:
            result[name] = None
    return result


def commit() -> str:
    """Return the commit that is measured, and whether it was changed."""
    changed = bool(git("status", "--porcelain", "--untracked-files=no"))
    return git("rev-parse", "--short=12", "HEAD") + (", with changes" if changed else "")


def measured(name: str, size: Mapping[str, Any], jobs: int, of: str) -> Found:
    """Run a study; return by study what was found, of which commit, and its seconds."""
    started = time.perf_counter()
    result = STUDIES[name](size, *([jobs] if name in IN_PARALLEL else []))
    parts = {"commits": of, "seconds": round(time.perf_counter() - started), "found": short(result, figures=5)}
    sys.stdout.write(f"{name}: {parts['seconds']} s\n")
    sys.stdout.flush()
    return {key: {name: part} for key, part in parts.items()}


def keep(new: Found, size: str, path: Path) -> None:
    """Write a study to a file of studies, in place of an earlier run of it."""
    old = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    for part, mine in new.items():
        both = old.get(part, {}) | mine
        new[part] = {name: both[name] for name in STUDIES if name in both}
    where = {"date": datetime.now(UTC).date().isoformat(), "machine": machine(), "versions": versions()}
    path.parent.mkdir(exist_ok=True)
    path.write_text(
        json.dumps({"command": "make peers", "size": size} | where | new, indent=1) + "\n", encoding="utf-8"
    )


def main() -> int:
    """Run, write, render."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", choices=SIZES, default="full")
    parser.add_argument("--only", nargs="+", choices=STUDIES, default=list(STUDIES), metavar="STUDY")
    parser.add_argument("--methods", nargs="+", choices=ALONE, metavar="METHOD", help="of votes alone; default: all")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, default=FOUND, metavar="FILE.json", help="studies not run stay as they are")
    parser.add_argument("--render", action="store_true", help="run nothing")
    args = parser.parse_args()
    _quiet()
    of = commit()
    for name in () if args.render else args.only:
        only = {"methods": args.methods} if args.methods else {}
        keep(measured(name, SIZES[args.size] | only, args.jobs, of), args.size, args.out)
    if args.out == FOUND:
        runs = (json.loads(path.read_text(encoding="utf-8")) for path in (FOUND, UNTUNED))
        PAGE.write_text(page(*runs), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
