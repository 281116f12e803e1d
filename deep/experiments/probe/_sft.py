"""Training data for the two hard steps, as chats."""

import json
from collections.abc import Iterable, Iterator

from deep._files import JsonObject
from deep.experiments.probe._records import FoundExcerpt, GoldClaim, Sample
from deep.experiments.stepwise import evaluation_question, finding_question
from deep.judge import Question


def chats(samples: Iterable[Sample]) -> Iterator[JsonObject]:
    """Yield evidence-finding and evidence-evaluation examples, each distinct one once.

    Finding: the accepted excerpts of each truth claim. Evaluation: PASS for those; FAIL for excerpts of truth claims
    that no model let pass, and for every excerpt found for hallucinated claims. The user's turn is the question of the
    stepwise judge, so that a tuned model can be asked the same way.
    """
    seen: set[str] = set()
    for sample in samples:
        for claim in sample.labeled("truth", "hallucinated"):
            for chat in _of_claim(sample.source, claim):
                key = json.dumps(chat, sort_keys=True)
                if key not in seen:
                    seen.add(key)
                    yield chat


def _of_claim(source: str, claim: GoldClaim) -> Iterator[JsonObject]:
    if claim.label == "truth":
        quoted = [excerpt.text for excerpt in claim.evidence]
        reasoning = f"{len(quoted)} passage{'' if len(quoted) == 1 else 's'} of the source speak to the claim."
        yield _chat("find", finding_question(source, claim.text), {"reasoning": reasoning, "evidence": quoted})
    for candidate in claim.candidates:
        verdict = _verdict(claim, candidate)
        if verdict is not None:
            reasoning = f"The excerpt {'establishes' if verdict == 'PASS' else 'does not establish'} the whole claim."
            question = evaluation_question(source, claim.text, candidate.excerpt)
            yield _chat("evaluate", question, {"reasoning": reasoning, "verdict": verdict})


def _verdict(claim: GoldClaim, candidate: FoundExcerpt) -> str | None:
    """Return the right answer; None where the models disagreed too much to know it."""
    if claim.label == "hallucinated":
        return "FAIL"
    if candidate.accepted:
        return "PASS"
    return "FAIL" if candidate.passes == 0 else None


def _chat(step: str, question: Question, answer: JsonObject) -> JsonObject:
    reply = {"role": "assistant", "content": json.dumps(answer, ensure_ascii=False)}
    return {"messages": [*question.messages, reply], "step": step}
