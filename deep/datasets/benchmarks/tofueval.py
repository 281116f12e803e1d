"""TofuEval: topic-focused summaries of interviews and meetings (Tang et al., 2024, arXiv:2402.13249).

The repository amazon-science/tofueval publishes a row a summary sentence. Here a summary is one example, consistent
only if all of its sentences are. The transcripts are not published with it: its README has a snippet that writes them
from MediaSum and MeetingBank, and the files which that snippet writes are read here.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

from deep.datasets.benchmarks._read import read_document, rows_of
from deep.datasets.benchmarks._record import Benchmark, BenchmarkFile
from deep.records import Example

__all__ = ["TOFUEVAL_MEDIASUM", "TOFUEVAL_MEETINGBANK"]

RAW = "https://raw.githubusercontent.com/amazon-science/tofueval/a2fd90c9eef7d61682160f96bc6b9f0b28b5b9ec"
COLUMNS = ("doc_id", "annotation_id", "topic", "model_name", "sent_idx", "summ_sent", "sent_label")
TRANSCRIPT_IDS = {"mediasum": "doc_id", "meetingbank": "meeting_id"}


def read(folder: Path, *, part: str, main_only: bool = False) -> Iterator[Example]:
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


def _merged(sentences: list[Mapping[str, Any]]) -> tuple[str, int]:
    ordered = sorted(sentences, key=lambda row: int(row["sent_idx"]))
    consistent = all({"yes": True, "no": False}[row["sent_label"]] for row in ordered)
    return " ".join(row["summ_sent"].strip() for row in ordered), int(consistent)


def _transcripts(folder: Path, part: str) -> dict[str, str]:
    """Return transcripts by document; none where the file that the README's snippet writes is not there."""
    path = folder / f"{part}_test_doc.csv"
    name = TRANSCRIPT_IDS[part]
    return {row[name]: row["source"] for row in rows_of(path, (name, "source"))} if path.is_file() else {}


def _benchmark(part: str, kind: str, test_sha256: str, topics_sha256: str, where: str) -> Benchmark:
    test, topics = f"factual_consistency/{part}_factual_eval_test.csv", f"topic_category/{part}_topic_category.json"
    transcripts = (
        f"The transcripts are not part of TofuEval: get them from {where} and run the snippet in TofuEval's README, "
        f"which writes {part}_test_doc.csv ({TRANSCRIPT_IDS[part]},source)"
    )
    return Benchmark(
        name=f"tofueval-{part}",
        title=f"a topic-focused summary of {kind}",
        licence="MIT-0",
        commercial=True,
        url="https://github.com/amazon-science/tofueval",
        citation="arXiv:2402.13249",
        folder="tofueval",
        files=(
            BenchmarkFile(name=test, url=f"{RAW}/{test}", sha256=test_sha256),
            BenchmarkFile(name=topics, url=f"{RAW}/{topics}", sha256=topics_sha256),
            BenchmarkFile(name=f"{part}_test_doc.csv", by_hand=transcripts, optional=True),
        ),
        read=partial(read, part=part),
        topics=True,
        note="Summary level, all six models, every topic unless `--main-only`; the authors ask that it be used for "
        "evaluation, never for training.",
    )


TOFUEVAL_MEDIASUM = _benchmark(
    "mediasum",
    "an interview",
    "ee76f057edb865b2bc206bd371ebe5bc3ddd959d152e06cada95d09efe9a588e",
    "08baa5ac559e76be71f4630a4abc1928a26c08ff8469c89a2cc93ec2fd92dcbc",
    "https://github.com/zcgzcgzcg1/MediaSum",
)
TOFUEVAL_MEETINGBANK = _benchmark(
    "meetingbank",
    "a city council's meeting",
    "9c7f3e03a01c3d077e891f6b7f5b75af9cf517d2b395f6ddf159b5ac9e84746d",
    "5d0cb2582ede55975584f8957d33525520675f10a188ade1b61623872043e88b",
    "https://meetingbank.github.io",
)
