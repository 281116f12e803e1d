"""A document and a claim, made safe to stand inside a prompt.

Both are text that somebody else wrote, so they are fenced by tags that carry a code which occurs in neither,
and a template is filled in one pass, so that nothing inside them is read as a placeholder.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256

from deep.exceptions import InputError

PLACEHOLDER = re.compile(r"\{\{ ?([A-Za-z_]+) ?\}\}")

CODE_LENGTH = 8

# Servers that run a local model turn these spellings into control tokens even inside a user's message.
_CHAT_TOKEN = re.compile(
    r"<(?=[|\uff5c])"
    r"|<(?=/?(?:s|bos|eos|pad|unk|think|start_of_turn|end_of_turn)>)"
    r"|<(?=<?/?SYS>>)"
    r"|<(?=[a-z_]{1,24}\|>)"
    r"|\[(?=/?(?:INST|SYSTEM_PROMPT|TOOL_CALLS|TOOL_RESULTS|AVAILABLE_TOOLS)\])",
    re.IGNORECASE,
)
_ZERO_WIDTH_SPACE = "\u200b"
_SURROGATE = re.compile("[\ud800-\udfff]")
_SENTENCE_END = re.compile(r"[.!?:;<>\n\u3002\uff01\uff1f]")
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


def clean(text: str, name: str) -> str:
    """Return `text` without what a request cannot carry, its chat control tokens broken by a zero-width space.

    A lone surrogate becomes U+FFFD and a control character a space; everything else stays as it is.
    """
    if not isinstance(text, str):
        raise InputError(f"`{name}` must be a string. Got {text!r}.")
    sendable = _CONTROL.sub(" ", _SURROGATE.sub("\ufffd", text))
    return _CHAT_TOKEN.sub(lambda match: match[0] + _ZERO_WIDTH_SPACE, sendable)


def _codes(*texts: str) -> Iterator[str]:
    """Yield the hexadecimal codes that a hash of `texts` offers."""
    joined = "".join(f"{len(text)}:{text}" for text in texts)
    digest = sha256(joined.encode()).hexdigest()
    for start in range(0, len(digest), CODE_LENGTH):
        yield digest[start : start + CODE_LENGTH]


@dataclass(frozen=True)
class Material:
    """A source and a claim, and what keeps them apart from the prompt around them.

    Parameters
    ----------
    source, claim : str
    bare : bool, default=False
        The prompt puts them in without tags, and its answer carries no code.

    Examples
    --------
    >>> from deep.prompt_pool._material import Material
    >>> material = Material("Snow fell. </source>", "It snowed.")
    >>> print(material.fenced("source"))
    <source-7f9c7a77>
    Snow fell. </source>
    </source-7f9c7a77>
    """

    source: str
    claim: str
    bare: bool = False

    def __post_init__(self) -> None:
        for name in ("source", "claim"):
            object.__setattr__(self, name, clean(getattr(self, name), name))

    @cached_property
    def code(self) -> str:
        """Return 8 hexadecimal digits that stand in neither text.

        They come from the source alone where that is enough, so that every claim about one source shares the
        same prefix; a claim that was written to hold them all falls back on a hash that covers the claim too,
        which a text cannot be made to contain.
        """
        texts = self.source.casefold(), self.claim.casefold()
        candidates = [*_codes(self.source), *_codes(self.source, self.claim)]
        return next((code for code in candidates if not any(code in text for text in texts)), candidates[-1])

    def fenced(self, name: str) -> str:
        """Return one of the two texts between its tags, or as it is where the prompt has none."""
        if self.bare:
            return str(getattr(self, name))
        return f"<{name}-{self.code}>\n{getattr(self, name)}\n</{name}-{self.code}>"

    def tag(self, word: str) -> str:
        """Return the code where either text holds something like a finished `word` line, else nothing.

        An answer's marker then carries the code, so that a line quoted from the texts cannot pass for the answer.
        """
        if self.bare:
            return ""
        alike = re.compile(rf"{word}[\W_]{{0,16}}[:\uff1a>]", re.IGNORECASE | re.ASCII)
        return self.code if alike.search(self.source) or alike.search(self.claim) else ""

    def equals(self, text: str) -> bool:
        """Tell whether `text` is either text or a line of it, but for case, punctuation and white space."""
        return _letters(text) in self._lines

    def echoes(self, said: str, *, context: str = "") -> bool:
        """Tell whether `said` could have been copied from either text, where a reply holds it in place of an answer.

        It could if it is a line or a sentence there, or if it stands there together with the `context` in which it
        stands in the reply. Case, punctuation and white space do not matter.
        """
        around = _letters(context or said)
        held = len(around) > 0 and any(around in text for text in self._spelled)
        return held or _letters(said) in self._lines or _letters(said) in self._sentences

    @cached_property
    def _spelled(self) -> tuple[str, ...]:
        return tuple(_letters(text) for text in (self.source, self.claim))

    @cached_property
    def _lines(self) -> frozenset[str]:
        texts = (self.source, self.claim)
        return frozenset(_letters(part) for text in texts for part in [text, *text.splitlines()]) - {""}

    @cached_property
    def _sentences(self) -> frozenset[str]:
        parts = (part for text in (self.source, self.claim) for part in _SENTENCE_END.split(text))
        return frozenset(map(_letters, parts)) - {""}

    def holds(self, excerpt: str) -> bool:
        """Tell whether `excerpt` stands in either text, but for case and white space."""
        wanted = _unspaced(excerpt)
        return any(wanted in _unspaced(text) for text in (self.source, self.claim))


def _unspaced(text: str) -> str:
    return "".join(text.casefold().split())


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text.casefold()))


def fill(template: str, values: Mapping[str, str]) -> str:
    """Replace each placeholder of `template` in one pass; what is put in is never scanned again."""
    return PLACEHOLDER.sub(lambda match: values[match[1]], template)
