"""Quotations of the claim that are not in the source."""

import re
from typing import ClassVar

from deep.features.lexical._analysis import Pair
from deep.features.lexical._base import LexicalCheck, cut_off, found_or_missing
from deep.features.lexical._words import WORD, stem
from deep.records import Judgment

QUOTED = re.compile("[\"“„«]([^\"“”„«»]{3,1000})[\"”“»]|``([^`']{3,1000})''")
SHORTEST = 2
"""Words; one word in quotation marks is as often a title or irony as something said."""

MOST_QUOTED = 200
"""Quoted spans that are looked for, each in the whole source."""


class Quotes(LexicalCheck):
    """Votes 0 where words in quotation marks do not stand in the source in that order."""

    name: ClassVar[str] = "quotes"
    look: ClassVar[str] = "quoted spans of two words or more that the source does not hold word for word"
    silent: ClassVar[str] = "the claim quotes nothing"

    def _judge(self, pair: Pair) -> Judgment:
        found: list[str] = []
        missing: list[str] = []
        spans = list(QUOTED.finditer(pair.claim.text))
        if len(spans) > MOST_QUOTED:
            return cut_off(f"The claim has {len(spans):,} quoted spans; at most {MOST_QUOTED} are looked for.")
        for match in spans:
            words = [stem(word) for word in WORD.findall((match[1] or match[2]).lower())]
            if len(words) >= SHORTEST:
                quoted = _apart(f" {' '.join(words)} ") in pair.source.derived("apart", lambda text: _apart(text.line))
                (found if quoted else missing).append(match[0].strip())
        return found_or_missing("quotations", found, missing)


def _apart(line: str) -> str:
    """Return a line of stems with "didn't" as two words."""
    return line.replace("n't ", " not ")
