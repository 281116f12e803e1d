"""Whether the words behind a verdict give its reason, or take something of it back."""

import re
from collections.abc import Iterable

LONGEST_REMARK = 1000

# Whoever writes these is not sure, whichever verdict stands before them.
_UNSURE = re.compile(
    r"[?\u00bf]|\b(?:maybe|perhaps|possibl[ey]|probabl[ey]|presumabl[ey]|arguabl[ey]|tentativ\w*|unsure|uncertain\w*"
    r"|doubt\w*|not (?:fully |entirely |quite |so |too )?(?:sure|certain|confident)|(?:i|we) (?:think|guess|suppose"
    r"|feel)"
    r"|second thoughts?|on reflection|wait|hmm+|scratch that|never mind|correction|reconsider\w*|changed? my|unless"
    r"|depend\w*|unclear|hard to|(?:difficult|impossible) to|(?:can ?not|can't) (?:say|tell|be sure|decide)"
    r"|low confidence|confidence: low|either way|(?:i|it|this|that|which|claim|verdict|answer) (?:may|might|could)"
    r"|seems?|appears?|aber|vielleicht|oder|mais|peut-\u00eatre|pero|quiz\u00e1s?|tal vez|talvez|forse|\u043d\u043e)\b"
    r"|\u4f46|\u53ef\u80fd|\u6216",
    re.IGNORECASE,
)
# A remark that begins so limits the verdict instead of explaining it.
_LIMITS = re.compile(
    r"(?:but|however|though|although|yet|except|if|or|nor|and|only|when|where|while|whereas|still|then again"
    r"|more or less"
    r"|most(?:ly)?|mainly|largely|partial\w*|partly|in (?:part|some|most|one|its|spirit|principle|theory)|part of"
    r"|almost|nearly|roughly|somewhat|kind of|sort of|at (?:least|first)|to (?:a|an|some|the)|for (?:the most|now)"
    r"|likely|pending|subject to|with|strictly|technically|provisional\w*|not (?:really|quite|exactly|necessarily))\b",
    re.IGNORECASE,
)
_AGAINST = re.compile(
    r"\b(?:not|no|none|nobody|nothing|never|nor|neither|without|wrong\w*|incorrect\w*|inaccura\w*|false\w*|errors?"
    r"|mistak\w*"
    r"|contradict\w*|conflict\w*|contrary|differ\w*|discrepan\w*|mismatch\w*|missing|absent|lack\w*|fail\w*|unsupported"
    r"|unfaithful|inconsisten\w*|invent\w*|fabricat\w*|hallucinat\w*|made up|only|but|however|though|although|yet|still"
    r"|except\w*|while|whereas|despite|alter\w*|chang\w*|exaggerat\w*|overstat\w*|unverif\w*|apart from|other than"
    r"|caveat\w*"
    r"|reservations?|exten[dt]|degree|minor|small|slight\w*|part\w*|most\w*|main\w*|large\w*|almost|nearly|roughly"
    r"|somewhat"
    r"|kind of|sort of|if|or|either|provided|assuming|pending|likely|should|would|could|may|might|must|rather|instead"
    r"|actually|otherwise|disagree\w*|others?|some|half|few|too|swapped|mixed|dubious|questionable|weak\w*|at least)\b"
    r"|n't\b",
    re.IGNORECASE,
)
_FAULTS = (
    r"(?:contradict\w*|conflict\w*|discrepanc\w*|errors?|mistakes?|mismatch\w*|differ\w*|inconsisten\w*|issues?"
    r"|problems?"
    r"|deviat\w*|doubts?|inaccura\w*|additions?|added|changes?|changed|missing|wrong|false|invented|altered|made up"
    r"|left out"
    r"|fabricat\w*|hallucinat\w*|unsupported)"
)
# "No contradiction was found" speaks for the claim.
_NO_FAULT = re.compile(
    rf"\b(?:no|nothing|none|without(?: any)?|zero|(?:do|does|did|is|are|was|were)(?: not"
    rf"|n't))(?: \w+){{0,3}}? {_FAULTS}"
    rf"(?:,? (?:or|and|nor) {_FAULTS})*",
    re.IGNORECASE,
)
_AGREES = re.compile(
    r"(?<!not )(?<!n't )\b(?:supported|consistent|correct|accurate|true|right|match|matches|confirmed|established"
    r"|entailed"
    r"|holds|faithful|agrees|fine|passes|backed|verified)\b",
    re.IGNORECASE,
)
_FOR = re.compile(
    r"[\"'\u201c\u2018(\[]*(?:because|since|as|the|this|these|that|all|every\w*|each|both|source|document|article"
    r"|text|passage"
    r"|claim|statement|summary|reason\w*|explanation|justification|rationale|evidence|note|it|its|they|in line"
    r"|in accordance"
    r"|match\w*|confirmed|stated|states?|no|nothing|none|zero|without|see|explicitly|exactly|directly|verbatim"
    r"|clearly|by|per"
    r"|according|given|due|from|consistent|lines?|sentences?|paragraphs?|facts?|names?|numbers?|dates?|confidence)\b",
    re.IGNORECASE,
)
# What assistants end with, which says nothing of the verdict.
_FAREWELL = re.compile(
    r"(?:please )?(?:let me know|i hope (?:it|this|that)|feel free|is there anything|do you (?:need|want)|thank)"
    r"[^\n]*\Z",
    re.IGNORECASE,
)
_FINAL = re.compile(r"\W*(?:this is )?(?:my |the )?final(?: (?:answer|verdict))?\W*", re.IGNORECASE)
_SENTENCE = re.compile(r"(?<=[.!;\n])\s+")


def explains(remark: str, polarity: int, others: Iterable[str]) -> bool:
    """Tell whether a remark behind a verdict leaves the verdict as it is.

    A remark that doubts, limits or contradicts the verdict does not; neither does one that cannot be followed.

    Parameters
    ----------
    remark : str
        What stands behind the verdict, without the sign between the two.
    polarity : {1, 0, -1}
        Of the verdict.
    others : iterable of str
        The labels of any other polarity.

    Examples
    --------
    >>> from deep.prompt_pool._remark import explains
    >>> explains("the source says 14", 0, ["SUPPORTED"]), explains("but the date is off", 1, ["NOT SUPPORTED"])
    (True, False)
    """
    said = _FAREWELL.sub("", remark.replace("\u2019", "'")).strip()
    if not said.strip(" .)]}*_`") or _FINAL.fullmatch(said):
        return True
    if len(said) > LONGEST_REMARK or _UNSURE.search(said) or _LIMITS.match(said.lstrip(" \"'(*_")):
        return False
    if polarity == 1:
        cleared = _NO_FAULT.sub(" ", said)
        return bool(_FOR.match(said)) and not (_AGAINST.search(cleared) or _names(cleared, others, re.IGNORECASE))
    return not _names(said, others, 0) and not (polarity == 0 and _turns_round(said, others))


def _names(text: str, labels: Iterable[str], flags: int) -> bool:
    """Tell whether a text holds one of some labels that no "not" stands before."""
    return any(re.search(rf"(?<![\w-])(?<!not )(?<!NOT ){re.escape(label)}(?!\w)", text, flags) for label in labels)


def _turns_round(said: str, others: Iterable[str]) -> bool:
    """Tell whether the last sentence of a remark behind a negative verdict, or all of it, agrees with the claim."""
    last = [sentence for sentence in _SENTENCE.split(said) if sentence.strip()][-1:]
    return any(
        (_AGREES.search(text) or _names(text, others, re.IGNORECASE)) and not _AGAINST.search(text)
        for text in [*last, said]
    )
