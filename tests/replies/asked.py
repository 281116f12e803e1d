"""Prompts that ask for a verdict or a score in the words of many tasks, as the batches of replies name them."""

from deep.prompt_pool import Prompt


def asked(labels=None, **how):
    """Return a prompt as it is printed that asks for some labels, verdict words or a scale."""
    told = ", ".join([*(labels or {}), *how.get("verdict_words", {})])
    kind = "score" if "scale" in how else "verdict"
    user = f"Say {told} {{{{source}}}} {{{{claim}}}}"
    same = {"id": "task", "version": "1", "family": "mine", "follows": "own design", "reasons_first": True}
    return Prompt(**same, fenced=False, user=user, labels=labels or {}, kind=kind, **how)


PROMPTS = {
    "yes": asked({"yes": 1, "no": 0}),
    "first": asked({"Yes": 1, "No": 0}, answer_first=True),
    "na": asked({"Yes": 1, "No": 0, "N/A": -1}),
    "true": asked({"True": 1, "False": 0}),
    "consistent": asked({"consistent": 1, "inconsistent": 0}),
    "correct": asked({"correct": 1, "incorrect": 0}),
    "faithful": asked({"faithful": 1, "unfaithful": 0}),
    "faithful-not": asked({"Faithful": 1, "Not faithful": 0}),
    "relevant": asked({"relevant": 1, "not relevant": 0}),
    "grounded": asked({"grounded": 1, "not grounded": 0}),
    "supported": asked({"Supported": 1, "Not Supported": 0}),
    "deep": asked({"SUPPORTED": 1, "NOT SUPPORTED": 0, "UNSUPPORTED": 0}),
    "refuted": asked({"SUPPORTED": 1, "REFUTED": 0, "NOT ENOUGH INFO": 0}),
    "partly": asked({"supported": 1, "partially supported": 0, "not supported": 0}),
    "entailment": asked({"entailment": 1, "neutral": 0, "contradiction": 0}),
    "attributable": asked({"Attributable": 1, "Contradictory": 0, "Extrapolatory": 0}),
    "attributable-not": asked({"attributable": 1, "not attributable": 0}),
    "pass": asked({"PASS": 1, "FAIL": 0}),
    "factual": asked({"factual": 1, "non-factual": 0}),
    "digits": asked({"1": 1, "0": 0}),
    "letters": asked({"A": 1, "B": 0}),
    "pair": asked({"A": 1, "B": 0, "C": -1}),
    "responses": asked({"Response 1": 1, "Response 2": 0}),
    "assistants": asked({"Assistant A": 1, "Assistant B": 0}),
    "contradiction": asked(verdict_words={"no contradiction": 1, "a contradiction": 0}),
    "hallucination": asked(verdict_words={"no hallucination": 1, "hallucination": 0}),
    "hallucinated": asked(verdict_words={"hallucinated": 0, "not hallucinated": 1}),
    "errors": asked(verdict_words={"no errors": 1, "an error": 0}),
    "factual-errors": asked(verdict_words={"no factual errors": 1, "factual errors": 0}),
    "outside": asked(verdict_words={"no information that is not in the source": 1, "information not in the source": 0}),
    "1-5": asked(scale=(1, 5)),
    "1-10": asked(scale=(1, 10)),
    "0-100": asked(scale=(0, 100)),
    "0-1": asked(scale=(0, 1)),
    "0-3": asked(scale=(0, 3)),
    "words": asked(scale={"poor": 1, "fair": 2, "good": 3, "very good": 4, "excellent": 5}),
    "a-e": asked(scale={"A": 1, "B": 2, "C": 3, "D": 4, "E": 5}),
    "chinese": asked({"正确": 1, "错误": 0}),
    "chinese-consistent": asked({"一致": 1, "不一致": 0}),
    "german": asked({"konsistent": 1, "inkonsistent": 0}),
    "german-yes": asked({"ja": 1, "nein": 0}),
    "french": asked({"cohérent": 1, "incohérent": 0}),
    "french-true": asked({"vrai": 1, "faux": 0}),
    "spanish-yes": asked({"sí": 1, "no": 0}),
    "spanish": asked({"correcto": 1, "incorrecto": 0}),
    "accurate": asked({"accurate": 1, "inaccurate": 0}),
    "simpleqa": asked({"CORRECT": 1, "INCORRECT": 0, "NOT_ATTEMPTED": -1}),
    "agree": asked({"agree": 1, "disagree": 0}),
    "tie": asked({"Summary A": 1, "Summary B": 0, "tie": -1}),
    "likert": asked(scale={"strongly disagree": 1, "disagree": 2, "neutral": 3, "agree": 4, "strongly agree": 5}),
    "1-7": asked(scale=(1, 7)),
    "listed": asked({"Yes": 1, "No": 0}, listed=True),
    "japanese": asked({"一致": 1, "矛盾": 0}),
    "japanese-yes": asked({"はい": 1, "いいえ": 0}),
    "korean": asked({"일치": 1, "불일치": 0}),
    "portuguese": asked({"sim": 1, "não": 0}),
    "italian": asked({"vero": 1, "falso": 0}),
    "chinese-yes": asked({"是": 1, "否": 0}),
    "chinese-support": asked({"支持": 1, "不支持": 0}),
    "french-yes": asked({"oui": 1, "non": 0}),
    "german-correct": asked({"richtig": 1, "falsch": 0}),
    "russian": asked({"верно": 1, "неверно": 0}),
}
