"""Tables 2 and 4 of the DEEP paper on independent draws of the embedded votes, with their spread.

    python benchmarks/simulated.py --draws 20 --jobs 2

A draw has as many items of each class and dataset as the paper, drawn with replacement from the fitted votes
(`simulate_votes(1)`, `simulate_votes(2)`, ...); every ensembler is fitted anew to the other three datasets, by the
paper's recipe. `benchmarks/draws/simulated.json` holds every figure of every draw, and is added to: draws
that it holds are not made again.
"""

import argparse
import json
import sys
from pathlib import Path

import pandas as pd
from fit_votes import BITS, tables_of

from deep import VoteMatrix
from deep.calibration import balanced_accuracy, expected_calibration_error
from deep.datasets import simulate_votes
from deep.experiments.paper import PublishedFigure, kept_out, published_table

OUT = Path(__file__).parent / "draws" / "simulated.json"
CELLS = [figure for table in ("2", "4") for figure in published_table(table)]
METRICS = {"balanced_accuracy": lambda y, p: balanced_accuracy(y, p >= 0.5), "ece": expected_calibration_error}


def name_of(figure: PublishedFigure) -> str:
    """Return the name of a cell."""
    words = (figure.table, figure.dataset, figure.ensembler, figure.n_prompts, figure.calibrator or "none")
    return " | ".join(map(str, words))


def figures_of(votes: VoteMatrix, jobs: int) -> dict[str, float]:
    """Return every cell of Tables 2 and 4 on some votes, in percent, each dataset held out in turn."""
    result = {}
    for dataset in votes.dataset_names:
        tables, test = tables_of(votes, dataset, jobs, ("platt",)), votes.rows(votes.datasets == dataset)
        for cell in CELLS:
            p = tables.get((cell.ensembler, cell.n_prompts, cell.calibrator))
            if cell.dataset == dataset and p is not None:
                result[name_of(cell)] = round(100 * METRICS[cell.metric](test.labels, p[test.votes @ BITS]), 2)
    return result


def orders(drawn: pd.DataFrame) -> pd.DataFrame:
    """Return by draw in how many cells Platt scaling lowers ECE, LabelModel leads, and is above the majority."""
    rows = []
    for _, figures in drawn.iterrows():
        split = pd.DataFrame([name.split(" | ") for name in drawn], columns=["table", "dataset", "method", "n", "by"])
        split["value"] = figures.to_numpy()
        second, fourth = (
            split[split["table"] == table].pivot(index=["dataset", "n"], columns=columns, values="value")
            if table == "2"
            else split[split["table"] == table].pivot(index=["method", "n"], columns=columns, values="value")
            for table, columns in (("2", "method"), ("4", "by"))
        )
        rows.append(
            {
                "Platt lowers ECE, of 42": int((fourth["platt"] < fourth["none"]).sum()),
                "mean ECE before": round(float(fourth["none"].mean()), 1),
                "mean ECE after": round(float(fourth["platt"].mean()), 1),
                "LabelModel leads, of 12": int((second["LabelModel"] >= second.max(axis=1) - 1e-9).sum()),
                "LabelModel above the majority, of 12": int(
                    (second["LabelModel"] > second["MajorityLabelVoter"]).sum()
                ),
            }
        )
    return pd.DataFrame(rows, index=drawn.index)


def lines(drawn: pd.DataFrame) -> list[str]:
    """Return what the draws say, in Markdown."""
    counts, printed = orders(drawn), pd.Series({name_of(f): 100 * f.value for f in CELLS})[drawn.columns]
    out = pd.Series({name_of(f): kept_out(f) for f in CELLS})[drawn.columns]
    z = (printed - drawn.mean()) / drawn.std()
    inside = (printed >= drawn.quantile(0.025)) & (printed <= drawn.quantile(0.975))
    result = ["| over draws | mean | spread (SD) | least | most |", "| --- | --- | --- | --- | --- |"]
    for name, values in counts.items():
        result.append(f"| {name} | {values.mean():.1f} | {values.std():.1f} | {values.min():g} | {values.max():g} |")
    result += [
        "",
        "| cells | number | SD over draws | printed, distance from the mean | printed within 95 % of draws |",
    ]
    result.append("| --- | --- | --- | --- | --- |")
    for table in ("2", "4"):
        for label, chosen in (("fitted", ~out), ("kept out", out)):
            some = chosen & chosen.index.str.startswith(table)
            gap = (printed - drawn.mean()).abs()[some].mean()
            share = f"{int(inside[some].sum())} of {int(some.sum())}"
            result.append(
                f"| Table {table}, {label} | {int(some.sum())} | {drawn.std()[some].mean():.1f} | {gap:.1f} | {share} |"
            )
    result += [
        "",
        f"{len(drawn)} draws; printed figures of cells kept out lie {z[out].abs().mean():.1f} of their SD away.",
    ]
    return result


def main() -> None:
    """Make the draws that are missing and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()
    stored: dict[str, dict[str, float]] = json.loads(OUT.read_text(encoding="utf-8")) if OUT.exists() else {}
    for seed in range(1, args.draws + 1):
        if str(seed) not in stored:
            stored[str(seed)] = figures_of(simulate_votes(seed), args.jobs)
            rows = ",\n".join(f' "{key}": {json.dumps(row)}' for key, row in stored.items())
            OUT.write_text(f"{{\n{rows}\n}}\n", encoding="utf-8")
    drawn = pd.DataFrame.from_dict(stored, orient="index").iloc[: args.draws]
    sys.stdout.writelines(f"{line}\n" for line in lines(drawn))


if __name__ == "__main__":
    main()
