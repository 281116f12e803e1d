"""The document-first variant of a prompt: the same words, the document before the task, for a prefix cache."""

from dataclasses import replace

from deep.exceptions import InputError
from deep.prompt_pool._prompt import Prompt

DOCUMENT_FIRST = "-doc-first"
"""What the id of a document-first variant ends with."""

_MATERIAL = "{{source}}\n\n{{claim}}\n\n"
_ORDER = " The material comes first, the task after it."


def document_first(prompt: Prompt) -> Prompt:
    r"""Return the variant of a prompt whose user message begins with the source and the claim.

    The task closes up where they stood, and the first line of the system message tells the order.

    Parameters
    ----------
    prompt : Prompt
        With the source and the claim as paragraphs of their own, one right after the other, before the last one.

    Raises
    ------
    InputError
        The prompt puts the document first already, or its source and claim are no such paragraphs.

    Examples
    --------
    >>> from deep.prompt_pool import document_first, load_prompt
    >>> variant = document_first(load_prompt("yes-no"))
    >>> variant.id, variant.user[:23]
    ('yes-no-doc-first', '{{source}}\n\n{{claim}}\n\n')
    >>> variant == load_prompt("yes-no-doc-first")
    True
    """
    if prompt.document_first or _MATERIAL not in prompt.user:
        raise InputError(
            "`prompt` must hold {{source}} and {{claim}} as two paragraphs in a row, its task before them. "
            f"Got another order (prompt {prompt.id!r})."
        )
    said, line_end, rest = prompt.system.partition("\n")
    return replace(
        prompt,
        id=prompt.id + DOCUMENT_FIRST,
        document_first=True,
        system=f"{said}{_ORDER}{line_end}{rest}" if said else prompt.system,
        user=_MATERIAL + prompt.user.replace(_MATERIAL, ""),
    )
