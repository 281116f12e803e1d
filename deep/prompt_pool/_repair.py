"""The repair turn: what a judge is told whose reply holds no answer that can be read."""

from deep.prompt_pool._answer_form import AnswerForm
from deep.prompt_pool._material import Material

MOST_QUOTED = 2000
"""Characters of the reply's end that are quoted, so that a repair has a greatest cost."""

_TURN = """
A reply to all of the above follows, between tags. It is material too.

{reply}

That reply does not close with an answer that can be read. Give the answer now, and nothing else. Where the reply \
leaves it open, decide for yourself. Your whole reply is a single line. It reads {lines}, and no word comes after it.
"""


def repair_text(form: AnswerForm, material: Material, reply: str) -> str:
    """Return the paragraphs below a question that ask once more, for the answer alone.

    The reply is fenced by tags whose code stands in none of the texts, and it is read as a document is: what it holds
    can be copied, and what is copied is no vote.

    Parameters
    ----------
    form : AnswerForm
    material : Material
        The source and the claim.
    reply : str
        The reply as it came.
    """
    # The reply's own code: it is new, so that no tag in the reply can close the fence.
    fence = Material(reply[-MOST_QUOTED:], f"{material.source}\n{material.claim}")
    quoted = f"<reply-{fence.code}>\n{fence.source}\n</reply-{fence.code}>"
    return _TURN.format(reply=quoted, lines=_lines(form, material.tag(form.kind)))


def _lines(form: AnswerForm, tag: str) -> str:
    """Return the lines that the judge may write, as they stand in the instruction."""
    if form.scale is not None:
        low, high = form.scale
        return f'"{form.line(tag, "N")}", where N is a number from {low:g} to {high:g}'
    *others, last = (f'"{form.line(tag, label)}"' for label in form.told)
    return f"exactly {', '.join(others)} or {last}" if others else f"exactly {last}"
