"""Numbers, units, dates, names and quotations of the claim that the source lacks, or has otherwise."""

import re
from bisect import bisect_left
from collections.abc import Iterator
from itertools import groupby
from typing import ClassVar, NamedTuple

from deep.features.lexical import _base
from deep.features.lexical._base import FUNCTION_WORDS, WORD, WORD_LISTS, LexicalCheck, Pair, TokenizedText, bag, stem
from deep.records import Judgment

# Words for numbers, each with its value.
SMALL: dict[str, int] = WORD_LISTS["below_twenty"]
TENS: dict[str, int] = WORD_LISTS["tens"]
ORDINAL_WORDS: dict[str, int] = WORD_LISTS["ordinals"]
MAGNITUDE_WORDS: dict[str, float] = WORD_LISTS["magnitudes"]
# Letters that stand right behind digits, where they may be a magnitude.
MAGNITUDE_SUFFIXES = {"k": 1e3, "m": 1e6, "mn": 1e6, "bn": 1e9, "b": 1e9, "tn": 1e12}

# Words behind which a number stands for all that round to it.
HEDGE_WORDS = bag(WORD_LISTS["hedges"])

# The signs of currencies, and the names of their units.
CURRENCIES = {"$": "dollar", "€": "euro", "£": "pound", "¥": "yen"}
ORDINAL_ENDINGS = frozenset(("st", "nd", "rd", "th"))
# Words for units, and what they are called here.
UNIT_BY_WORD = {word: unit for unit, words in WORD_LISTS["units"].items() for word in words.split()}

DIGITS_PATTERN = re.compile(r"([$€£¥]?)((?:\d{1,3}(?:,\d{2,3})*,\d{3}|\d+)(?:\.\d+)?)\s?(%|[a-z]{1,2})?")
# The number from which on no further magnitude word is multiplied in.
MAX_MULTIPLIED_NUMBER = 1e12
# The most digits of a number; more do not fit a float.
MAX_DIGITS = 300
NUMBER_WORDS = frozenset(SMALL) | frozenset(TENS) | frozenset(ORDINAL_WORDS) | {"dozen", "hundred", "thousand"}

# Words for dates and times, and what they are called here.
NAMES = {word: name for name, words in WORD_LISTS["dates"].items() for word in words.split()}

# Words at which a date may start, and below those at which a number or a date may.
DATE_WORDS = NAMES.keys() | {"quarter"}
MARKED = NUMBER_WORDS | DATE_WORDS


class Quantity(NamedTuple):
    """A number as a text gives it.

    Parameters
    ----------
    shown : str
        As written, in lower case.
    values : tuple of float
        What it may mean; two values where a letter behind it may be a magnitude.
    step : float
        What a difference of one in its last significant place is worth; 0 where it must be exact.
    unit : str
        ``percent``, a currency, or the word behind it in lower case; empty where there is none.
    start, end : int
        Positions of its first word, and of the word behind it.
    words : bool
        Whether it was spelled out.
    """

    shown: str
    values: tuple[float, ...]
    step: float
    unit: str
    start: int
    end: int
    words: bool

    @property
    def shown_with_unit(self) -> str:
        """As written, with the name of its unit where that is a word behind it."""
        glued = self.unit in ("", "th") or self.shown[0] in CURRENCIES or self.shown[-1] == "%"
        return self.shown if glued else f"{self.shown} {self.unit}"


def possible_number_starts(text: TokenizedText) -> list[int]:
    """Return where a number or a date may start: at digits, currency signs, and words for either."""
    # No letter sorts before "a" in lower case, and digits and $ do: the quickest test there is.
    if any(sign in text.text for sign in "€£¥"):
        return [i for i, word in enumerate(text.lower) if word < "a" or word in MARKED or word[0] in "€£¥"]
    return [i for i, word in enumerate(text.lower) if word < "a" or word in MARKED]


def quantities(text: TokenizedText) -> list[Quantity]:
    """Return the numbers of a text, in order."""
    lower = text.lower
    result: list[Quantity] = []
    end = 0
    for start in text.derived("marked", possible_number_starts):
        if start >= end and lower[start] not in DATE_WORDS:
            quantity = _quantity_in_words(text, start) if lower[start] in NUMBER_WORDS else _digit_quantity(text, start)
            if quantity is not None:
                result.append(quantity)
                end = quantity.end
    return result


def _digit_quantity(text: TokenizedText, start: int) -> Quantity | None:
    """Return the number in digits that starts at a word, with its unit; None where there is none."""
    word = text.lower[start]
    match = DIGITS_PATTERN.fullmatch(word)
    if match is None or len(word) > MAX_DIGITS:
        return None
    sign, digits, suffix = match.groups()
    value = float(digits.replace(",", ""))
    if suffix in MAGNITUDE_SUFFIXES:
        factor, end = MAGNITUDE_SUFFIXES[suffix], start + 1
        # "5m" may be metres or millions: either is a match.
        values: tuple[float, ...] = (value, value * factor)
    else:
        end, factor = start + 1, 1.0
        while end < len(text.lower) and text.lower[end] in MAGNITUDE_WORDS and factor < MAX_MULTIPLIED_NUMBER:
            factor *= MAGNITUDE_WORDS[text.lower[end]]
            end += 1
        values = (value * factor,)
    unit = "percent" if suffix == "%" else CURRENCIES.get(sign, "")
    return _make_quantity(text, values, _step_of_last_digit(digits, factor, text, start), unit, start, end, words=False)


def _step_of_last_digit(digits: str, factor: float, text: TokenizedText, start: int) -> float:
    """Return the worth of one in the last significant place; 0 where every place is significant."""
    whole, _, decimals = digits.replace(",", "").partition(".")
    if not decimals and (factor > 1.0 or whole[-1] == "0") and _is_hedged(text.lower, start):
        return float(factor * 10.0 ** (len(whole) - len(whole.rstrip("0"))))
    if not decimals and factor == 1.0:
        return 0.0
    # "1.8 billion" stands for all that round to it; "2 million", of one digit, is read as exact.
    significant = len((whole + decimals).lstrip("0"))
    return float(factor * 10.0 ** -len(decimals)) if significant > 1 else 0.0


def _is_hedged(lower: list[str], start: int) -> bool:
    return not HEDGE_WORDS.isdisjoint(lower[max(0, start - 3) : start])


def _quantity_in_words(text: TokenizedText, start: int) -> Quantity | None:
    """Return the number in words that starts at a word, with its unit; None where there is none."""
    lower = text.lower
    if lower[start] in ORDINAL_WORDS:
        return _make_quantity(text, (float(ORDINAL_WORDS[lower[start]]),), 0.0, "th", start, start + 1, words=True)
    total, current, end, last = 0.0, 0.0, start, MAX_MULTIPLIED_NUMBER
    while end < len(lower) and current < MAX_MULTIPLIED_NUMBER:
        word = lower[end]
        if word in SMALL or word in TENS:
            value = float(SMALL[word] if word in SMALL else TENS[word])
            # Twenty-five is a number; twenty thirty and two three are two.
            if last < 20 or (last < 100 and value >= 10):
                break
            current, last = current + value, value
        elif word in MAGNITUDE_WORDS:
            factor = MAGNITUDE_WORDS[word]
            current, last = max(current, 1.0) * factor, max(factor, 100.0)
            if factor > 100:
                total, current = total + current, 0.0
        elif word != "and" or last < 100 or end + 1 == len(lower) or lower[end + 1] not in SMALL.keys() | TENS.keys():
            break
        end += 1
    step = 10.0 ** (len(str(int(total + current))) - 1) if _is_hedged(lower, start) and total + current >= 10 else 0.0
    return _make_quantity(text, (total + current,), step, "", start, end, words=True)


def _make_quantity(
    text: TokenizedText, values: tuple[float, ...], step: float, unit: str, start: int, end: int, *, words: bool
) -> Quantity:
    """Return a quantity, with the unit that the word behind it names where it has none yet."""
    if not unit and end < len(text.lower):
        following = text.lower[end]
        if following in ORDINAL_ENDINGS:
            unit, end = "th", end + 1
        else:
            unit = UNIT_BY_WORD.get(following, "")
            if following == "per" and text.lower[end + 1 : end + 2] == ["cent"]:
                unit = "percent"
    return Quantity(" ".join(text.lower[start:end]), values, step, unit, start, end, words)


# The relative error that a multiplication of floats leaves.
RELATIVE_ROUNDING_ERROR = 1e-14

# Up to here, a number in words is as often a pronoun, or the writer's own count, as something that the source says.
MAX_PRONOUN_NUMBER = 2.0

LIST_MARK_PATTERN = re.compile(r"\s*\d{1,2}[.)]\s")


class Numbers(LexicalCheck):
    """Votes 0 where a number of the claim is not in the source, in whatever notation; 1 where all are.

    1,000, 1000, 1k and one thousand are one number, and 1.8 billion is also 1,823 million: a number with decimals or
    a magnitude, or behind a word like *about*, stands for all that round to it. Units are left to :class:`Units`,
    times of day to ``Dates``. "One", "two" and "second" in words are not looked for, nor is the number of a list item.

    It looks at numbers in digits or words that the source lacks, after rounding to the claim's precision. It
    abstains where the claim has no number but one, two and second in words.
    """

    name: ClassVar[str] = "numbers"

    def _judge(self, pair: Pair) -> Judgment:
        sought = list(_quantities_to_check(pair.claim))
        values = pair.source.derived("values", _values) if sought else []
        return _base.found_or_missing("numbers", [(quantity.shown, _is_given(quantity, values)) for quantity in sought])


class Units(LexicalCheck):
    """Votes 0 where the source has a number of the claim, but with other units or currencies only; 1 where with its.

    It looks at numbers that the source has with another unit, currency or per cent only. It abstains where the
    claim has no number with a unit, or the source has its numbers without any.
    """

    name: ClassVar[str] = "units"

    def _judge(self, pair: Pair) -> Judgment:
        units_of_claim = []
        for quantity in _quantities_to_check(pair.claim):
            if not quantity.unit:
                continue
            by_unit = pair.source.derived("values by unit", _values_by_unit)
            units = {unit for unit, values in by_unit.items() if _is_given(quantity, values)}
            if units - {""}:  # else the source lacks the number, or has it without any unit
                units_of_claim.append((quantity.shown_with_unit, quantity.unit in units))
        return _base.found_or_missing("units", units_of_claim)


def _quantities(text: TokenizedText) -> list[Quantity]:
    return text.derived("quantities", quantities)


def _values(text: TokenizedText) -> list[float]:
    return sorted(value for quantity in _quantities(text) for value in quantity.values)


def _values_by_unit(text: TokenizedText) -> dict[str, list[float]]:
    result: dict[str, list[float]] = {}
    for quantity in _quantities(text):
        result.setdefault(quantity.unit, []).extend(quantity.values)
    return {unit: sorted(values) for unit, values in result.items()}


def _quantities_to_check(claim: TokenizedText) -> Iterator[Quantity]:
    for quantity in _quantities(claim):
        if not (_is_label(quantity, claim) or (quantity.words and max(quantity.values) <= MAX_PRONOUN_NUMBER)):
            yield quantity


def _is_label(quantity: Quantity, claim: TokenizedText) -> bool:
    """Return whether a number counts nothing: that of a list item, or in a name like COVID-19."""
    if quantity.start == 0:
        return LIST_MARK_PATTERN.match(claim.text) is not None
    before, number = claim.words[quantity.start - 1 : quantity.start + 1]
    if not before[0].isupper():
        return False
    name = f"{before}-{number}"
    if claim.text.endswith(name, 0, claim.ends[quantity.start]):
        return True
    return name in (claim.derived("hyphened", _hyphenated_pieces) if len(name.split()) == 1 else claim.text)


def _hyphenated_pieces(text: TokenizedText) -> str:
    """Return the pieces between blanks that hold a hyphen, each once: a short text to look for many names in."""
    return "\n".join(dict.fromkeys(part for part in text.text.split() if "-" in part))


def _is_among(value: float, values: list[float], step: float) -> bool:
    # Half of the last digit that is given, as rounding has it.
    tolerance = max(step / 2, RELATIVE_ROUNDING_ERROR * max(1.0, value))
    at = bisect_left(values, value - tolerance)
    return at < len(values) and values[at] <= value + tolerance


def _is_given(quantity: Quantity, values: list[float]) -> bool:
    """Return whether a number, or what it stands for, is among sorted values."""
    return any(_is_among(value, values, quantity.step) for value in quantity.values)


# Months that are words too: sought only where a capital inside a sentence says that they are meant.
WORDS_TOO = frozenset(("march", "may"))

# Words that are no dates in a claim, and may be meant as weekdays in a source.
SHORT_DAYS: dict[str, str] = WORD_LISTS["short_days"]

YEAR_PATTERN = re.compile(r"(?:1[6-9]|20)\d\d")
CLOCK_PATTERN = re.compile(r"(\d{1,2})(?:[:.](\d\d))?")
WORDS_AFTER_HOURS = frozenset(("am", "pm", "a", "p", "o'clock"))


class Dates(LexicalCheck):
    """Votes 0 where a year, month, weekday, season, quarter or time of day of the claim is not in the source.

    It looks at years, quarters, months, weekdays, seasons and times of day that the source lacks. It abstains where
    the claim names none.
    """

    name: ClassVar[str] = "dates"

    def _judge(self, pair: Pair) -> Judgment:
        dates = [
            date for date in _dates(pair.claim) if date not in WORDS_TOO or date.capitalize() in _inside(pair.claim)
        ]
        text_dates = pair.source.derived("dates", lambda text: _dates(text).keys() | _looser(text)) if dates else set()
        return _base.found_or_missing("dates", [(date, date in text_dates) for date in dates])


def _dates(text: TokenizedText) -> dict[str, None]:
    """Return the dates of a text in a common form, in order."""
    result: dict[str, None] = {}
    lower = text.lower
    for i in text.derived("marked", possible_number_starts):
        word = lower[i]
        if word in NAMES:
            result[NAMES[word]] = None
        elif word[0].isdigit():
            result.update(dict.fromkeys(_dates_in_digits(lower, i)))
        elif word == "quarter" and i and lower[i - 1] in ORDINAL_WORDS.keys() | {"first"}:
            result[f"Q{ORDINAL_WORDS.get(lower[i - 1], 1)}"] = None
    return result


def _inside(text: TokenizedText) -> set[str]:
    """Return the words as written that do not start a sentence."""
    return {word for i, word in enumerate(text.words) if i not in text.starts}


def _looser(text: TokenizedText) -> set[str]:
    """Return the words of a source that may be meant as dates or times: "at 7", "Sat"."""
    numbers = (text.lower[i] for i in text.derived("marked", possible_number_starts))
    hours = {f"{int(word) % 12 or 12}:00" for word in numbers if word.isdecimal() and len(word) < 3}
    return hours | {SHORT_DAYS[word] for word in SHORT_DAYS.keys() & text.lower}


def _dates_in_digits(lower: list[str], i: int) -> list[str]:
    """Return the years and times of day in digits at a word, in a common form."""
    word = lower[i]
    before, after = lower[i - 1] if i else "", lower[i + 1] if i + 1 < len(lower) else ""
    if word in "1234" and "q" in (before, after):
        return [f"Q{word}"]
    clock = CLOCK_PATTERN.fullmatch(word)
    if clock and (":" in word or after in WORDS_AFTER_HOURS):
        return [f"{int(clock[1]) % 12 or 12}:{clock[2] or '00'}"]
    return [word] if YEAR_PATTERN.fullmatch(word) else []


# Where more of the content words behind a sentence's first word are capitalised, capitals tell nothing. It is a heading
# then, or a text in title case. Chosen; no measurement is known.
MAX_CAPITALISED_SHARE = 0.75


class Entities(LexicalCheck):
    """Votes 0 where a capitalised word or an acronym inside a sentence of the claim is not in the source.

    It looks at capitalised words and acronyms that the source lacks. It abstains where the claim has no capitals
    inside a sentence, or is a headline.
    """

    name: ClassVar[str] = "entities"

    def _judge(self, pair: Pair) -> Judgment:
        names = _names_with_acronyms(pair.claim).items()
        return _base.found_or_missing(
            "names", [(name, _is_known(name, acronyms, pair.source)) for name, acronyms in names]
        )


def _names_with_acronyms(text: TokenizedText) -> dict[str, frozenset[str]]:
    """Return the names in a text, a word each, and the acronyms of the run of capitalised words that each is in."""
    names: dict[str, frozenset[str]] = {}
    for start, end in zip(text.starts, text.starts[1:], strict=False):
        words = text.words[start:end]
        capital = [i for i, word in enumerate(words) if _is_name(word)]
        n_capital = sum(i > 0 for i in capital)
        n_content = sum(word.lower() not in FUNCTION_WORDS for word in words[1:]) if n_capital else 0
        if n_content > 2 and n_capital > MAX_CAPITALISED_SHARE * n_content:
            continue
        acronyms: dict[int, frozenset[str]] = {}
        for i in capital:
            # The first word of a sentence is capitalised anyway: it is a name where another follows without a comma.
            if i or _has_two_capitals(words[0]) or (capital[1:2] == [1] and f"{words[0]} {words[1]}" in text.text):
                acronyms = acronyms or _acronyms(words)
                names.setdefault(words[i], acronyms[i])
    return names


def _is_name(word: str) -> bool:
    return word[0].isupper() and len(word) > 1 and word.lower() not in FUNCTION_WORDS and word.lower() not in NAMES


def _has_two_capitals(word: str) -> bool:
    return sum(letter.isupper() for letter in word) > 1


def _acronyms(words: list[str]) -> dict[int, frozenset[str]]:
    """Return the acronyms of each run of capitalised words, with and without the little words, by its places."""
    result: dict[int, frozenset[str]] = {}
    may_join = [word[0].isupper() or word in FUNCTION_WORDS for word in words]
    for joins, places in groupby(range(len(words)), may_join.__getitem__):
        run = list(places)
        capitals = [place for place in run if words[place][0].isupper()] if joins else []
        if capitals:
            within = words[capitals[0] : capitals[-1] + 1]
            shortened = ("".join(word[0] for word in name) for name in (within, [words[place] for place in capitals]))
            acronyms = frozenset([letters.lower() for letters in shortened if len(letters) > 2])
            result.update(dict.fromkeys(run, acronyms))
    return result


def _is_known(name: str, acronyms: frozenset[str], source: TokenizedText) -> bool:
    s = stem(name.lower())
    if source.has(s) or (_has_two_capitals(name) and 2 < len(name) < 7 and s in source.initials):
        return True
    return not acronyms.isdisjoint(source.stem_set)


QUOTATION_PATTERN = re.compile("[\"“„«]([^\"“”„«»]{3,1000})[\"”“»]|``([^`']{3,1000})''")
# The fewest words of a quotation: one word in quotation marks is as often a title or irony as something said.
MIN_QUOTED_WORDS = 2

# The most quoted spans that are looked for, each in the whole source.
MAX_QUOTATIONS = 200


class Quotes(LexicalCheck):
    """Votes 0 where words in quotation marks do not stand in the source in that order.

    It looks at quoted spans of two words or more that the source does not hold word for word. It abstains where the
    claim quotes nothing.
    """

    name: ClassVar[str] = "quotes"

    def _judge(self, pair: Pair) -> Judgment:
        spans = list(QUOTATION_PATTERN.finditer(pair.claim.text))
        if len(spans) > MAX_QUOTATIONS:
            return _base.cut_off(f"The claim has {len(spans):,} quoted spans; at most {MAX_QUOTATIONS} are looked for.")
        quoted = []
        for match in spans:
            words = [stem(word) for word in WORD.findall((match[1] or match[2]).lower())]
            if len(words) >= MIN_QUOTED_WORDS:
                source = pair.source.derived("apart", lambda text: _split_contractions(text.line))
                quoted.append((match[0].strip(), _split_contractions(f" {' '.join(words)} ") in source))
        return _base.found_or_missing("quotations", quoted)


def _split_contractions(line: str) -> str:
    """Return a line of stems with "didn't" as two words."""
    return line.replace("n't ", " not ")
