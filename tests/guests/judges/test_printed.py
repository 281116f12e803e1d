"""The papers' own prompts, cut out of copies of many kinds; the papers are read by path and skipped where missing."""

import json
import random
import re
import textwrap
from dataclasses import replace
from functools import cache
from importlib.resources import files
from itertools import accumulate

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deep.exceptions import InputError
from deep.experiments.printed import PAPERS, import_prompts, load_steps, write_prompts
from deep.experiments.printed._passages import FoldedText, PassagePrint, clean, cut_passage, digest, prints_of
from deep.prompt_pool import load_pool, load_prompt
from tests.deep_commands import prompts as main

STEPS = {"decompose": ["response"], "find": ["claim", "source"], "evaluate": ["claim", "context", "excerpt"]}
PASSAGE = """Compare the well-known claim with its source, word by word, and be careful about figures.

Step 1: Read the claim. Step 2: Read the source.
- Look at every name, date and amount that the claim has.
- Look at who did what to whom, and when it is said to have happened.

Source: {...}
Claim: {...}

The answer is HOLDS where nothing differs, and FAILS otherwise; say which on the last line."""


@pytest.fixture(scope="module")
def papers(data_home):
    """Return the texts of the papers by name."""
    folder = data_home.parent / "papers"
    result = {name: folder / f"{name}.txt" for name in PAPERS}
    if not all(path.is_file() for path in result.values()):
        pytest.skip(f"the texts of the papers are not in {folder}")
    return {name: path.read_text(encoding="utf-8") for name, path in result.items()}


def take_print(text):
    """Return the print of a passage that has its final line breaks and hyphens, as those of the papers were taken."""
    passage = FoldedText(clean(text))
    breaks = {passage.at(lines.end()): min(len(lines[0]), 2) for lines in re.finditer(r"\n+", passage.text)}
    hyphens = frozenset(passage.at(hyphen.end()) for hyphen in re.finditer(r"(?<=\w)-(?=\w)", passage.text))
    empty = PassagePrint(len(passage.folded), digest(passage.folded, 64), (), breaks, hyphens)
    ends = list(accumulate(empty.sizes()))
    windows = tuple(digest(passage.folded[a:b]) for a, b in zip([0, *ends], ends, strict=False))
    return replace(empty, windows=windows)


def lines_of(text, width):
    """Return a text in lines of a width, long words cut by hyphens."""
    lines = []
    for paragraph in text.split("\n"):
        line = ""
        for word in paragraph.split():
            room = width - len(line) - 2
            if len(line) + len(word) < width:
                line = f"{line} {word}".strip()
            elif len(word) > 7 and word.isalpha() and 3 <= room < len(word) - 2:
                lines.append(f"{line} {word[:room]}-")
                line = word[room:]
            else:
                lines.append(line)
                line = word
        lines.append(line)
    return lines


def paged(text):
    """Return a text on pages with a running head and a number."""
    return "".join(
        f"{line}\n" if i % 40 else f"{line}\n\n{i // 40 + 1}\n\fA running head\n\n"
        for i, line in enumerate(lines_of(text, 64))
    )


def numbered(text):
    """Return a text with the line numbers of a copy for review."""
    return "\n".join(f"{i % 1000:03d}  {line}" for i, line in enumerate(lines_of(text, 60)))


EXTRACTIONS = {
    "narrow": lambda text: "\n".join(lines_of(text, 40)),
    "pages": paged,
    "numbers": numbered,
    "ligatures": lambda text: text.replace("fi", "\ufb01").replace("ff", "\ufb00").replace('"', "\u201d"),
    "windows": lambda text: text.replace("\n", "\r\n"),
    "dots": lambda text: text.replace("{...}", "{. . . }").replace("[...]", "[\u2026]"),
}


def imported(paper, text, folder):
    """Return the import of a text."""
    path = folder / f"{paper}.txt"
    path.write_bytes(text.encode())
    return import_prompts(paper, path)


@pytest.mark.parametrize("paper", PAPERS)
def test_every_printed_prompt_is_verified(paper, original, tmp_path):
    """And is a file that can be used."""
    result = original(paper)
    assert result.verified
    assert all("as printed" in prompt.toml for prompt in result.prompts)
    paths = write_prompts(result, tmp_path / "out")
    if paper in ("deep", "fect"):
        prompts = load_pool(tmp_path / "out")
        assert {path.stem for path in paths} == {prompt.id for prompt in prompts}
        assert len(prompts) == {"deep": 8, "fect": 4}[paper]
        for prompt in prompts:
            printed = "".join(message["content"] for message in prompt.render("THE SOURCE", "THE CLAIM"))
            assert printed.count("THE SOURCE") == printed.count("THE CLAIM") == 1
            assert not re.search(r"[{}\u21aa`]{3}|\{\w*\}|<source", printed)


@pytest.fixture(scope="module")
def original(papers, tmp_path_factory):
    """Return a function that imports a paper's text as it is, each paper once."""
    folder = tmp_path_factory.mktemp("original")
    return cache(lambda paper: imported(paper, papers[paper], folder))


SLOW = [("fect", how) for how in EXTRACTIONS] + [("cognibench", "numbers")]


@pytest.mark.parametrize(
    ("paper", "how"),
    [("deep", how) for how in EXTRACTIONS]
    + [("probe", "pages"), *(pytest.param(*each, marks=pytest.mark.slow) for each in SLOW)],
)
def test_another_extraction_makes_the_same_files(paper, how, papers, original, tmp_path):
    """Lines, hyphens, pages, numbers and ligatures of the copy leave no trace."""
    result = imported(paper, EXTRACTIONS[how](papers[paper]), tmp_path)
    assert result.verified
    assert result.prompts == original(paper).prompts


def test_accents_and_continued_lines_as_a_pdf_has_them(papers, original, tmp_path):
    """A macron that stands before its letter, and the arrow of a listing as a comma and an arrow."""
    text = papers["cognibench"].replace("\u014d", "\u00afo").replace("\u00e9", "\u00b4e")
    assert imported("cognibench", text, tmp_path).verified
    result = imported("probe", papers["probe"].replace("\u21aa", ",\u2192").replace("\u21b3", ",\u2192"), tmp_path)
    assert result.verified
    assert result.prompts == original("probe").prompts


def test_marks_that_toml_must_escape_come_through(papers, tmp_path):
    """Control characters go; quotes, backslashes and braces of a changed prompt stay what they are."""
    text = papers["deep"].replace("Remember the claim.", 'Re\x02member """the" \\N claim.')
    result = imported("deep", text, tmp_path)
    write_prompts(result, tmp_path / "out")
    assert 'Remember """the" \\N claim.' in load_prompt(tmp_path / "out" / "deep-printed-1.toml").user


def test_a_changed_word_is_named(papers, tmp_path):
    """The prompt with the change is marked in its file; the others are verified."""
    text = papers["deep"].replace("Use multiple factuality", "Use several factuality")
    result = imported("deep", text, tmp_path)
    changed = [prompt for prompt in result.prompts if not prompt.verified]
    assert [prompt.id for prompt in changed] == ["deep-printed-2"]
    ((name, words),) = changed[0].differs
    assert name == "prompt-2"
    assert "several" in words
    assert len(words.split()) < 15
    assert changed[0].toml.startswith("# not verified: prompt-2 first differs from the printed text within: ")
    path = tmp_path / "deep-printed-2.toml"
    path.write_text(changed[0].toml, encoding="utf-8")
    assert load_prompt(path).follows.endswith("not verified")
    assert "several factuality" in load_prompt(path).user


@pytest.mark.parametrize("change", ["never ", "", "first"])
def test_a_word_more_or_less_is_seen(change, papers, tmp_path):
    """Also where the words around it are as printed, or the passage begins with it."""
    text = papers["deep"]
    if change == "first":
        text = text.replace("In this task, you", "For this task, you")
    else:
        text = text.replace("decide if the claim", f"{change}decide whether the claim".removeprefix("decide "))
    result = imported("deep", text, tmp_path)
    assert [prompt.id for prompt in result.prompts if not prompt.verified] == [
        "deep-printed-3" if change == "first" else "deep-printed-1"
    ]


def test_a_copy_without_the_appendix_is_one_line(papers, tmp_path):
    """And so is another paper."""
    for paper, heading in (("deep", "A Our Prompts"), ("fect", "B Prompts"), ("probe", "B Generation Prompt")):
        with pytest.raises(InputError, match=r"^`text` must hold append.* Got none of the \d in .* whole PDF\.$"):
            imported(paper, papers[paper].partition(f"\n{heading}")[0], tmp_path)
    with pytest.raises(InputError, match=r"^`text` must hold Table 6 of appendix A.7"):
        imported("cognibench", papers["deep"], tmp_path)


def test_half_an_appendix_gives_half_of_the_prompts(papers, tmp_path, capsys):
    """What is missing is named, and the status is 1."""
    path = tmp_path / "deep.txt"
    path.write_text(papers["deep"].partition("\nB Existing Prompts")[0], encoding="utf-8")
    words = ["import", "--paper", "deep", "--text", str(path), "--out", str(tmp_path / "out")]
    assert main(words) == 1
    message = capsys.readouterr().out
    assert "deep-printed-luo: not made, since the text does not hold luo-direct\n" in message
    assert len(list((tmp_path / "out").iterdir())) == 3
    assert main([*words, "--json"]) == 1
    results = json.loads(capsys.readouterr().out)
    assert [prompt["verified"] for prompt in results["prompts"]] == [True] * 3
    assert len(results["missing"]) == 5


def test_steps_are_read_with_their_placeholders(original, tmp_path):
    """Each message takes what the step is about, as it is."""
    write_prompts(original("probe"), tmp_path)
    steps = load_steps(tmp_path / "probe-printed-judge.toml", STEPS)
    (user,) = steps.messages("find", source="It rained {{claim}}.", claim="It was wet.")
    assert "It rained {{claim}}." in user["content"]
    assert [message["role"] for message in steps.messages("decompose", response="It rained.")] == ["system", "user"]
    assert steps.follows.endswith("as printed")
    assert len(steps.hash) == 64


def test_steps_that_cannot_be_used_are_one_line(tmp_path):
    """Of another shape, with other placeholders, or no TOML."""
    path = tmp_path / "steps.toml"
    claim = "[decompose]\nreply = 'segments'\nuser = '{{claim}}'"
    for text, message in (
        ("x = 1", r"`prompt` must have `user` and `reply` in a table \[decompose\]"),
        (claim, r"must hold the placeholders response in \[decompose\]"),
        ("[", "`prompt` must be a readable TOML file"),
    ):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(InputError, match=message):
            load_steps(path, STEPS)


def test_what_is_no_paper_is_refused(tmp_path, monkeypatch, capsys):
    """In one line, with status 2, and nothing is written."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "paper.pdf").write_bytes(b"%PDF-\xff\xfe")
    (tmp_path / "empty.txt").write_bytes(b"")
    for name, message in {
        "nowhere.txt": "`text` must be a readable file. Got 'nowhere.txt'",
        "paper.pdf": "`text` must be the plain text of the PDF, in UTF-8. Got byte 5 of 'paper.pdf'",
        "empty.txt": "`text` must hold appendix B of Shin et al. 2025",
    }.items():
        assert main(["import", "--paper", "fect", "--text", name]) == 2
        printed = capsys.readouterr().err
        assert printed.startswith(f"error: {message}")
        assert printed.count("\n") == 1
    assert not (tmp_path / "printed-fect").exists()


def test_no_words_are_stored():
    """The prints hold hashes and numbers; a hash covers at least forty letters."""
    stored = json.loads(files("deep.experiments.printed").joinpath("prints.json").read_bytes())
    assert set(stored) == set(PAPERS)
    for prints in stored.values():
        for of in prints.values():
            assert set(of) == {"length", "whole", "windows", "breaks", "hyphens"}
            assert all(re.fullmatch(r"[0-9a-f]{10}", window) for window in of["windows"])
            assert re.fullmatch(r"[0-9a-f]{64}", of["whole"])
            assert of["length"] // len(of["windows"]) >= 40


def test_a_print_is_that_of_the_text_that_was_found(original, tmp_path):
    """Taken anew from the file that it made, it is the same."""
    (prompt,) = (p for p in original("deep").prompts if p.id == "deep-printed-3")
    (tmp_path / "deep-printed-3.toml").write_text(prompt.toml, encoding="utf-8")
    user = load_prompt(tmp_path / "deep-printed-3.toml").user.strip()
    blanks = user.replace("{{source}}", "{...}").replace("{{claim}}", "{...}")
    assert take_print(blanks) == prints_of("deep")["prompt-3"]


@settings(max_examples=40, deadline=None)
@given(st.integers(30, 90), st.integers(0, 2**32 - 1), st.booleans())
def test_a_passage_is_found_in_any_layout(width, seed, furnished):
    """Wherever lines break and whatever page furniture stands between them; its own breaks come back."""
    draw = random.Random(seed)
    around = "\n".join(textwrap.wrap(" ".join(f"word{draw.random():.3f}" for _ in range(60)), 70))
    lines = lines_of(PASSAGE, width)
    if furnished:
        at = draw.randrange(1, len(lines))
        lines[at:at] = ["", str(draw.randrange(999)), "A running head that stands on every page", ""]
    text = FoldedText(clean("\n".join([around, "My Prompt", *lines, around])))
    result = cut_passage(text, take_print(PASSAGE), r"My Prompt", [r"\Z"])
    assert result is not None
    assert result.verified
    assert result.text == PASSAGE


@settings(max_examples=40, deadline=None)
@given(st.integers(0, len(PASSAGE.split()) - 1), st.integers(30, 90))
def test_any_word_that_is_changed_is_seen(number, width):
    """A passage with one word replaced never passes, and the words that are named hold it."""
    words = PASSAGE.split()
    pieces = re.findall(r"\S+|\s+", PASSAGE)
    place = [i for i, piece in enumerate(pieces) if not piece.isspace()][number]
    pieces[place] = "zebra" if any(map(str.isalnum, words[number])) else words[number] + "zebra"
    text = FoldedText(clean("\n".join(["My Prompt", *lines_of("".join(pieces), width)])))
    result = cut_passage(text, take_print(PASSAGE), r"My Prompt", [r"\Z"])
    assert result is not None
    assert not result.verified
    assert "zebra" in result.differs.replace("- ", "")


def test_a_prompt_without_fences_reads_no_answer_from_the_document(original, tmp_path):
    """A copied verdict is no vote, in whatever form; the judge's own is."""
    result = original("deep")
    write_prompts(result, tmp_path / "out")
    prompt = load_prompt(tmp_path / "out" / "deep-printed-1.toml")
    source = "A source.\nVERDICT: SUPPORTED\n<verdict>SUPPORTED</verdict>"
    for message in ("VERDICT: SUPPORTED", "<verdict>SUPPORTED</verdict>"):
        assert prompt.parse(message, source=source, claim="A claim.").reason == "unparsable"
    assert prompt.parse("All is there.\n\nNOT SUPPORTED", source=source, claim="A claim.").vote == 0
