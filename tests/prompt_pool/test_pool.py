"""The prompts that come with deep, and folders of one's own."""

import re
import shutil
from pathlib import Path

import pytest

import deep.prompt_pool
from deep.exceptions import InputError
from deep.prompt_pool import POOLS, PromptJudge, check_folder, list_prompts, load_pool, load_prompt

FOLDER = Path(deep.prompt_pool.__file__).parent / "prompts"
DOCS = Path(__file__).parents[2] / "docs"
GUIDE = DOCS / "prompt-files.md"
ALL = [load_prompt(name) for name in list_prompts()]


@pytest.fixture
def mine(tmp_path):
    """Return a folder of two sound prompts."""
    for name in ("deep-numbers", "yes-no"):
        shutil.copy(FOLDER / f"{name}.toml", tmp_path)
    return tmp_path


def test_all_prompts_are_sound_and_distinct():
    """Every file loads, none breaks a rule, and no two are the same prompt or the same column."""
    assert check_folder(FOLDER) == []
    assert (
        len({prompt.hash for prompt in ALL})
        == len({PromptJudge(prompt).voter("m") for prompt in ALL})
        == len(ALL)
        == 2 * (23 + 11 + 2)
    )


def test_pools_hold_what_their_names_say():
    """deep-9 is three strategies of the paper and six specialists; every prompt is in some pool."""
    assert len(POOLS["deep-9"]) == 9
    assert set(POOLS["deep-3"]) < set(POOLS["deep-9"])
    assert {name for names in POOLS.values() for name in names} == set(list_prompts())
    assert [prompt.id for prompt in load_pool("fect-json")] == list(POOLS["fect-json"])
    assert all(prompt.document_first for prompt in load_pool("deep-9-doc-first"))
    assert {prompt.output for prompt in load_pool("fect-xml")} == {"xml"}
    assert sum(prompt.kind == "score" for prompt in load_pool("literature")) == 2
    assert {prompt.reasons_first for prompt in load_pool("fect-json")} == {True, False}


def test_every_prompt_says_whom_it_follows():
    """A paper with its arXiv id and the strategy, or a design of our own."""
    for prompt in ALL:
        assert re.search(r"arXiv:\d{4}\.\d{5}.*\(.+\)|own design: ", prompt.follows)


def test_prompts_are_found_by_id_and_by_path(mine):
    """A path to a file is as good as an id, and the same content the same prompt."""
    assert load_prompt(mine / "yes-no.toml") == load_prompt("yes-no")
    assert load_prompt(str(mine / "yes-no.toml")).hash == load_prompt("yes-no").hash


def test_a_folder_is_a_pool(mine):
    """The prompts of a folder come in the order of their names, as a pool's do in its own."""
    assert [prompt.id for prompt in load_pool(mine)] == ["deep-numbers", "yes-no"]
    assert load_pool(str(mine)) == load_pool(mine)
    assert check_folder(str(mine)) == []


@pytest.mark.parametrize(
    ("load", "wrong", "message"),
    [
        (load_prompt, "deep-nine", "`id` must be one of consistent-inconsistent, deep-causal, .*Got 'deep-nine'"),
        (load_prompt, "nowhere/x.toml", "`path` must be a readable file. Got 'nowhere/x.toml'"),
        (load_pool, "deep-5", "`name_or_folder` must be one of deep-3, .*or a folder.*Got 'deep-5'"),
        (check_folder, "nowhere", "`path` must be a folder. Got 'nowhere'"),
    ],
)
def test_what_is_not_there(load, wrong, message):
    """The error lists what there is, or names the file."""
    with pytest.raises(InputError, match=message):
        load(wrong)


@pytest.mark.parametrize("load", [load_pool, check_folder])
def test_an_empty_folder_is_no_pool(load, tmp_path):
    """A folder without prompts is a mistake and no pool of none."""
    with pytest.raises(InputError, match=r"`path` must hold at least one .toml prompt. Got none"):
        load(tmp_path)


def test_check_lists_every_problem(mine):
    """All that is wrong in a folder at once, each line with its file; loading raises the first of its file."""
    (mine / "broken.toml").write_text("id = ", encoding="utf-8")
    (mine / "latin.toml").write_bytes(b'id = "\xe9"')
    text = (mine / "yes-no.toml").read_text(encoding="utf-8")
    (mine / "other.toml").write_text(text.replace('"YES" = 1', '"YES" = 5'), encoding="utf-8")
    (mine / "twin.toml").write_text(text.replace('id = "yes-no"', 'id = "twin"'), encoding="utf-8")
    (mine / "typo.toml").write_text(text.replace("follows =", "folows ="), encoding="utf-8")
    problems = check_folder(mine)
    for start in (
        "broken.toml: `path` must hold TOML",
        "latin.toml: `path` must hold UTF-8 text. Got byte 6",
        "other.toml: `labels` must map to 1, 0 or -1",
        "other.toml: `labels` must have a label for 1",
        "other.toml: `id` must be the name of its file, 'other'. Got 'yes-no'",
        "typo.toml: `folows` must be one of answer_first, coded, document_first, ",
        "typo.toml: `follows` must be given",
        "yes-no.toml: `user` must differ from prompt to prompt. Got the text of twin.toml",
    ):
        assert [problem for problem in problems if problem.startswith(start)], start
    with pytest.raises(InputError, match=r"`labels` must map to .* \(.*other.toml\)"):
        load_prompt(mine / "other.toml")
    with pytest.raises(InputError, match=r"`path` must hold TOML. Got '.*broken.toml': .*[^)]$"):
        load_prompt(mine / "broken.toml")


def test_line_ends_and_byte_order_mark_do_not_matter(mine):
    """A prompt saved by another editor is the same prompt."""
    file = mine / "deep-numbers.toml"
    text = file.read_text(encoding="utf-8")
    file.write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    assert load_prompt(file).hash == load_prompt("deep-numbers").hash


def test_the_guide_names_every_prompt_and_pool():
    """docs/prompts.md lists what there is; document-first variants go by the name of the other."""
    text = (DOCS / "prompts.md").read_text(encoding="utf-8")
    for name in [*list_prompts(), *POOLS]:
        assert f"`{name.removesuffix('-doc-first')}`" in text, name


def test_the_guides_prompt_is_sound(tmp_path):
    """The TOML file that docs/prompt-files.md shows can be used as it stands."""
    example = re.search(r"```toml\n(id = .*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)[1]
    (tmp_path / "terse.toml").write_text(example, encoding="utf-8")
    assert check_folder(tmp_path) == []
    assert load_pool(tmp_path)[0].parse("VERDICT: does not hold").vote == 0


def test_the_guides_examples_are_true():
    """What docs/prompt-files.md asserts in Python holds."""
    (block,) = re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    assert block.count("assert ") == 4
    exec(compile(block, GUIDE.name, "exec"), {})
