"""deep's calibrators against netcal's of the same name: how far apart, how good, how fast.

python benchmarks/netcal_maps.py [--out FILE.json]

Scores of a simulated overconfident judge, distinct or on edges between bins, and of logistic regression on three of the
embedded, simulated voters, tested on a dataset that was held out.
"""

import argparse
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from deep.base import BaseCalibrator
from deep.calibration import (
    CALIBRATORS,
    NETCAL_CALIBRATORS,
    expected_calibration_error,
    log_loss,
    netcal_expected_calibration_error,
)
from deep.datasets import simulate_votes
from deep.ensembles import LogisticRegression
from deep.evaluate import hold_out
from deep.exceptions import InputError

Sample = tuple[npt.NDArray[np.float64], npt.NDArray[np.int8]]


def judge(n: int, seed: int, digits: int | None = None) -> Sample:
    """Return scores whose log-odds are twice too large, and labels."""
    rng = np.random.default_rng(seed)
    log_odds = rng.normal(0, 1.2, n)
    y = (rng.random(n) < 1 / (1 + np.exp(-log_odds))).astype(np.int8)
    p = 1 / (1 + np.exp(-2 * log_odds))
    return (p if digits is None else p.round(digits)), y


def table_scores() -> tuple[Sample, Sample]:
    """Return P of logistic regression on three voters, on its training data and on aggrefact-xsum."""
    split = hold_out(simulate_votes(0), "aggrefact-xsum")
    model = LogisticRegression().fit(split.train.votes[:, :3], split.train.labels)
    train, test = ((model.predict_proba(votes.votes[:, :3])[:, 1], votes.labels) for votes in (split.train, split.test))
    return train, test


def samples() -> Iterator[tuple[str, Sample, Sample]]:
    """Yield a name, what is fitted on, and what is measured on."""
    yield "distinct scores, 300 labels", judge(300, 0), judge(4000, 1)
    yield "distinct scores, 3,000 labels", judge(3000, 2), judge(4000, 1)
    yield "scores in steps of 0.1, 3,000 labels", judge(3000, 2, 1), judge(4000, 1, 1)
    yield "a table of three simulated voters", *table_scores()


def measured(kind: type[BaseCalibrator], fitted_on: Sample, test: Sample) -> tuple[npt.NDArray[np.float64], str, Any]:
    """Return P on the test, a text of its metrics, its seconds and log loss; netcal's reason where there is no map."""
    started = time.process_time()
    try:
        p = kind().fit(*fitted_on).transform(test[0])
    except InputError as error:
        return np.full(len(test[0]), np.nan), str(error), None
    seconds, loss = time.process_time() - started, float(log_loss(test[1], p))
    ece = 100 * expected_calibration_error(test[1], p)
    text = f"ECE {ece:4.1f} (netcal's {100 * netcal_expected_calibration_error(test[1], p):4.1f})"
    return p, f"{text}  log loss {loss:.4f}  {seconds:6.2f} s", {"seconds": seconds, "log_loss": loss}


def main() -> None:
    """Print two lines for each kind of scores and each calibrator of netcal."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="also write the seconds and log losses here, as JSON")
    args, result = parser.parse_args(), []
    for kind in NETCAL_CALIBRATORS.values():
        kind().fit(*judge(50, 3))
    for name, fitted_on, test in samples():
        sys.stdout.write(f"{name}\n")
        for option, kind in NETCAL_CALIBRATORS.items():
            own = option.removeprefix("netcal-").replace("enir", "isotonic")
            p, text, theirs = measured(kind, fitted_on, test)
            q, own_text, ours = measured(CALIBRATORS[own], fitted_on, test)
            sys.stdout.write(f"  {option:19s}{text}\n  {own:19s}{own_text}  furthest apart {np.abs(p - q).max():.4f}\n")
            result.append({"scores": name, "calibrator": option, "netcal": theirs, "deep": ours})
    if args.out:
        args.out.write_text(json.dumps(result) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
