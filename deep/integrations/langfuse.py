"""Langfuse: P(consistent) and the decision as scores of traces and observations that are there already.

Needs ``deep-judges[langfuse]``; docs/integrations/langfuse.md has an example.
"""

from collections.abc import Iterable, Mapping
from hashlib import sha256

from deep.exceptions import needs_extra
from deep.integrations.committee import AnyModel, Verdict, text_of, text_scorer

with needs_extra("langfuse"):
    from langfuse import Langfuse

# What a score may belong to, as ``Langfuse.create_score`` names it.
WHERE = ("trace_id", "observation_id", "session_id", "dataset_run_id")

# The decision where no judge gave a vote.
NO_VOTE = "no vote"


def send_verdict(client: Langfuse, verdict: Verdict, *, name: str = "consistency", **where: str) -> None:
    """Send a verdict: P as a numeric score, ``<name>-decision`` as a categorical one, both with the rationale.

    Without a vote of any judge the decision is ``no vote`` and there is no P. A verdict that is an error sends nothing:
    the pair has not been judged. A verdict that is sent again for the same place takes the place of the first.

    Parameters
    ----------
    client : Langfuse
        It sends in the background; ``client.flush()`` waits until all is sent.
    verdict : Verdict
        The verdict on one item; one that is an error sends nothing.
    name : str, default='consistency'
        Name of the score of P in Langfuse; the decision's is ``<name>-decision``.
    **where : str
        `trace_id`, with or without `observation_id`; or `session_id`; or `dataset_run_id`.

    Raises
    ------
    TypeError
        `where` names nothing, or something else.
    """
    if not where or set(where) - set(WHERE) or set(where) == {"observation_id"}:
        raise TypeError(
            f"`where` must name a trace, session or dataset run. Got {', '.join(sorted(where)) or 'nothing'}."
        )
    if verdict.status == "error":
        return
    more = {"comment": verdict.rationale, "metadata": verdict.metadata(), **where}
    if verdict.p is not None:
        client.create_score(name=name, value=verdict.p, data_type="NUMERIC", score_id=_score_id(name, where), **more)
    decision = f"{name}-decision"
    called = {None: NO_VOTE, True: "consistent", False: "inconsistent"}[verdict.decision]
    client.create_score(
        name=decision, value=called, data_type="CATEGORICAL", score_id=_score_id(decision, where), **more
    )


def score_items(
    client: Langfuse,
    model: AnyModel,
    items: Iterable[Mapping[str, object]],
    *,
    ledger: str | None = None,
    name: str = "consistency",
) -> list[Verdict]:
    """Score items by a model, and send each verdict to its trace or observation.

    Parameters
    ----------
    client : Langfuse
        As in :func:`send_verdict`.
    model : path, Model or TextScorer
        A model or its file; a scorer where limits, prior or prompts of one's own are wanted.
    items : iterable of mapping
        Each with `source` (a text or a list of passages), `claim`, and `trace_id` or another place of `send_verdict`.
    ledger : str, optional
        The file of answers, where judges ask an LLM.
    name : str, default='consistency'
        Name of the score of P in Langfuse; the decision's is ``<name>-decision``.

    Returns
    -------
    list of Verdict
        In the order of the items; those that are errors were not sent.

    Raises
    ------
    InputError
        The model cannot be read or its judges cannot be run.
    """
    scorer = text_scorer(model, ledger)
    verdicts = []
    for item in items:
        verdict = Verdict.on(scorer, text_of(item.get("source")), text_of(item.get("claim")))
        send_verdict(client, verdict, name=name, **{key: str(item[key]) for key in WHERE if item.get(key) is not None})
        verdicts.append(verdict)
    return verdicts


def _score_id(name: str, where: Mapping[str, str]) -> str:
    """Return the id of a score: the same for the same name and place, so that Langfuse keeps one."""
    place = "\n".join([name, *(f"{key} {where[key]}" for key in sorted(where))])
    return sha256(f"deep\n{place}".encode()).hexdigest()[:32]
