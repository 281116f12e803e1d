"""Real votes: prompts of deep, asked of one LLM about public texts, and packed to be passed on.

`make real URL=http://127.0.0.1:8080/v1 MODEL=NAME` asks about a sample of SummEdits, RTE and SummEval, whose texts and
labels are in DEEP_DATA_HOME. The same command goes on where it stopped. The main job by these votes:
`deep loo --test all --votes build/real/NAME/pack`.
"""

import argparse
import re
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from deep.cli import main as run_deep
from deep.datasets.benchmarks import benchmark_roots

COLUMNS = ["dataset", "item_id", "label", "document_id", "source", "claim"]


def read_texts(home: Path) -> pd.DataFrame:
    """Return the pairs of the three benchmarks; a dataset is a domain of SummEdits, RTE, or SummEval."""
    edits = pd.read_csv(home / "summedits" / "texts.csv.gz").rename(columns={"document": "source"})
    names = edits["dataset"].str.lower().str.replace("_", "-")
    edits = edits.assign(dataset=names, document_id=pd.factorize(edits["source"])[0].astype(str))
    rte = pd.read_csv(home / "crowd" / "texts_RTE.csv", dtype={"id": str})
    rte = rte.rename(columns={"id": "item_id", "value": "label", "text": "source", "hypothesis": "claim"})
    # SummEval's labels stand with the grades of its judges.
    labels = pd.read_csv(home / "summeval_llm" / "scores.csv", usecols=["dataset", "item_id", "label"])
    evals = pd.read_csv(home / "summeval_llm" / "texts.csv").merge(labels, on=["dataset", "item_id"])
    evals = evals.rename(columns={"document": "source", "doc_id": "document_id"}).assign(dataset="SummEval")
    frames = (edits, rte.assign(dataset="RTE", label=rte["label"].astype(int)), evals)
    return pd.concat([frame.reindex(columns=COLUMNS) for frame in frames])


def main(argv: Sequence[str] | None = None) -> int:
    """Draw, ask and pack."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", required=True, help="of chat completions, up to and with /v1")
    parser.add_argument("--model", required=True, help="as the server names it")
    parser.add_argument("--sample", type=int, default=100, help="pairs a dataset, of which there are ten")
    parser.add_argument("--out", type=Path, default=Path("build/real"), help="where each model has a folder")
    args, judges = parser.parse_known_args(argv)
    home = next((home for home in benchmark_roots() if (home / "summedits" / "texts.csv.gz").is_file()), None)
    if home is None:
        looked = " or ".join(map(str, benchmark_roots()))
        parser.error(f"no summedits/texts.csv.gz in {looked}. Set DEEP_DATA_HOME to the folder that has it.")
    folder = args.out / re.sub(r"[^\w.-]+", "-", args.model)
    folder.mkdir(parents=True, exist_ok=True)
    texts = read_texts(home).groupby("dataset").sample(args.sample, random_state=0)
    # Shuffled, so that a run that is stopped has some of each dataset.
    texts.sample(frac=1, random_state=0).rename(columns={"item_id": "example_id"}).to_csv(
        folder / "texts.csv", index=False
    )
    votes = str(folder / "votes.parquet")
    asked = ["ask", str(folder / "texts.csv"), *judges, "--llm", args.model, "--base-url", args.url, "--out", votes]
    status = run_deep(asked)
    if status > 1:  # 1: a judge fails often, which is a result
        return status
    # Of SummEdits the licence is known; the articles of SummEval have none, so replies about them stay out.
    return run_deep(["data", "pack", votes, "--licence", "RTE=MIT", "--out", str(folder / "pack")])


if __name__ == "__main__":
    raise SystemExit(main())
