"""`deep prompts` as a user meets it."""

import io
import json
import re
import shutil
from pathlib import Path

import pytest

import deep.prompt_pool
from deep.prompt_pool import POOLS, list_prompts, load_prompt
from tests.deep_commands import prompts as main

FOLDER = Path(deep.prompt_pool.__file__).parent / "prompts"


@pytest.fixture
def texts(tmp_path):
    """Return the options that name a source and a claim."""
    (tmp_path / "source.txt").write_bytes("\ufeffIt rained all night.\r\nCafé.\r\n".encode())
    (tmp_path / "claim.txt").write_text("It rained.\n", encoding="utf-8")
    return ["--source", str(tmp_path / "source.txt"), "--claim", str(tmp_path / "claim.txt")]


def test_list(capsys):
    """Every prompt with its hash, and every pool with its size."""
    assert main(["list"]) == 0
    out = capsys.readouterr().out
    for name in list_prompts():
        assert f"\n{name} " in out
        assert load_prompt(name).hash[:8] in out
    assert "  deep-9                9 prompts\n" in out
    assert not any(line != line.rstrip() for line in out.splitlines())


def test_list_one_pool(capsys):
    """Only the prompts of the pool, and no list of pools."""
    assert main(["list", "--pool", "deep-3"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["ID", *POOLS["deep-3"]]


def test_list_as_json(capsys):
    """All there is to know, for a program."""
    assert main(["list", "--json", "--pool", "deep-9"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [prompt["id"] for prompt in listed["prompts"]] == list(POOLS["deep-9"])
    assert listed["pools"]["fect-xml"] == list(POOLS["fect-xml"])


def test_show(capsys):
    """What a prompt says, how its answer is read, and its whole hash."""
    prompt = load_prompt("deep-numbers")
    assert main(["show", "deep-numbers"]) == 0
    out = capsys.readouterr().out
    assert prompt.hash in out
    assert "SUPPORTED = 1, NOT SUPPORTED = 0, UNSUPPORTED = 0, CANNOT TELL = -1" in out
    assert f"[system]\n{prompt.system.strip()}\n\n[user]\n{prompt.user.strip()}\n" in out
    assert "scale" not in out
    assert main(["show", "five-stars"]) == 0
    shown = capsys.readouterr().out
    assert re.search(r"^scale +\[1, 5\]$", shown, re.MULTILINE)
    assert re.search(r"^threshold_reason +four stars or more: ", shown, re.MULTILINE)


def test_what_a_prompt_is_for(capsys):
    """`list` has a table of strictness, rates and errors, for the prompts that say so; `show` has them as fields."""
    assert main(["list", "--pool", "diverse"]) == 0
    out = capsys.readouterr().out.partition("designed for different errors")[2]
    for name in POOLS["diverse"]:
        prompt = load_prompt(name)
        row = (prompt.strictness, prompt.expected_tpr, prompt.expected_tnr, prompt.unshared_error)
        assert re.search(rf"^{name} +{' +'.join(map(re.escape, row))}$", out, re.MULTILINE)
    assert main(["list", "--pool", "deep-3"]) == 0
    assert "meant to err" not in capsys.readouterr().out
    assert main(["show", "diverse-clash"]) == 0
    out = capsys.readouterr().out
    for field, value in [("windows", "all"), ("strictness", "lenient"), ("expected_tpr", "higher")]:
        assert re.search(rf"^{field} +{value}$", out, re.MULTILINE)


def test_render_with_labeled_examples(capsys, texts, tmp_path):
    """As they would be sent; the file's name is its dataset."""
    old = tmp_path / "old.csv"
    old.write_text("source,claim,label\nIt hailed.,Ice fell.,1\nAnn won.,Bob won.,0\n", encoding="utf-8")
    assert main(["render", "yes-no", *texts, "--few-shot", str(old), "--shots", "2"]) == 0
    out = capsys.readouterr().out
    assert out.index("Ice fell.") < out.index("It rained all night.") > out.index("Bob won.")
    assert {"case 1", "case 2"} == set(re.findall(r"case \d", out))


def test_show_as_json(capsys):
    """The fields, the hash and the schema."""
    assert main(["show", "fect-3d-reasoned-json", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    prompt = load_prompt("fect-3d-reasoned-json")
    assert (shown["hash"], shown["schema"]) == (prompt.hash, prompt.schema())


def test_render(capsys, texts):
    """The messages as they would be sent, line ends and the last one aside."""
    assert main(["render", "yes-no", *texts]) == 0
    system, user = load_prompt("yes-no").render("It rained all night.\nCafé.", "It rained.")
    assert capsys.readouterr().out == f"[system]\n{system['content']}\n\n[user]\n{user['content']}\n"


def test_render_as_json(capsys, texts):
    """Messages, schema and parameters."""
    assert main(["render", str(FOLDER / "fect-basic-direct-json.toml"), *texts, "--json"]) == 0
    rendered = json.loads(capsys.readouterr().out)
    assert [message["role"] for message in rendered["messages"]] == ["system", "user"]
    assert rendered["schema"]["required"] == ["verdict"]
    assert rendered["parameters"]["max_tokens"] == 64


def test_render_from_stdin(capsys, monkeypatch, texts):
    """One of the two texts may come from standard input."""
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO("Snow fell — çà.".encode()), encoding="ascii"))
    assert main(["render", "yes-no", *texts[:2], "--claim", "-"]) == 0
    assert "\nSnow fell — çà.\n</claim-" in capsys.readouterr().out


def test_check(capsys, tmp_path):
    """Status 0 and the hashes for a sound folder, 1 and a line a problem for another."""
    shutil.copy(FOLDER / "yes-no.toml", tmp_path)
    assert main(["check", str(tmp_path)]) == 0
    assert capsys.readouterr().out == f"ID      HASH\nyes-no  {load_prompt('yes-no').hash[:8]}\n"
    shutil.copy(FOLDER / "yes-no.toml", tmp_path / "maybe.toml")
    assert main(["check", str(tmp_path)]) == 1
    problems = capsys.readouterr().out.splitlines()
    assert problems[0] == "maybe.toml: `id` must be the name of its file, 'maybe'. Got 'yes-no'."
    assert main(["check", str(tmp_path), "--json"]) == 1
    assert json.loads(capsys.readouterr().out) == {"problems": problems}


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["show", "deep-nine"], "`id` must be one of consistent-inconsistent, "),
        (
            ["render", "yes-no", "--source", "nowhere", "--claim", "x"],
            "`source` must be a readable file. Got 'nowhere'",
        ),
        (["render", "yes-no", "--source", "-", "--claim", "-"], "`claim` must be a file where `source` is -."),
        (["render", "yes-no", "--source", "latin.txt", "--claim", "-"], "`source` must be UTF-8. Got byte 3 of"),
    ],
)
def test_what_cannot_be_done(argv, message, capsys, tmp_path, monkeypatch):
    """One line on standard error that says what to change, and status 2."""
    monkeypatch.chdir(tmp_path)
    Path("latin.txt").write_bytes(b"caf\xe9")
    assert main(argv) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith(f"error: {message}")
    assert printed.err.count("\n") == 1
