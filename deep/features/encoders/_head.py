"""The head of a classifier: which of its labels means "consistent"."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import expit, softmax

from deep._checks import Floats
from deep.exceptions import InputError

if TYPE_CHECKING:
    from transformers import PretrainedConfig

_CONSISTENT = (
    *("aligned", "consistent", "correct", "entail", "entailed", "entailment", "entails", "factual"),
    *("factuallyconsistent", "faithful", "supported", "supports"),
)

_CONTRADICTING = ("contradict", "contradicted", "contradiction", "contradicts", "refuted", "refutes")


@dataclass(frozen=True)
class Head:
    """Turns logits into P(consistent).

    Parameters
    ----------
    index : int
        The label that says "consistent".
    independent : bool
        Whether each logit stands alone (a sigmoid), as with a single one, or all compete (a softmax).
    """

    index: int
    independent: bool

    def probabilities(self, logits: Floats) -> Floats:
        """Return P(consistent) of each row of logits, shape (n_pairs,)."""
        values = expit(logits) if self.independent else softmax(logits, axis=1)
        return np.asarray(values[:, self.index], dtype=np.float64)


def read_head(config: "PretrainedConfig", entailment_label: str | int | None, model_id: str) -> Head:
    """Find the label that says "consistent" in a model's configuration.

    Parameters
    ----------
    config : transformers configuration
        With `id2label`.
    entailment_label : str, int or None
        The label or its number, where the names do not tell.
    model_id : str
        For the error message.

    Raises
    ------
    InputError
        The label cannot be told, or `entailment_label` is not one of the model's.
    """
    labels = [str(config.id2label[i]) for i in range(int(config.num_labels))]
    alone = len(labels) == 1
    independent = alone or config.problem_type == "multi_label_classification"
    if entailment_label is not None:
        return Head(_asked(labels, entailment_label), independent)
    fitting = [i for i, label in enumerate(labels) if alone or _plain(label) in _CONSISTENT]
    if len(fitting) != 1:
        raise InputError(
            f"`entailment_label` must be given where the labels do not tell which one says that the claim is "
            f"consistent. Got {', '.join(labels)} in {model_id!r}. Pass entailment_label={labels[-1]!r}, for instance."
        )
    return Head(fitting[0], independent)


def contradiction_head(config: "PretrainedConfig", head: Head) -> Head | None:
    """Return the head of the label that says "contradiction" in a model that has another one for "consistent"."""
    labels = [str(config.id2label[i]) for i in range(int(config.num_labels))]
    fitting = [i for i, label in enumerate(labels) if _plain(label) in _CONTRADICTING]
    return Head(fitting[0], head.independent) if len(fitting) == 1 and fitting[0] != head.index else None


def _plain(label: str) -> str:
    return "".join(letter for letter in label.casefold() if letter.isalnum())


def _asked(labels: list[str], asked: str | int) -> int:
    if isinstance(asked, str) and asked in labels:
        return labels.index(asked)
    number = int(asked) if str(asked).isdecimal() else -1
    if not 0 <= number < len(labels):
        allowed = ", ".join(f"{i} ({label})" for i, label in enumerate(labels))
        raise InputError(f"`entailment_label` must be one of the model's labels: {allowed}. Got {asked!r}.")
    return number
