"""The published files of each benchmark as examples: a function a benchmark."""

import json
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from hashlib import sha256
from itertools import groupby
from pathlib import Path
from typing import Any

from deep._util.files import JsonObject, read_bytes
from deep._util.names import canonical_name
from deep.datasets import FileRow, read_rows
from deep.exceptions import InputError
from deep.records import Example

# Bytes of a document.
MAX_DOCUMENT_BYTES = 1 << 30


def rows_of(path: Path, columns: Collection[str], ending: str | None = None) -> Iterator[FileRow]:
    """Yield the rows of a file with the given columns; `ending` says how to read it where its name does not.

    Raises
    ------
    InputError
        A column is not there, or the file cannot be read.
    """
    for number, (_, row) in enumerate(read_rows(path, columns, ending), start=1):
        absent = [name for name in columns if name not in row]
        if absent:
            raise InputError(
                f"`{absent[0]}` must be a column of {str(path)!r}, as its authors publish it. Got none in row "
                f"{number}. Download the file again."
            )
        yield row


def read_document(path: Path) -> Any:
    """Return the contents of a JSON file.

    Raises
    ------
    InputError
        It is not UTF-8, not JSON, or cannot be read.
    """
    try:
        return json.loads(read_bytes(path, "examples", MAX_DOCUMENT_BYTES).decode("utf-8-sig"))
    except InputError:
        raise
    except OSError as error:
        reason = error.strerror or type(error).__name__
    except RecursionError:
        reason = "nested too deeply"
    except ValueError as error:
        reason = str(error)
    raise InputError(f"`examples` must be JSON. Got {str(path)!r}: {reason}. Download the file again.")


# The names that the file is published under; the first that is there is read.
AGGREFACT_FILES = ("aggre_fact_sota.csv", "aggre_fact_final.csv")
AGGREFACT_COLUMNS = ("dataset", "origin", "id", "doc", "summary", "model_name", "label", "cut")
# The state-of-the-art models, whose summaries are taken.
STATE_OF_THE_ART = {"BART", "Pegasus", "PegasusDynamic", "T5"}


def read_aggrefact(folder: Path, *, origin: str, name: str) -> Iterator[Example]:
    """Yield the test summaries of one origin by state-of-the-art models, in the order of the file."""
    path = next(folder / file for file in AGGREFACT_FILES if (folder / file).is_file())
    counts: Counter[str] = Counter()
    for row in rows_of(path, AGGREFACT_COLUMNS):
        if (row["origin"], row["cut"]) == (origin, "test") and row["model_name"] in STATE_OF_THE_ART:
            identifier = f"{row['dataset']}|{row['id']}|{row['model_name']}"
            counts[identifier] += 1
            again = f"|{counts[identifier]}" if counts[identifier] > 1 else ""
            label = {"0": 0, "1": 1}[row["label"].removesuffix(".0")]
            yield Example(row["doc"], row["summary"], f"{identifier}{again}", label, name, row["id"])


DIALOGUES, COGNIBENCH_LABELS = "dialogues.json", "labels.json"
ASSISTANT = "<assistant>"


@dataclass(frozen=True, slots=True)
class CogniBenchTurn:
    """One turn of a dialogue that is grounded in a text.

    Parameters
    ----------
    turn_id : str
        As published: number of the dialogue, language, number of the turn.
    knowledge : str
        The text that the answers must follow from.
    history : str
        The turns before this one; empty at the first.
    question : str
        What the user says in this turn.
    response : str
        The assistant's answer, which is judged.
    turn_index : int
        From 0.
    labels : mapping or None
        The published record of this turn; None where it has none. Its ``sentence_label_dict`` maps a sentence in
        lower case to ``[labels, position]``.
    generator : str, optional
        The LLM that wrote the response, where a row has `model`; the published rows have none.
    """

    turn_id: str
    knowledge: str
    history: str
    question: str
    response: str
    turn_index: int
    labels: JsonObject | None
    generator: str | None = None

    @property
    def source(self) -> str:
        """The knowledge, and the dialogue before the response."""
        return f"{self.knowledge.strip()}\n\n{self.dialogue}"

    @property
    def sentences(self) -> JsonObject:
        """The published sentence dictionary, as it comes; empty where the turn has no labels."""
        return {} if self.labels is None else self.labels["sentence_label_dict"]

    @property
    def dialogue(self) -> str:
        """The dialogue before the response, the user's question last."""
        return f"{self.history}\n\n{self.question}".strip()

    @property
    def dialogue_id(self) -> str:
        """The identifier that the turns of one dialogue share."""
        return self.turn_id.rsplit("_", 1)[0]


def load_turns(folder: str | Path) -> list[CogniBenchTurn]:
    """Return all published turns, labeled or not, in the order of ``dialogues.json``.

    Parameters
    ----------
    folder : str or Path
        Holds ``dialogues.json`` and ``labels.json`` of FUTUREEEEEE/CogniBench.

    Raises
    ------
    InputError
        A file is not there, or not in the published layout.
    """
    dialogues, labels = (read_document(Path(folder) / name) for name in (DIALOGUES, COGNIBENCH_LABELS))
    try:
        return [_turn(row, labels.get(row["id"])) for row in dialogues]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        reason = f"{type(error).__name__} {error}"
        raise InputError(
            f"`folder` must hold {DIALOGUES} and {COGNIBENCH_LABELS} as their authors publish them. "
            f"Got {str(folder)!r}: {reason}. Download both again."
        ) from None


def _turn(row: JsonObject, labels: JsonObject | None) -> CogniBenchTurn:
    turn = row["current_turn"]
    before = row["dialogue"][: row["dialogue"].index(turn)]
    question, response = turn.split(ASSISTANT, 1)
    if labels is not None and not isinstance(labels["sentence_label_dict"], dict):
        raise TypeError("sentence_label_dict")
    return CogniBenchTurn(
        turn_id=row["id"],
        knowledge=row["reference"],
        history=before.strip(),
        question=question.strip(),
        response=response.strip(),
        turn_index=row["turn_index"],
        labels=labels,
        generator=row.get("model"),
    )


def read_cognibench(folder: Path) -> Iterator[Example]:
    """Yield the labeled turns: the source is knowledge and dialogue, the claim the response.

    A response is consistent if the authors list no hallucinated sentence of it (``hallu_list``).
    """
    for turn in load_turns(folder):
        if turn.labels is not None:
            label = int(not turn.labels["hallu_list"])
            yield Example(turn.source, turn.response, turn.turn_id, label, "cognibench", turn.dialogue_id)


def count_cognibench(folder: Path) -> dict[str, int]:
    """Return the numbers of turns, and of sentences by the lists and dictionaries that name them."""
    turns = load_turns(folder)
    labels = [turn.labels for turn in turns if turn.labels is not None]
    return {
        "dialogues": len(turns),
        "labeled turns": len(labels),
        "keys in sentence dictionaries": sum(len(record["sentence_label_dict"]) for record in labels),
        "factual sentences": sum(len(record["factual_list"]) for record in labels),
        "cognitive sentences": sum(len(record["cognitive_list"]) for record in labels),
    }


FECT_FILE = "fect_benchmark.csv"


def read_fect(folder: Path) -> Iterator[Example]:
    """Yield a claim and its conversation a row, in the order of ``data/fect_benchmark.csv`` of cresta/fect.

    The file has no identifiers, so a row's number, from 1, is its id.
    """
    rows = rows_of(folder / FECT_FILE, ("conversation", "claim", "claim_is_factual"))
    for number, row in enumerate(rows, start=1):
        label = {"true": 1, "false": 0}[row["claim_is_factual"].strip().lower()]
        yield Example(row["conversation"], row["claim"], str(number), label, "fect")


HALUEVAL_FILE = "summarization_data.json"
HALUEVAL_SAMPLE_SIZE = 3000
HALUEVAL_SEED = 0
HALUEVAL_LABELS = {"hallucinated_summary": 0, "right_summary": 1}


def read_halueval(folder: Path) -> Iterator[Example]:
    """Yield the sample, in the order of the file.

    The documents are put into the order of SHA-256 of ``{seed}:{number}``; of the first 1,500 the right summary is
    taken, of the next 1,500 the hallucinated one. So no document comes twice, and the sample is the same everywhere.
    """
    kinds = _sampled_summaries(sum(1 for _ in _rows(folder)))
    for number, row in enumerate(_rows(folder), start=1):
        kind = kinds.get(number)
        if kind is not None:
            identifier = f"{number}|{kind.removesuffix('_summary')}"
            yield Example(
                row["document"], row[kind], identifier, HALUEVAL_LABELS[kind], "halueval-summarization", str(number)
            )


def _rows(folder: Path) -> Iterator[FileRow]:
    return rows_of(folder / HALUEVAL_FILE, ("document", *HALUEVAL_LABELS), ".jsonl")


def _sampled_summaries(n: int) -> dict[int, str]:
    """Return which summary to take of which of `n` documents, counted from 1."""
    half = min(HALUEVAL_SAMPLE_SIZE, n) // 2
    order = sorted(range(1, n + 1), key=lambda number: sha256(f"{HALUEVAL_SEED}:{number}".encode()).digest())
    right, hallucinated = order[:half], order[half : 2 * half]
    return dict.fromkeys(right, "right_summary") | dict.fromkeys(hallucinated, "hallucinated_summary")


LLM_AGGREFACT_FILE = "data/test-00000-of-00001.parquet"


def read_llm_aggrefact(folder: Path) -> Iterator[Example]:
    """Yield the test claims; an id is the published name of the dataset and the claim's number in it, from 0."""
    counts: Counter[str] = Counter()
    documents: dict[tuple[str, int], str] = {}
    for row in rows_of(folder / LLM_AGGREFACT_FILE, ("dataset", "doc", "claim", "label")):
        published = row["dataset"]
        identifier = f"{published}-{counts[published]}"
        counts[published] += 1
        document = documents.setdefault((published, hash(row["doc"])), identifier)
        label = {0: 0, 1: 1}[int(row["label"])]
        yield Example(row["doc"], row["claim"], identifier, label, canonical_name(published), document)


RESPONSES, SOURCES = "response.jsonl", "source_info.jsonl"


def read_ragtruth(folder: Path) -> Iterator[Example]:
    """Yield the responses of the test split; one without a hallucinated span is consistent."""
    sources = {str(row["source_id"]): row for row in rows_of(folder / SOURCES, ("source_id", "source_info"))}
    columns = ("id", "source_id", "labels", "split", "quality", "response")
    for row in rows_of(folder / RESPONSES, columns):
        if (row["split"], row["quality"]) == ("test", "good"):
            document = str(row["source_id"])
            source = _reference(sources[document])
            yield Example(source, row["response"], str(row["id"]), int(not row["labels"]), "ragtruth", document)


def _reference(row: FileRow) -> str:
    info = row["source_info"]
    if isinstance(info, str):
        return info
    return str(info["passages"]) if "passages" in info else json.dumps(info, ensure_ascii=False)


SUMMEDITS_TABLE = "texts.csv.gz"


def read_summedits(folder: Path) -> Iterator[Example]:
    """Yield the pairs of every domain whose file is there; where none is, those of the table."""
    documents: dict[tuple[str, str], str] = {}
    for domain, identifier, source, claim, label in _pairs(folder):
        # One text comes under two identifiers; it is one document, and must not straddle a fold.
        document = documents.setdefault((domain, source), identifier.rsplit("_", 1)[0])
        yield Example(source, claim, identifier, label, f"summedits-{domain.replace('_', '-')}", document)


def _pairs(folder: Path) -> Iterator[tuple[str, str, str, str, int]]:
    published = sorted(folder.glob("summedits_*.json"))
    for path in published:
        for row in read_document(path):
            domain = path.stem.removeprefix("summedits_")
            yield domain, str(row["id"]), row["doc"], row["summary"], int(row["label"])
    if not published:
        for row in rows_of(folder / SUMMEDITS_TABLE, ("item_id", "document", "claim", "label")):
            domain, identifier = row["item_id"].split("|", 1)
            yield domain, identifier, row["document"], row["claim"], int(row["label"])


COLUMNS = ("doc_id", "annotation_id", "topic", "model_name", "sent_idx", "summ_sent", "sent_label")
# By part of the benchmark, the column that names the transcript.
TRANSCRIPT_IDS = {"mediasum": "doc_id", "meetingbank": "meeting_id"}


def read_tofueval(folder: Path, *, part: str, main_only: bool = False) -> Iterator[Example]:
    """Yield the summaries of the test set, in the order of ``factual_consistency/{part}_factual_eval_test.csv``."""
    topics = read_document(folder / f"topic_category/{part}_topic_category.json")
    sources = _transcripts(folder, part)
    rows = rows_of(folder / f"factual_consistency/{part}_factual_eval_test.csv", COLUMNS)
    for key, sentences in groupby(rows, key=lambda row: tuple(row[name] for name in COLUMNS[:4])):
        document, _, topic, model = key
        if not main_only or topics[topic] == "main":
            claim, label = _merge_sentences(list(sentences))
            yield Example(
                source=sources.get(document, ""),
                claim=claim,
                example_id=f"{document}|{topic}|{model}",
                label=label,
                dataset=f"tofueval-{part}",
                document_id=document,
            )


def _merge_sentences(sentences: list[FileRow]) -> tuple[str, int]:
    ordered = sorted(sentences, key=lambda row: int(row["sent_idx"]))
    consistent = all({"yes": True, "no": False}[row["sent_label"]] for row in ordered)
    return " ".join(row["summ_sent"].strip() for row in ordered), int(consistent)


def _transcripts(folder: Path, part: str) -> dict[str, str]:
    """Return transcripts by document; none where the file that the README's snippet writes is not there."""
    path = folder / f"{part}_test_doc.csv"
    name = TRANSCRIPT_IDS[part]
    return {row[name]: row["source"] for row in rows_of(path, (name, "source"))} if path.is_file() else {}
