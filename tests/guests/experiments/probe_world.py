"""Invented articles about invented lighthouses, and an LLM that answers everything about them by looking."""

import json
import re

MODELS = ("writer", "reader", "checker", "doubter")
"""The doubter lets nothing pass; the checker neither passes sentences about keepers."""

FENCED = re.compile(r"<(\w+)-([0-9a-f]{8})>\n(.*?)\n</\1-\2>", re.DOTALL)
NAMES = ("Arvo", "Belko", "Cirta", "Dovan", "Elmir", "Fasto", "Gorin", "Halda", "Istra", "Jorun", "Kelmo", "Lurva")
INVENTED = ("a kite fair in March", "a school for divers", "a museum of knots")


def sentences(text):
    """Return the sentences and points of a text that assert something."""
    lines = [line.lstrip("- ") for line in text.splitlines() if not line.startswith(("#", "Q:"))]
    return [s for line in lines for s in re.findall(r"[^.]+\.", line) for s in [s.strip()] if s]


def article(number):
    """Return the text of an article: five sentences."""
    name = NAMES[number]
    return (
        f"The lighthouse of {name} was built in {1800 + number}. Its tower is {20 + number} metres high. "
        f"The keeper of {name} was Ana Ro{number}. The lamp of {name} burns oil. A storm hit {name} in {1900 + number}."
    )


def write_articles(path, n=12):
    """Write a file of articles."""
    rows = [{"article_id": f"a{i}", "text": article(i)} for i in range(n)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def parts(asked):
    """Return the fenced texts of a request by name."""
    return {name: text for name, _, text in FENCED.findall(asked.user)}


def step_of(asked):
    """Return the step that a request belongs to."""
    by_property = {"claims": "decompose", "evidence": "find", "verdict": "evaluate", "unsupported": "direct"}
    by_property |= {"facts": "invent", "same": "match"}
    for name, step in by_property.items():
        if name in asked.properties:
            return step
    starts = {"You condense": "summarize", "You set": "ask", "You answer": "answer", "You rewrite": "restyle"}
    starts |= {"You are an editor": "insert"}
    return next(step for start, step in starts.items() if asked.system.startswith(start))


def answer(asked):
    """Answer as an honest and able model would; the doubter and the checker vote as `MODELS` says."""
    return ANSWERS[step_of(asked)](asked, parts(asked))


def _restyle(asked, texts):
    message = sentences(texts["source"])[:4]
    if "blog post" in asked.user:
        return " ".join(message)
    if "questions" in asked.user:
        return "\n".join(f"Q: What of point {i}?\n{s}" for i, s in enumerate(message))
    return "\n".join(["# Notes", *(f"- {s}" for s in message)])


def _insert(asked, texts):
    code = re.findall(r"added-1-([0-9a-f]{8})", asked.user)[-1]
    text = texts["response"]
    facts = [line.partition(". ")[2] for line in texts["facts"].splitlines()]
    ends = [match.end() for match in re.finditer(r"\.", text)]
    for number, fact in reversed(list(enumerate(facts, start=1))):
        at = ends[min(number, len(ends)) - 1]
        text = f"{text[:at]}<added-{number}-{code}> {fact}</added-{number}-{code}>{text[at:]}"
    return text


def _invent(asked, texts):
    count = int(re.search(r"Make up (\d) fact", asked.user)[1])
    name = re.search(r"lighthouse of (\w+)", texts["source"])[1]
    return {"facts": [f"The town of {name} holds {what}." for what in INVENTED[:count]]}


def _find(asked, texts):
    message = sentences(texts["source"])
    return {"reasoning": "", "evidence": [s for s in message if s == texts["claim"]] or message[:1]}


def _evaluate(asked, texts):
    passes = texts["excerpt"] == texts["claim"] and asked.model != "doubter"
    passes = passes and not (asked.model == "checker" and "keeper" in texts["claim"])
    return {"reasoning": "", "verdict": "PASS" if passes else "FAIL"}


def _direct(asked, texts):
    wrong = [s for s in sentences(texts["response"]) if s not in texts["source"]]
    return {"reasoning": "", "unsupported": wrong[:1]}


ANSWERS = {
    "summarize": lambda asked, texts: " ".join(sentences(texts["source"])[:4]),
    "ask": lambda asked, texts: "When was it built, and how high is it?",
    "answer": lambda asked, texts: " ".join(sentences(texts["source"])[:2]),
    "restyle": _restyle,
    "invent": _invent,
    "insert": _insert,
    "decompose": lambda asked, texts: {"claims": [{"segment": s, "claim": s} for s in sentences(texts["response"])]},
    "find": _find,
    "evaluate": _evaluate,
    "direct": _direct,
    "match": lambda asked, texts: {"same": []},
}
