"""What every integration is given: a model, and values that hold a source or a claim."""

from collections.abc import Sequence
from pathlib import Path

from deep.asking import AskOptions, TextScorer
from deep.model import Model

AnyModel = TextScorer | Model | str | Path
"""A model, its file, or a :class:`deep.asking.TextScorer` where limits, prior or prompts of one's own are wanted."""


def text_scorer(model: AnyModel, ledger: str | None = None) -> TextScorer:
    """Return the scorer of a model; `ledger` is the file of answers, where its judges ask an LLM.

    Raises
    ------
    InputError
        As :class:`deep.asking.TextScorer`.
    """
    if isinstance(model, TextScorer):
        return model
    return TextScorer(model, None if ledger is None else AskOptions(ledger=ledger))


def text_of(value: object) -> str:
    r"""Return the text of a value: itself, or its passages below each other; empty where it is no text.

    Examples
    --------
    >>> text_of(["It rained.", "It was cold."]), text_of("It rained."), text_of(None)
    ('It rained.\n\nIt was cold.', 'It rained.', '')
    """
    if isinstance(value, str):
        return value
    if isinstance(value, Sequence) and all(isinstance(part, str) for part in value):
        return "\n\n".join(value)
    return ""
