"""The printed tables of PROBE and CogniBench: what must add up in them does, as far as it does in print."""

import pytest

from deep.exceptions import InputError
from deep.experiments.study import printed_tables


def rows_of(paper, name):
    """Return a printed table as rows by their first column or columns of text."""
    (table,) = [table for table in printed_tables(paper) if table.name == name]
    return table.frame.to_dict("records")


def test_probe_table_1_adds_up_as_printed():
    """Tasks add up to the overall row; kinds of claims add up to all, but for summarization and so for the whole."""
    *tasks, overall = rows_of("probe", "table1-statistics")
    for name in ("instances", "claims", "hallucinated", "truth"):
        assert sum(row[name] for row in tasks) == overall[name]
    parts = {row["task"]: row["hallucinated"] + row["truth"] - row["claims"] for row in (*tasks, overall)}
    assert parts == {"summarization": -90, "question_answering": 0, "style_transfer": 0, "overall": -90}


def test_probe_table_2_is_as_the_text_describes_it():
    """Partial is never below complete; the fine-tuned model leads on evaluation; 69.8 is the low that is named."""
    rows = rows_of("probe", "table2-evidence")
    tasks = ("summarization", "question_answering", "style_transfer")
    assert all(row[f"partial_{task}"] > row[f"complete_{task}"] for row in rows for task in tasks)
    assert all(max(rows, key=lambda row: row[f"evaluation_{task}"]) == rows[-1] for task in tasks)
    assert min((row["evaluation_question_answering"], row["model"]) for row in rows) == (69.8, "Claude-Sonnet-4.5")


def test_cognibench_f1_follows_from_recall_and_precision():
    """Overall at threshold 3, to the second decimal; and the unions of verdicts in Figure 6."""
    ablation = {row["method"]: row for row in rows_of("cognibench", "table5-ablation")}
    row = ablation["Auto-Labeling (threshold = 3)"]
    recall, precision = row["overall recall"], row["overall precision"]
    printed = {row["method"]: row for row in rows_of("cognibench", "table3-detection")}["Auto-Labeling"]["overall"]
    assert 2 * recall * precision / (recall + precision) == pytest.approx(printed, abs=0.02)
    shares = {row["measure"]: row["value"] for row in rows_of("cognibench", "figures") if row["figure"] == "6"}
    parts = shares["cognitive, speculative"] + shares["cognitive, misleading"]
    assert parts == pytest.approx(shares["cognitive, hallucinated"])


def test_every_table_names_its_source():
    """The title says that it is printed, where, and in which paper; rows are as long as their heads."""
    for paper, source in (("probe", "Zhang et al., PROBE"), ("cognibench", "CogniBench, ACL 2025")):
        for table in printed_tables(paper):
            assert table.title.startswith(f"Printed: {source}")
            assert "Table" in table.title or "section" in table.title
            assert not table.frame.isna().to_numpy().any()
    with pytest.raises(InputError, match=r"`paper` must be one of cognibench, probe\. Got 'deep'"):
        printed_tables("deep")
