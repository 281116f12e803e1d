"""Names that others chose: what is refused, and the names of files."""

import re
import tempfile
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deep._util.names import check_name, file_name
from deep.exceptions import InputError

WINDOWS_DEVICES = {"con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(10))}
NASTY = [
    "..",
    ".",
    "CON",
    "con.txt",
    "aux",
    "a/b",
    "a\\b",
    "A",
    "a",
    "x" * 300,
    "é",
    "e\u0301",
    " a",
    "a ",
    "a.",
    "-rf",
    "|",
    "",
]


@pytest.mark.parametrize(
    "name", ["strict/gpt-4", "|", "<script>alert(1)</script>", "日本語", "$x$", "a b", "é", "x" * 300]
)
def test_printable_names_are_kept(name):
    """Odd names stay themselves; writers escape them."""
    assert check_name(name, "voter") == name


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a\nb", "the control character U+000A"),
        ("a\rb", "the control character U+000D"),
        ("\x1b[31mred", "the control character U+001B"),
        ("a\x00", "the control character U+0000"),
        ("a\x85b", "the control character U+0085"),
        ("a\u2028b", "the line separator U+2028"),
        ("a\u2029b", "the paragraph separator U+2029"),
        ("a\u202eb", "the invisible character U+202E"),
        ("a\u200f", "the invisible character U+200F"),
        ("\ufefflabel", "the invisible character U+FEFF"),
        ("a\ud800", "half of a surrogate pair U+D800"),
        ("", "nothing"),
        ("  ", "nothing"),
    ],
)
def test_names_that_break_a_line_are_refused(name, kind):
    """The error names the character by its code point, and is itself printable text on one line."""
    with pytest.raises(InputError, match=re.escape(f"`voter` must be printable text on one line. Got {kind}")) as error:
        check_name(name, "voter", where=" at column 3 of 'votes.csv'")
    assert str(error.value).isprintable()
    assert " at column 3 of 'votes.csv'. Rename it." in str(error.value)


@given(st.text(max_size=40))
def test_what_is_kept_stands_on_one_line(name):
    """A name that passes has no line break and nothing that moves a cursor."""
    try:
        check_name(name, "voter")
    except InputError:
        return
    assert name.splitlines() == [name]
    assert not any(unicodedata.category(c) in {"Cc", "Cs"} for c in name)


@pytest.mark.parametrize("name", NASTY)
def test_file_names_are_safe_on_every_system(name):
    """A short plain name, no device, no dot at either end."""
    made = file_name(name)
    assert re.fullmatch(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,78}[A-Za-z0-9])?", made)
    assert made.split(".")[0].casefold() not in WINDOWS_DEVICES
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / made).write_text("x")
        assert [path.name for path in Path(folder).iterdir()] == [made]


def test_no_two_names_share_a_file():
    """Also where case or the form of accents does not count, and where a name imitates a made one."""
    names = [*NASTY, *(file_name(name) for name in NASTY), "a-b", "a b", "a_b", "A/B"]
    made = {file_name(name).casefold() for name in set(names)}
    assert len(made) == len(set(names))


@given(st.text(max_size=30), st.text(max_size=30))
def test_different_names_have_different_files(one, other):
    """Whatever the names are."""
    assert (file_name(one).casefold() == file_name(other).casefold()) == (one == other)


@pytest.mark.parametrize("name", ["aggrefact-xsum", "tofueval_mediasum", "v1.2", "a", "7"])
def test_plain_names_stay(name):
    """What earlier runs called their files they still are called."""
    assert file_name(name) == name
