"""CogniBench: turns of knowledge-grounded dialogues with a label for every sentence (Tang et al., ACL 2025)."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from deep._files import JsonObject
from deep.datasets.benchmarks._read import read_document
from deep.exceptions import InputError
from deep.records import Example

DIALOGUES, LABELS = "dialogues.json", "labels.json"
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
    dialogues, labels = (read_document(Path(folder) / name) for name in (DIALOGUES, LABELS))
    try:
        return [_turn(row, labels.get(row["id"])) for row in dialogues]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        reason = f"{type(error).__name__} {error}"
        raise InputError(
            f"`folder` must hold {DIALOGUES} and {LABELS} as their authors publish them. Got {str(folder)!r}: "
            f"{reason}. Download both again."
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
