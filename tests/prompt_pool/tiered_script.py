"""A deterministic LLM that labels sentences as a table of verdicts tells it to."""

import re
from types import SimpleNamespace

from deep.experiments.tiered import list_text

KINDS = {"irrelevant": "irrelevant", "faithful": "factual", "invented": "factual"}
MET = {"misleading": 0, "speculative": 1, "reliable": 2, "irrefutable": 3}

MARKED = re.compile(r"<(\?|factual|cognitive)((?:-[0-9a-f]{8})?)>(.*?)</\1\2>", re.DOTALL)
REPLY = re.compile(r"<reply-([0-9a-f]{8})>\n(.*)\n</reply-\1>", re.DOTALL)


def task_of(user):
    """Return the task that a message sets."""
    if '{"hallucinated"' in user:
        return "list"
    named = re.search(r"<(hallucinated|speculative)(?:-[0-9a-f]{8})?>\.\.\.", user)
    if named:
        return {"hallucinated": "support", "speculative": "tier"}[named[1]]
    result = re.search(r"<(irrelevant|faithful|grounded|irrefutable)(?:-[0-9a-f]{8})?>\.\.\.", user)[1]
    return {"irrelevant": "type", "faithful": "check"}.get(result, result)


def marked_in(user):
    """Return the marked sentences of a message, in order."""
    return [match[3] for match in MARKED.finditer(REPLY.search(user)[2])]


def label_of(verdict, task):
    """Return the label that a sentence of this verdict gets in a task."""
    if task == "type":
        return KINDS.get(verdict, "cognitive")
    if task == "tier":
        return verdict
    if task == "support":
        bad = {"invented": "hallucinated", "irrelevant": "irrelevant"}
        return bad.get(verdict, "faithful" if MET.get(verdict, 3) > 1 else "hallucinated")
    if task == "check":
        return verdict if verdict in KINDS else "rational" if MET[verdict] else "misleading"
    if task == "grounded":
        return "grounded" if MET[verdict] > 1 else "ungrounded"
    return "irrefutable" if MET[verdict] > 2 else "debatable"


def answer(user, verdicts):
    """Return the reply of a judge that holds each sentence to be what `verdicts` says."""
    reply = REPLY.search(user)[2]
    task = task_of(user)
    if task == "list":
        bad = ("invented", "misleading", "speculative")
        return list_text([text for text, verdict in verdicts.items() if verdict in bad and text in reply])
    return MARKED.sub(lambda m: "<{0}{1}>{2}</{0}{1}>".format(label_of(verdicts[m[3]], task), m[2], m[3]), reply)


def reply_of(text, **given):
    """Return what a call layer hands back."""
    usual = {"finish_reason": "stop", "refusal": None, "model": "tiny", "tokens": {"input": 9, "output": 3}}
    return SimpleNamespace(text=text, **usual | given)


def asker(verdicts, asked=None):
    """Return a callable that answers questions; with `asked`, each is appended to it."""

    def ask(question):
        if asked is not None:
            asked.append(question)
        chosen = verdicts[question.sample % len(verdicts)] if isinstance(verdicts, list) else verdicts
        return reply_of(answer(question.messages[-1]["content"], chosen))

    return ask
