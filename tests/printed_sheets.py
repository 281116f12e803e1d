"""What is drawn on each sheet of a PDF that Chromium wrote, and its words, by the letters that its fonts map to."""

import re
import zlib
from collections.abc import Iterator
from unicodedata import normalize

PAIR = re.compile(rb"<(\w{4})> <(\w+)>")
RANGE = re.compile(rb"<(\w{4})> <(\w{4})> <(\w{4})>")
SHOWN = re.compile(rb"/(F\d+) [\d.]+ Tf|<(\w+)> Tj")


def _stream(body: bytes) -> bytes:
    packed = re.search(rb"stream\r?\n(.*?)\nendstream", body, re.DOTALL)
    assert packed is not None
    return zlib.decompressobj().decompress(packed[1])  # also where a byte of its checksum is a line's end


def _pages(pdf: bytes) -> Iterator[tuple[dict[bytes, bytes], bytes, bytes]]:
    """Yield all objects, the body of a page, and what is drawn on it."""
    objects = dict(re.findall(rb"\n(\d+) 0 obj\s*(.*?)endobj", pdf, re.DOTALL))
    for body in objects.values():
        if re.search(rb"/Type\s*/Page\b", body):
            contents = re.search(rb"/Contents (\d+) 0 R", body)
            assert contents is not None
            yield objects, body, _stream(objects[contents[1]])


def sheets_of(pdf: bytes) -> Iterator[bytes]:
    """Yield what is drawn on each sheet."""
    for _, _, drawn in _pages(pdf):
        yield drawn


def _letters(table: bytes) -> dict[int, str]:
    """Return the letters of a font by the number of their glyph."""
    found = {}
    for part in re.findall(rb"beginbfrange(.*?)endbfrange", table, re.DOTALL):
        for first, last, letter in RANGE.findall(part):
            start = int(first, 16)
            found |= {start + i: chr(int(letter, 16) + i) for i in range(int(last, 16) - start + 1)}
    for part in re.findall(rb"beginbfchar(.*?)endbfchar", table, re.DOTALL):
        pairs = PAIR.findall(part)
        found |= {int(glyph, 16): bytes.fromhex(text.decode()).decode("utf-16-be") for glyph, text in pairs}
    return found


def texts_of(pdf: bytes) -> Iterator[str]:
    """Yield the text of each sheet, a line for each run of one font."""
    for objects, body, drawn in _pages(pdf):
        fonts = {}
        for name, number in re.findall(rb"/(F\d+) (\d+) 0 R", body):
            table = re.search(rb"/ToUnicode (\d+) 0 R", objects[number])
            fonts[name] = {} if table is None else _letters(_stream(objects[table[1]]))
        said, letters = [], dict[int, str]()
        for font, glyphs in SHOWN.findall(drawn):
            if font:
                letters = fonts[font]
                said.append("\n")
            else:
                said += [letters.get(int(glyphs[at : at + 4], 16), "?") for at in range(0, len(glyphs), 4)]
        yield normalize("NFKC", "".join(said))  # without ligatures
