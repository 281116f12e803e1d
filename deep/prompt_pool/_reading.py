"""What the words behind a marker say: a label, alone, in a short sentence, or with its reason behind it."""

import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from deep.prompt_pool._remark import LONGEST_REMARK, explains
from deep.prompt_pool._values import LONGEST_VALUE, normalise_label, read_label, read_score

STOP_TOKEN = re.compile(
    r"<\|start_header_id\|>[a-z]{1,20}<\|end_header_id\|>|<\|im_start\|>(?:assistant|user)?[ \t\n]*(?=\Z|</s>|<\|)"
    r"|<[|\uff5c][^<>\n]{1,40}[|\uff5c]>|</?(?:s|eos|bos|pad|end|assistant)>"
    r"|<(?:end|start)_of_(?:turn|utterance)>|<turn\|>|<unused\d{1,3}>|<0x[0-9a-f]{2}>|\[/?INST\]"
    r"|\[(?:EOS|DONE|END|STOP|end of text)\]"
    r"|</?(?:b|strong|p|em|i|div|span|br ?/?|code|answer|output|response|result|reply|final_answer)>",
    re.IGNORECASE,
)

_WRAPPED = re.compile(r"\\(?:text|textbf|textit|texttt|mathrm|mathbf|boxed|fbox|emph)\s*\{([^{}]*)\}")
_RULE = re.compile(r"^[ \t]*(?:={3,}|~{3,}|-{3,})[ \t]*(?:\n|\Z)", re.MULTILINE)
_POLITE = re.compile(r"(?:\u3067\u3059|\u3067\u3042\u308b|\uc785\ub2c8\ub2e4|\uc774\ub2e4)[.\s]*\Z")
_POINTER = re.compile(r"(?:[=-]+>|[\u2190-\u21ff\u2794-\u27be])\s*")
_LATEX = re.compile(r"\\[()\[\]]|\$|\\(?=[ _])")
_FOR_SIGN = "\u2705\u2714\u2713\u2611\U0001f44d\U0001f7e2"
_AGAINST_SIGN = "\u274c\u2716\u2717\u2718\U0001f6ab\u26d4\U0001f44e\U0001f534"
_SIGNS = re.compile(f"[{_FOR_SIGN}{_AGAINST_SIGN}]\ufe0f?")
_OPEN = r"[\s*_`#\"'\u2018\u2019\u201c\u201d(\[{<]*"
_CLOSE = r"[*_`\"'\u2018\u2019\u201c\u201d)\]}>]*"
_GAP = r"[\s*_`\"'\u2018\u2019\u201c\u201d\u2010-\u2015-]*"
_FRAME = re.compile(
    r"(?:(?:so|therefore|thus|hence|overall|consequently|accordingly|as a result|in (?:conclusion|summary|short"
    r"|sum))\b[,:]? )?"
    r"(?:(?:based on|given|considering|in light of) [^,.\n]{1,80}, )?(?:it follows that )?"
    r"(?:(?:final )?(?:verdict|answer|label|conclusion) ?[:=-] ?)?"
    r"(?:(?:i|we) (?:conclude|find|judge|decide|determine) that |i would say that "
    r"|i (?:would )?(?:answer|choose|vote):? )?"
    r"(?:(?:the|this|my|our|that) (?:(?:whole|entire|given|final|overall) )?"
    r"(?:claim|statement|summary|sentence|assertion|hypothesis|text|verdict|answer|label|conclusion|judge?ment)"
    r" (?:is|are|was)(?: (?:therefore|thus|hence|clearly|fully|completely|entirely|directly|indeed|deemed|considered"
    r"|rated))*"
    r"[:,]? )?",
    re.IGNORECASE,
)
_DELIMITER = re.compile(
    r"\s*[,.;:!]+(?:(?=[\"'*_)]*\s)[\"'*_)]*\s*|$)|\s*\n\s*|\s+[-\u2010-\u2015]+>?\s+|\s*[\u2014\u2013]\s*|\s*[(\[]"
    r"|\s+(?=(?:because|since|as|due|given|by|per|according|in (?:line|accordance)|from)\b)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class LabelReading:
    """A label that was read: what it stands for, the words from it on, and how long the label itself is.

    Parameters
    ----------
    value : float
        A polarity, or a score scaled to [0, 1].
    said : str
        What the judge wrote from the label on.
    core : str
        What the judge wrote up to the end of the label.
    remark : str
        What stands behind the label as its reason.
    """

    value: float
    said: str
    core: str
    remark: str = ""


def read_value(text: str, labels: Mapping[str, int], scale: tuple[float, float] | None) -> LabelReading | None:
    """Return the label or the score that a text gives as its answer; None where it gives none or is not clear.

    Examples
    --------
    >>> from deep.prompt_pool._reading import read_value
    >>> labels = {"SUPPORTED": 1, "NOT SUPPORTED": 0}
    >>> [read_value(text, labels, None) is None for text in ("The claim is SUPPORTED.</s>", "SUPPORTED, in part")]
    [False, True]
    """
    if len(text.strip()) > LONGEST_VALUE + LONGEST_REMARK:
        return None
    plain = _plain(text)
    if scale and (not labels or (number := _score(plain, scale))):
        return number if labels else _score(plain, scale)
    unsigned = _SIGNS.sub("", plain)
    polarity = read_label(unsigned, labels)
    found = None if polarity is None else LabelReading(polarity, unsigned, unsigned)
    found = found or _label_and_remark(unsigned, labels)
    return found if found and _signs_agree(plain, found.value) else None


def _plain(text: str) -> str:
    """Return a text without stop tokens, LaTeX commands and invisible characters, its full-width signs made plain."""
    visible = _RULE.sub(" ", STOP_TOKEN.sub(" ", text))
    if not visible.isascii():
        folded = unicodedata.normalize("NFKC", visible)
        visible = "".join(character for character in folded if unicodedata.category(character) != "Cf")
    for _ in range(3):
        visible = _WRAPPED.sub(r"\1", visible)
    plain = _POLITE.sub("", _LATEX.sub("", visible.replace("\u3002", ". ")).strip(" \t\n\r|"))
    return _POINTER.sub("", plain, count=1) if _POINTER.match(plain) else plain


def _signs_agree(text: str, value: float) -> bool:
    """Tell whether the ticks and crosses in a text say the same as its label."""
    wrong = {1: _AGAINST_SIGN, 0: _FOR_SIGN}.get(int(value), _FOR_SIGN + _AGAINST_SIGN)
    return not any(sign in text for sign in wrong)


def _label_and_remark(text: str, labels: Mapping[str, int]) -> LabelReading | None:
    start = re.match(_OPEN, text)
    begin = start.end() if start else 0
    frame = _FRAME.match(text, begin)
    for at in [begin] if frame is None else [frame.end(), begin]:
        for label, polarity in _longest_first(labels):
            match = _pattern(label).match(text, at)
            if match:
                return _with_remark(text, match, polarity, labels)
    return None


def _longest_first(labels: Mapping[str, int]) -> Iterator[tuple[str, int]]:
    yield from sorted(labels.items(), key=lambda item: -len(item[0]))


def _pattern(label: str) -> re.Pattern[str]:
    """Return the pattern of a label as a judge may write it: its words, whatever stands between them."""
    words = _GAP.join(map(re.escape, normalise_label(label).split()))
    return re.compile(rf"{_OPEN}(?P<label>{words})(?!\w)", re.IGNORECASE)


def _with_remark(text: str, match: re.Match[str], polarity: int, labels: Mapping[str, int]) -> LabelReading | None:
    closed = re.compile(_CLOSE).match(text, match.end())
    end = closed.end() if closed else match.end()
    reading = LabelReading(polarity, text[match.start("label") :], text[: match.end()])
    if not text[end:].strip(" \n\t.,;:!*_`\"')]}"):
        return reading
    delimiter = _DELIMITER.match(text, end)
    if delimiter is None:
        return None
    remark = text[delimiter.end() :].strip(" \n\t*_`#>-")
    if match["label"].casefold() == "no" and delimiter[0].startswith(".") and remark[:1].isdigit():
        return None  # "No. 5" is a number
    others = [label for label, other in labels.items() if other != polarity]
    return replace(reading, remark=remark) if explains(remark, polarity, others) else None


_HEDGED_SCORE = re.compile(
    r"\d+ ?(?:/|out of|of|stars?\b|points?\b|%)|^\W*(?:or|to|and|maybe|about|no|\d+)\b|[?]", re.IGNORECASE
)


def _score(text: str, scale: tuple[float, float]) -> LabelReading | None:
    """Return the score that a text is, or begins with where its reason stands behind it."""
    number = read_score(text, *scale)
    if number is not None:
        return LabelReading(number, text, text)
    for cut in re.finditer(r"(?:[,.;:!]|\s[-\u2010-\u2015])?(?=\s)|\s*(?=[(\[])|(?=\s*[\u2013\u2014]\s)", text[:60]):
        number = read_score(text[: cut.start()], *scale)
        remark = text[cut.end() :].strip(" \n\t*_`#>-\u2013\u2014(")
        delimited = cut[0].strip() or re.match(
            r"\s*[(\[\n\u2013\u2014]|\s+(?:because|since|as|due|given)\b", text[cut.end() :]
        )
        if number is not None and delimited and not _HEDGED_SCORE.search(remark) and explains(remark, -1, ()):
            return LabelReading(number, text, text[: cut.start()], remark)
    return None
