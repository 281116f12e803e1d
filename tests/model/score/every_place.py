"""Add a column to deep's table of what it says of an item, and print the columns of every place that shows them.

python -m tests.model.score.every_place FOLDER
"""

import contextlib
import importlib
import io
import json
import os
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

from deep.model import SCORE_COLUMNS, ItemColumn

MARGIN = ItemColumn(
    "margin",
    "double",
    "how far P is from the threshold",
    0.31,
    lambda scores: np.abs(scores.p_consistent - scores.threshold),
    exported=True,
)
if __name__ == "__main__":
    SCORE_COLUMNS[MARGIN.name] = MARGIN  # before any other room of deep is imported

from deep.cli import main  # noqa: E402
from deep.datasets import read_votes  # noqa: E402
from deep.integrations import engines, sequential, serve  # noqa: E402
from deep.model import load  # noqa: E402
from tests.guests.serve.serving_case import PAIR, ROOT, ask  # noqa: E402

JUDGES = ["coverage", "negation", "numbers", "opposites"]
VOTES = {"votes": [[1, 0, None, 1], [0, 0, 1, None]]}


def run(*words: str) -> str:
    """Return what a command prints."""
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        assert main(list(words)) == 0
    return printed.getvalue()


def files(folder: Path) -> dict[str, list[str]]:
    """Return the columns of the files that commands write."""
    votes, model, claims = (
        str(folder / "votes.parquet"),
        str(folder / "model.json"),
        str(ROOT / "examples" / "claims.csv"),
    )
    run("ask", claims, "--lexical", *JUDGES, "--out", votes)
    run("fit", votes, "--exclude", "weather", "--jobs", "1", "--out", model)
    for name in ("scores.csv", "scores.parquet"):
        run("score", model, votes, "--out", str(folder / name))
    run("score", model, "--input", claims, "--out", str(folder / "scores.jsonl"))
    run("score", model, votes, "--to", "inspect", "--out", str(folder / "inspect.jsonl"))
    for kind in ("sql", "csv"):
        run("export", model, "--to", kind, "--out", str(folder / f"model.{kind}"))
    words = ["--sizes", "2", "--ensembler", "LogisticRegression", "--calibrator", "platt", "--n-boot", "100"]
    run("loo", "--test", "weather", "--votes", votes, *words, "--jobs", "1", "--out", str(folder / "loo"))
    run("report", str(folder / "loo"), "--out", str(folder / "report.html"))
    first = {name: json.loads((folder / name).open().readline()) for name in ("scores.jsonl", "inspect.jsonl")}
    sql = (folder / "model.sql").read_text(encoding="utf-8").partition("CREATE TABLE")[2].partition(");")[0]
    scored = pd.read_csv(folder / "scores.csv")
    np.testing.assert_allclose(scored["margin"], (scored["p_consistent"] - scored["threshold"]).abs(), atol=1e-12)
    return {
        "CSV": list(scored),
        "Parquet": list(pd.read_parquet(folder / "scores.parquet")),
        "JSON lines": list(first["scores.jsonl"]),
        "Inspect": list(first["inspect.jsonl"]["metadata"]),
        "SQL": [line.split()[0] for line in sql.splitlines()[1:]],
        "table of patterns": list(pd.read_csv(folder / "model.csv")),
        "deep loo": list(pd.read_parquet(folder / "loo" / "scores.parquet")),
    }


def served(folder: Path) -> dict[str, list[str]]:
    """Return the columns of answers over HTTP, and of the contract of them."""
    with serve.serving(serve.create_app(load(folder / "model.json"))) as address:
        answer, contract, about = (
            ask(address, path, body)[1]
            for path, body in (("/v1/check", PAIR), ("/openapi.json", None), ("/v1/model", None))
        )
        watched = ask(address, "/page/watch", VOTES)[1]
    content = contract["paths"]["/v1/check"]["post"]["responses"]["200"]["content"]["application/json"]
    schema, _ = content["schema"]["anyOf"]
    assert schema["required"] == list(schema["properties"]) == list(answer)
    assert schema["properties"]["margin"] == {
        "type": "number",
        "minimum": 0,
        "maximum": 1,
        "description": MARGIN.meaning,
    }
    return {
        "HTTP": list(answer),
        "HTTP schema": list(schema["properties"]),
        "HTTP example": list(content["examples"]["one"]["value"]),
        "columns that the page saves": list(about["columns"]),
        "scores of a file on the page": list(watched["scores"][0]),
    }


def told(folder: Path) -> dict[str, list[str]]:
    """Return the columns of frames and batches, and those that people read of."""
    model, votes = load(folder / "model.json"), read_votes([str(folder / "votes.parquet")])
    sys.path.insert(0, str(ROOT / "docs" / "_site"))
    page = importlib.import_module("columns")
    with contextlib.redirect_stdout(io.StringIO()) as printed, contextlib.suppress(SystemExit):
        main(["score", "--help-all"])
    return {
        "frame": list(model.score_frame(votes)),
        "batches": engines.BatchScorer(model, streamed=True)(batch(votes)).schema.names,
        "asked one by one": list(sequential.COLUMNS),
        "--help-all": printed.getvalue().split(),
        "docs/columns.md": page.filled("columns.md").replace("`", " ").split(),
        "docs/sequential.md": page.filled("sequential.md").replace("`", " ").split(),
    }


def batch(votes):
    """Return votes as an Arrow table with a column a voter."""
    columns = zip(votes.voter_names, votes.votes.T, strict=True)
    return pa.table({name: pa.array(column, mask=column == -1) for name, column in columns})


if __name__ == "__main__":
    os.environ["COLUMNS"] = "200"
    here = Path(sys.argv[1])
    sys.stdout.write(json.dumps(files(here) | served(here) | told(here)))
