"""TofuEval: topic-focused summaries of interviews and meetings (Tang et al., 2024, arXiv:2402.13249).

The repository amazon-science/tofueval publishes a row a summary sentence. Here a summary is one example, consistent
only if all of its sentences are. The transcripts are not published with it: its README has a snippet that writes them
from MediaSum and MeetingBank, and the files which that snippet writes are read here.
"""

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from deep.datasets._rows import FileRow
from deep.datasets.benchmarks._read import read_document, rows_of
from deep.records import Example

COLUMNS = ("doc_id", "annotation_id", "topic", "model_name", "sent_idx", "summ_sent", "sent_label")
TRANSCRIPT_IDS = {"mediasum": "doc_id", "meetingbank": "meeting_id"}


def read_tofueval(folder: Path, *, part: str, main_only: bool = False) -> Iterator[Example]:
    """Yield the summaries of the test set, in the order of ``factual_consistency/{part}_factual_eval_test.csv``."""
    topics = read_document(folder / f"topic_category/{part}_topic_category.json")
    sources = _transcripts(folder, part)
    rows = rows_of(folder / f"factual_consistency/{part}_factual_eval_test.csv", COLUMNS)
    for key, sentences in groupby(rows, key=lambda row: tuple(row[name] for name in COLUMNS[:4])):
        document, _, topic, model = key
        if not main_only or topics[topic] == "main":
            claim, label = _merged(list(sentences))
            yield Example(
                source=sources.get(document, ""),
                claim=claim,
                example_id=f"{document}|{topic}|{model}",
                label=label,
                dataset=f"tofueval-{part}",
                document_id=document,
            )


def _merged(sentences: list[FileRow]) -> tuple[str, int]:
    ordered = sorted(sentences, key=lambda row: int(row["sent_idx"]))
    consistent = all({"yes": True, "no": False}[row["sent_label"]] for row in ordered)
    return " ".join(row["summ_sent"].strip() for row in ordered), int(consistent)


def _transcripts(folder: Path, part: str) -> dict[str, str]:
    """Return transcripts by document; none where the file that the README's snippet writes is not there."""
    path = folder / f"{part}_test_doc.csv"
    name = TRANSCRIPT_IDS[part]
    return {row[name]: row["source"] for row in rows_of(path, (name, "source"))} if path.is_file() else {}
