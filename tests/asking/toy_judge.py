"""A judge of two stages for tests: split the claim at "and", then check every part alone."""

import hashlib
from importlib.metadata import EntryPoint
from typing import Any

from deep._util import entry_points
from deep._util.entry_points import JUDGE_GROUP
from deep.judges import LLMJudge, Program, Question
from deep.prompt_pool import why_unusable
from deep.records import Example, Judgment
from tests.scripted_llm import Asked


def with_toy(group: str, installed: Any = entry_points._installed_entries) -> tuple[EntryPoint, ...]:
    """Return the entry points of installed packages, and of a package that has the toy judge."""
    toy = EntryPoint("toy", "tests.asking.toy_judge:ToyJudge", JUDGE_GROUP)
    return (*installed(group), *([toy] if group == JUDGE_GROUP else []))


class ToyJudge(LLMJudge):
    """Asks for the parts of a claim, then of each part whether the source holds it."""

    name = "toy"
    version = hashlib.sha256(b"toy 1").hexdigest()

    def most_calls(self, example: Example) -> int:
        """Return one call to split, and one a word at most."""
        return 1 + len(example.claim.split())

    def program(self, example: Example) -> Program[Judgment]:
        """Judge one example."""
        (split,) = yield [ask("split", f"SPLIT {example.claim}")]
        reason = why_unusable(split)
        if reason is not None:
            return Judgment(vote=-1, reason=reason)
        parts = [part for part in split.text.split(" | ") if part]
        if not parts:
            return Judgment(vote=-1, reason="unparsable")
        if parts == ["boom"]:
            raise KeyError("boom")
        checks = yield [ask("check", f"CHECK {part} IN {example.source}") for part in parts]
        reasons = [why_unusable(check) for check in checks]
        if any(reasons):
            return Judgment(vote=-1, reason=next(reason for reason in reasons if reason))
        if any(check.text not in ("yes", "no") for check in checks):
            return Judgment(vote=-1, reason="unparsable")
        return Judgment(vote=int(all(check.text == "yes" for check in checks)), evidence=tuple(parts))


def ask(step: str, text: str, **fields: Any) -> Question:
    """Return a question of a single message."""
    chosen = {"parameters": {"max_tokens": 9}, **fields}
    return Question(step=step, messages=[{"role": "user", "content": text}], **chosen)


def answer(asked: Asked) -> str:
    """Answer the toy judge truthfully."""
    word, _, rest = asked.user.partition(" ")
    if word == "SPLIT":
        return " | ".join(part.strip() for part in rest.split(" and "))
    part, _, source = rest.partition(" IN ")
    return "yes" if part in source else "no"
