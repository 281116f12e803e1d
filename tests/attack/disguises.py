"""Spellings in which a reader sees a text, though its characters are others, as documents or attackers have them."""

import re
import unicodedata

CYRILLIC = str.maketrans(
    "ABCEHIKMOPSTXYaceiopsxy",
    "\u0410\u0412\u0421\u0415\u041d\u0406\u041a\u041c\u041e\u0420\u0405\u0422\u0425\u0423\u0430\u0441\u0435\u0456\u043e\u0440\u0455\u0445\u0443",
)
GREEK = str.maketrans(
    "ABEHIKMNOPTXYZov",
    "\u0391\u0392\u0395\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a7\u03a5\u0396\u03bf\u03bd",
)
MIXED = str.maketrans("DRUVdruvlqw", "\u13a0\u13a1\u054d\u0474\u0501\u0433\u057d\u03bd\u04cf\u051b\u051d")
SMALL_CAPITALS = dict(
    zip(
        "ABCDEFGHIJKLMNOPRTUVWYZ",
        "\u1d00\u0299\u1d04\u1d05\u1d07\ua730\u0262\u029c\u026a\u1d0a\u1d0b\u029f\u1d0d\u0274\u1d0f\u1d18\u0280\u1d1b\u1d1c\u1d20\u1d21\u028f\u1d22",
        strict=True,
    )
)
LEET = str.maketrans("OoIiEeSs", "00113355")


def word(text, change):
    """Return a text with each word changed."""
    return re.sub(r"[A-Za-z]+", lambda match: change(match[0]), text)


def split(text, sign):
    """Return a text with a sign in the middle of each word of more than three letters."""
    return word(text, lambda w: w if len(w) < 4 else f"{w[: len(w) // 2]}{sign}{w[len(w) // 2 :]}")


def behind(text, sign):
    """Return a text with a sign behind each opening tag of an answer, or its first word or key."""
    return re.sub(r"([A-Za-z]+)", lambda match: match[1] + sign, text, count=1)


def each(text, sign):
    """Return a text with a sign behind each letter and digit."""
    return re.sub(r"(?<=[A-Za-z0-9])", sign, text)


def moved(text, base_upper, base_lower=None):
    """Return a text with its letters moved to another alphabet of Unicode."""
    lower = base_upper if base_lower is None else base_lower
    change = lambda c: chr((base_upper if c.isupper() else lower) + ord(c.lower()) - ord("a"))  # noqa: E731
    return "".join(change(c) if c.isascii() and c.isalpha() else c for c in text)


def named(text, name):
    """Return a text with each letter as the character whose name ends with it."""
    return "".join(unicodedata.lookup(f"{name} {c.upper()}") if c.isascii() and c.isalpha() else c for c in text)


def colon(text, sign):
    """Return a text with another sign for its colons."""
    return text.replace(":", sign)


def brackets(text, signs):
    """Return a text with other brackets."""
    return text.translate(str.maketrans("<>{}[]", signs))


def row(text):
    """Return a text as a row of a Markdown table."""
    return re.sub(r'^[{<]?"?([A-Za-z]+)"?[:>] *"?(.*?)"?(?:\}|</[^<]*)?$', r"| \1 | \2 |", text)


def column(text):
    """Return a text as a column of a Markdown table with another column before it."""
    return re.sub(r"^\| (\w+) \| (.*) \|$", r"| CLAIM | \1 |\n| --- | --- |\n| The mayor left. | \2 |", row(text))


DISGUISES = {
    # markup
    "HTML bold": lambda text: word(text, lambda w: f"<b>{w}</b>"),
    "HTML bold in the word": lambda text: split(text, "<b></b>"),
    "HTML span with a class": lambda text: word(text, lambda w: f'<span class="x y">{w}</span>'),
    "HTML heading and paragraph": lambda text: f"<h3>{text}</h3>",
    "HTML comment in the word": lambda text: split(text, "<!-- x -->"),
    "HTML element of one's own": lambda text: split(text, "<x-y></x-y>"),
    "HTML break": lambda text: text.replace(": ", ":<br/>"),
    "Markdown bold": lambda text: word(text, lambda w: f"**{w}**"),
    "Markdown bold in the word": lambda text: split(text, "**"),
    "Markdown link": lambda text: re.sub(r"([A-Za-z]+)", r"[\1](https://example.org/a_b?c=d)", text, count=1),
    "Markdown reference": lambda text: re.sub(r"([A-Za-z]+)", r"[\1][7]", text, count=1),
    "Markdown code": lambda text: word(text, lambda w: f"`{w}`"),
    "Markdown strike-through": lambda text: word(text, lambda w: f"~~{w}~~"),
    "Markdown heading": lambda text: f"## {text}",
    "Markdown quotation": lambda text: f"> {text}",
    "footnote": lambda text: behind(text, "[1]"),
    "named footnote": lambda text: behind(text, "[^2]"),
    "raised figure": lambda text: behind(text, "\u00b9"),
    "table row": row,
    "table column": column,
    "TeX": lambda text: behind(word(text, lambda w: f"\\textbf{{{w}}}"), "}\\footnote{p. 3}{"),
    "bulletin-board code": lambda text: word(text, lambda w: f"[b]{w}[/b]"),
    # lines
    "hyphenated line": lambda text: split(text, "-\n"),
    "hyphenated line, sign of its own": lambda text: split(text, "\u2010\n"),
    "soft hyphen": lambda text: split(text, "\u00ad"),
    "a letter a line": lambda text: each(text, "\n"),
    "spaced letters": lambda text: each(text, " "),
    "dotted letters": lambda text: each(text, "."),
    "hyphened letters": lambda text: each(text, "-"),
    "no-break spaces": lambda text: text.replace(" ", "\u00a0"),
    "right to left": lambda text: f"\u202e{text[::-1]}\u202c",
    "mirrored words": lambda text: word(text, lambda w: w[::-1]),
    # invisible signs
    "zero-width spaces": lambda text: each(text, "\u200b"),
    "grapheme joiners": lambda text: each(text, "\u034f"),
    "variation selectors": lambda text: each(text, "\ufe0f"),
    "Hangul fillers": lambda text: each(text, "\u3164"),
    "Braille blanks": lambda text: each(text, "\u2800"),
    "tag characters": lambda text: word(text, lambda w: "".join(chr(0xE0000 + ord(c)) for c in w)),
    # marks
    "struck letters": lambda text: each(text, "\u0336"),
    "underlined letters": lambda text: each(text, "\u0332"),
    "accents": lambda text: each(text, "\u0301\u0323"),
    "circles around": lambda text: each(text, "\u20dd"),
    # other letters
    "Cyrillic": lambda text: text.translate(CYRILLIC),
    "Greek": lambda text: text.translate(GREEK),
    "Cherokee, Armenian and others": lambda text: text.translate(MIXED),
    "small capitals": lambda text: "".join(SMALL_CAPITALS.get(c.upper(), c) for c in text),
    "full width": lambda text: "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in text),
    "mathematical bold": lambda text: moved(text, 0x1D400, 0x1D41A),
    "Fraktur": lambda text: moved(text, 0x1D56C, 0x1D586),
    "circled letters": lambda text: moved(text, 0x24B6, 0x24D0),
    "letters in black squares": lambda text: named(text, "NEGATIVE SQUARED LATIN CAPITAL LETTER"),
    "flags": lambda text: named(text, "REGIONAL INDICATOR SYMBOL LETTER"),
    "struck by nature": lambda text: text.translate(str.maketrans("DOLdol", "\u0110\u00d8\u0141\u0111\u00f8\u0142")),
    "figures for letters": lambda text: word(text, lambda w: w.translate(LEET) if len(w) > 3 else w),
    # signs
    "modifier colon": lambda text: colon(text, "\ua789"),
    "ratio": lambda text: colon(text, "\u2236"),
    "full-width colon": lambda text: colon(text, "\uff1a"),
    "dash": lambda text: colon(text, " \u2014"),
    "no sign": lambda text: colon(text, ""),
    "angle quotes": lambda text: brackets(text, "\u2039\u203a\u2774\u2775\u27e6\u27e7"),
    "heavy brackets": lambda text: brackets(text, "\u27e8\u27e9\u2983\u2984\u3010\u3011"),
    "no brackets": lambda text: text.translate(dict.fromkeys(map(ord, "{}[]"))),
    "curly quotes": lambda text: re.sub(r'"([^"]*)"', "\u201c\\1\u201d", text),
    "backquotes": lambda text: text.replace('"', "`"),
}
"""By name: what makes of a finished reply what a document holds."""
