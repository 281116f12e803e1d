"""`deep score --to inspect`: records for Inspect's `precomputed_scores`; Inspect itself reads them in integrations."""

import json

import numpy as np
import pandas as pd
import pytest

from deep.integrations.inspect_files import InspectWriter
from deep.model import load
from tests.commands.model_case import QUICK, frame_of, refused
from tests.deep_commands import fit, score
from tests.model.fitted import small_votes


@pytest.fixture
def model_file(tmp_path):
    """Return the path of a model of three judges."""
    frame_of(small_votes()).to_parquet(tmp_path / "train.parquet")
    assert fit([str(tmp_path / "train.parquet"), "--out", str(tmp_path / "model.json"), *QUICK]) == 0
    return tmp_path / "model.json"


def table(folder, votes, ids, dataset="new"):
    """Write a table of votes of three judges, and return its path."""
    path = folder / "new.parquet"
    frame = pd.DataFrame(np.array(votes, dtype=float), columns=[f"judge-{i}" for i in range(3)]).replace(-1, np.nan)
    frame.insert(0, "item_id", ids)
    frame.insert(0, "dataset", dataset)
    frame.to_parquet(path)
    return path


def test_rows_become_records(model_file, tmp_path):
    """With P and its interval; an epoch goes to a field of its own, and a row without a vote is left out."""
    votes = [[1, 1, 1], [0, 0, -1], [-1, -1, -1], [1, 0, 1]]
    path = table(tmp_path, votes, ["a", "b@epoch-2", "c", "d@epoch-0"])
    out = tmp_path / "scores.jsonl"
    assert score([str(model_file), "--votes", str(path), "--to", "inspect", "--out", str(out)]) == 0
    records = [json.loads(line) for line in out.read_text().splitlines()]
    assert [(record["id"], record.get("epoch")) for record in records] == [("a", None), ("b", 2), ("d@epoch-0", None)]
    plain = tmp_path / "scores.csv"
    assert score([str(model_file), "--votes", str(path), "--out", str(plain)]) == 0
    rows = pd.read_csv(plain).drop(index=2)
    assert [record["value"] for record in records] == pytest.approx(rows.p_consistent.tolist(), abs=1e-12)
    assert [record["metadata"]["p_low"] for record in records] == pytest.approx(rows.p_low.tolist(), abs=1e-12)
    assert records[1]["explanation"].endswith(", from 2 votes")
    assert set(records[0]) == {"id", "value", "answer", "explanation", "metadata"}


def test_a_pair_of_texts_is_a_record_too(tmp_path, capsys):
    """With the decision as its answer, and the judges' words."""
    from deep.features.lexical import LEXICAL

    frame = frame_of(small_votes(n_voters=1)).rename(columns={"judge-0": LEXICAL["numbers"]().voter()})
    frame.to_parquet(tmp_path / "train.parquet")
    assert fit([str(tmp_path / "train.parquet"), "--out", str(tmp_path / "model.json")]) == 0
    out = tmp_path / "scores.jsonl"
    texts = ["--source-text", "It rained for 3 days.", "--claim-text", "It rained for 4 days."]
    assert score([str(tmp_path / "model.json"), *texts, "--to", "inspect", "--out", str(out)]) == 0
    (record,) = map(json.loads, out.read_text().splitlines())
    assert (record["id"], record["answer"]) == ("1", "inconsistent")
    assert record["value"] < load(tmp_path / "model.json").prior.estimate
    assert record["explanation"].splitlines()[1].endswith(": 0. The source lacks numbers of the claim: 4.")


def test_an_item_of_two_datasets_is_refused(model_file, tmp_path, capsys):
    """Inspect would take both for one sample; nothing is written."""
    path = table(tmp_path, [[1, 1, 1], [0, 0, 0]], ["a", "a"], ["x", "y"])
    out = tmp_path / "scores.jsonl"
    message = refused(capsys, score, model_file, "--votes", path, "--to", "inspect", "--out", out)
    assert (
        "`item_id` must be unique with `--to inspect`, which knows no datasets. Got 'a' again in dataset 'y'."
        in message
    )
    assert not out.exists()


def test_the_file_must_be_given_and_end_in_jsonl(model_file, tmp_path, capsys):
    """By its ending Inspect knows what it reads."""
    path = table(tmp_path, [[1, 1, 1]], ["a"])
    common = (score, model_file, "--votes", path, "--to", "inspect", "--out")
    assert "`out` must end in .jsonl. Got" in refused(capsys, *common, tmp_path / "scores.json")
    texts = ("--source-text", "It rained.", "--claim-text", "It rained.", "--to", "inspect")
    assert "`out` must be given with `to`. Got none with 'inspect'." in refused(capsys, score, model_file, *texts)


def test_a_writer_closes_its_file(tmp_path):
    """Also where a row is refused."""
    row = {"item_id": "a", "dataset": "x", "p_consistent": 0.5, "n_votes": 0, "p_low": None, "p_high": None}
    with InspectWriter(tmp_path / "a.jsonl") as writer:
        writer.write_row(row)
    with pytest.raises(ValueError, match="closed file"):
        writer.write_row(row | {"item_id": "b", "n_votes": 1})
    assert not (tmp_path / "a.jsonl").read_text()
