"""How many wrong answers pass at the same effort of checking: the figures and the picture of the README.

    DEEP_DATA_HOME=... python docs/_site/front.py [--image docs/images/front.png]

Each dataset of six panels of real judges is held out in turn. A model is fitted on the labels of the others and scores
the votes of the one held out. The effort is the number of items that the best single judge, chosen on those others,
calls inconsistent. As many items are checked in the order of P, by the share of judges that vote 1, or at random;
what is not checked passes. Ties are checked in random order, so their expected number counts.
The picture shows reliability on one panel, named in `DRAWN`: the share of judges that vote 1, and P.
"""

import argparse
import os
import sys
from pathlib import Path

import numpy as np

from deep import VoteMatrix, fit, read_votes
from deep._util.figures import new_figure
from deep.calibration import ReliabilityDisplay, expected_calibration_error
from deep.evaluate import hold_out

PANELS = {
    "alttest": "alttest/votes.parquet",
    "umass_triviaqa": "umass_triviaqa/votes.parquet",
    "llmbar": "llmbar/votes.parquet",
    "css_binary": "css_binary/votes.parquet",
    "summeval_llm": "summeval_llm/votes_ge5.csv",
    "llm_aggrefact": "llm_aggrefact/votes.parquet",
}
DRAWN = "summeval_llm"
ORDERS = ("best judge", "share of judges", "deep", "random")


def passed(order: np.ndarray, labels: np.ndarray, effort: int) -> float:
    """Return how many items with label 0 are expected to pass when the lowest in an order are checked."""
    cut = np.sort(order)[effort - 1] if effort else -np.inf
    below, tied = order < cut, order == cut
    share = (effort - below.sum()) / max(1, tied.sum())
    return float((labels == 0).sum() - ((labels == 0) & below).sum() - share * ((labels == 0) & tied).sum())


def best_judge(votes: VoteMatrix) -> int:
    """Return the judge with the highest balanced accuracy, the mean over datasets; no vote counts as consistent."""
    means = []
    for j in range(len(votes.voter_names)):
        called = votes.votes[:, j] != 0
        found = []
        for name in set(votes.datasets):
            rows = votes.datasets == name
            sides = [called[rows & (votes.labels == 1)].mean(), 1 - called[rows & (votes.labels == 0)].mean()]
            found.append(np.mean(sides))
        means.append(np.mean(found))
    return int(np.argmax(means))


def of_panel(path: Path) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return counts (wrong items, checked, passed by each order), then labels, shares of 1 and P of all items."""
    votes = read_votes([str(path)])
    votes = votes.rows(votes.labels >= 0)
    counts, labels, shares, ps = np.zeros(2 + len(ORDERS)), [], [], []
    for name in sorted(set(votes.datasets)):
        if len(set(votes.labels[votes.datasets == name])) < 2:
            continue
        split = hold_out(votes, name)
        test, y = split.test, split.test.labels
        p = fit(split.train).score_frame(test)["p_consistent"].to_numpy()
        judge = (test.votes[:, best_judge(split.train)] != 0).astype(float)
        n_votes = (test.votes >= 0).sum(axis=1)
        share = np.where(n_votes > 0, (test.votes == 1).sum(axis=1) / np.maximum(1, n_votes), 0.5)
        effort = int((judge == 0).sum())
        counts += [(y == 0).sum(), effort, *(passed(order, y, effort) for order in (judge, share, p, np.zeros(len(y))))]
        labels, shares, ps = [*labels, y], [*shares, share], [*ps, p]
    return counts, np.concatenate(labels), np.concatenate(shares), np.concatenate(ps)


def draw(labels: np.ndarray, shares: np.ndarray, p: np.ndarray, path: Path) -> None:
    """Write the picture: reliability before and after."""
    figure = new_figure(7.2, 3.7, constrained=True)
    for axis, scores, title in zip(figure.subplots(1, 2), (shares, p), ("share of judges", "P by deep"), strict=True):
        ReliabilityDisplay.from_predictions(labels, scores).plot(axis)
        ece = 100 * expected_calibration_error(labels, scores)
        axis.set_title(f"{title}: off by {ece:.0f} points", fontsize=13)
        axis.set(xlabel=title, ylabel="share that is consistent")
    figure.savefig(path, dpi=150)


def main() -> None:
    """Print the table and draw."""
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--image", type=Path)
    args = p.parse_args()
    head = ["panel", "items", "wrong", "checked", *(f"pass: {order}" for order in ORDERS), "ECE: share", "ECE: P"]
    rows, means = [], []
    for name, path in PANELS.items():
        counts, labels, shares, ps = of_panel(Path(os.environ["DEEP_DATA_HOME"]) / path)
        n_wrong, effort, *passing = counts
        eces = [100 * expected_calibration_error(labels, scores) for scores in (shares, ps)]
        means.append([*(n / n_wrong for n in passing), *eces])
        shown = [f"{n:,.0f} ({n / n_wrong:.0%})" for n in passing] + [f"{ece:.1f}" for ece in eces]
        rows.append([name, f"{len(labels):,}", f"{n_wrong:,.0f}", f"{effort:,.0f}", *shown])
        if name == DRAWN and args.image:
            draw(labels, shares, ps, args.image)
    *passing, before, after = np.mean(means, axis=0)
    rows.append(["mean", "", "", "", *(f"{share:.0%}" for share in passing), f"{before:.1f}", f"{after:.1f}"])
    for row in (head, ["---"] * len(head), *rows):
        sys.stdout.write(f"| {' | '.join(row)} |\n")


if __name__ == "__main__":
    main()
