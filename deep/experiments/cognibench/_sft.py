"""Training data of a detector, as chats."""

from collections.abc import Iterable, Iterator

from deep._files import JsonObject
from deep.experiments.tiered import ListJudge, list_text

Answered = tuple[str, str, list[str]]
"""Source, response and its hallucinated sentences."""


def chats(turns: Iterable[Answered]) -> Iterator[JsonObject]:
    """Yield one chat a turn: what :class:`ListJudge` asks, and the list of hallucinated sentences as the answer.

    A model tuned on them can be asked by that judge.
    """
    judge = ListJudge()
    for source, response, bad in turns:
        messages = judge.messages(source, response)
        yield {"messages": [*messages, {"role": "assistant", "content": list_text(bad)}]}
