"""Training data of a detector, as chats."""

from collections.abc import Iterator, Sequence

from deep._files import JsonObject
from deep.experiments.cognibench._turns import LabeledTurn
from deep.prompt_pool import ListJudge, list_text


def chats(turns: Sequence[LabeledTurn], level: str) -> Iterator[JsonObject]:
    """Yield one chat a turn: what :class:`ListJudge` asks, and the list of hallucinated sentences as the answer.

    A model tuned on them can be asked by that judge. Sentences stand in the answer as they are published.
    """
    judge = ListJudge()
    for turn in turns:
        bad = [sentence.text for sentence in turn.sentences if sentence.hallucinated(level)]
        messages = judge.messages(turn.source, turn.response)
        yield {"messages": [*messages, {"role": "assistant", "content": list_text(bad)}]}
