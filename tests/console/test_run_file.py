"""The file of a run: what a command was asked, repeated by ``--config``."""

import re
import tomllib
from pathlib import Path

import pandas as pd
import pytest

import deep
from tests.deep_commands import fit, panel, score, votes
from tests.fault_server import FaultServer
from tests.llm.calls import KEY
from tests.llm.crash import write_examples

pytestmark = pytest.mark.usefixtures("own_key")

POOL = Path(deep.__file__).parent / "prompt_pool" / "prompts"
PROMPT = (
    (POOL / "consistent-inconsistent.toml")
    .read_text(encoding="utf-8")
    .replace('id = "consistent-inconsistent', 'id = "mine')
)

CLAIMS = Path(deep.__file__).parents[1] / "examples" / "claims.csv"
PRICES = "[tiny]\ninput = 1.0\noutput = 4.0\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return the folder with examples, a prompt and prices in which commands run."""
    work = tmp_path / "work"
    work.mkdir()
    write_examples(work / "news.csv", 8)
    (work / "mine.toml").write_text(PROMPT, encoding="utf-8")
    (work / "prices.toml").write_text(PRICES, encoding="utf-8")
    monkeypatch.chdir(work)
    return work


def ask(server, *more):
    """Ask a prompt of one's own, and one of deep's, and return the exit status."""
    prompts = ["--prompt", "mine.toml", "consistent-inconsistent"]
    words = ["news.csv", *prompts, "--llm", "tiny", "--base-url", server.url, "--prices", "prices.toml"]
    return votes([*words, "--backoff", "0.02", *more])


def run_of(path):
    """Return what a run wrote of itself."""
    return tomllib.loads(path.read_text(encoding="utf-8"))


def test_a_run_says_what_it_was_asked(folder):
    """Relative paths, the versions of judges, prices; no key, and nothing that was not asked."""
    with FaultServer() as server:
        assert ask(server, "--out", "votes.parquet", "--budget", "2") == 0
    result = run_of(folder / "votes.run.toml")
    assert result["command"] == "deep ask"
    assert result["options"] == {
        "examples": "./news.csv",
        "prompt": ["./mine.toml", "consistent-inconsistent"],
        "llm": ["tiny"],
        "base_url": server.url,
        "prices": "./prices.toml",
        "budget": 2.0,
        "backoff": 0.02,
        "out": "./votes.parquet",
    }
    assert [name.split("@")[0] for name in result["judges"]] == ["mine", "consistent-inconsistent"]
    assert result["prices"] == {"tiny": {"input": 1.0, "output": 4.0}}
    assert KEY not in (folder / "votes.run.toml").read_text()


def test_a_run_repeated_asks_nothing(folder, monkeypatch, capsys):
    """From another folder too: the same ledger, the same votes, the same file of the run, no call, not a word."""
    with FaultServer() as server:
        assert ask(server) == 0
        asked, before = (
            server.count,
            (pd.read_parquet(folder / "votes.parquet"), (folder / "votes.run.toml").read_bytes()),
        )
        (folder.parent / "other").mkdir()
        monkeypatch.chdir(folder.parent / "other")
        capsys.readouterr()
        assert votes(["--config", f"../{folder.name}/votes.run.toml"]) == 0
        assert server.count == asked == 16
    told = capsys.readouterr()
    assert "the run of" not in told.err
    assert "0 answers (16 more from earlier runs), 0 failures; 0 attempts" in told.out
    pd.testing.assert_frame_equal(pd.read_parquet(folder / "votes.parquet"), before[0])
    assert (folder / "votes.run.toml").read_bytes() == before[1]
    assert list((folder.parent / "other").iterdir()) == []


def test_another_version_of_a_prompt_is_named_and_asked(folder, capsys):
    """That judge alone; a price that has changed is named as well."""
    with FaultServer() as server:
        assert ask(server) == 0
        was, kept = sorted(run_of(folder / "votes.run.toml")["judges"], reverse=True)
        (folder / "mine.toml").write_text(PROMPT.replace("what is known", "all that is known"))
        (folder / "prices.toml").write_text(PRICES.replace("4.0", "5.0"))
        capsys.readouterr()
        assert votes(["--config", "votes.run.toml"]) == 0
        assert server.count == 16 + 8
    (now,) = {*run_of(folder / "votes.run.toml")["judges"]} - {kept}
    assert now != was
    told = capsys.readouterr().err.splitlines()
    assert f"Changed since the run of `config`: {was} is {now} now. Only its missing answers are asked." in told
    assert [line for line in told if "a million tokens of tiny cost" in line and "'output': 5.0" in line]
    assert not [line for line in told if "consistent-inconsistent" in line]


def test_options_given_go_before_those_of_the_file(folder, capsys):
    """Of several values too; judges that are gone or new are named; dry runs and failures write nothing."""
    assert votes(["news.csv", "--lexical", "numbers", "dates"]) == 0
    before = (folder / "votes.run.toml").read_bytes()
    capsys.readouterr()
    assert votes(["--config=votes.run.toml", "--lexical", "dates", "quotes", "--out", "more.parquet"]) == 0
    told = capsys.readouterr().err
    assert "lexical-quotes@" in told
    assert "is new" in told
    assert "is gone" in told
    assert run_of(folder / "more.run.toml")["options"]["lexical"] == ["dates", "quotes"]
    assert votes(["--config", "votes.run.toml", "--dry-run", "--lexical", "quotes"]) == 0
    assert "is new" in capsys.readouterr().err
    assert votes(["none.csv", "--lexical", "dates"]) == 2
    assert (folder / "votes.run.toml").read_bytes() == before


def test_every_command_that_writes_writes_it(folder):
    """And each can be repeated: fit, score and panel give the same bytes."""
    (folder / "out").mkdir()
    assert votes([str(CLAIMS), "--lexical", "numbers", "dates", "opposites"]) == 0
    assert fit(["votes.parquet", "--out", "out/model.json"]) == 0
    assert score(["out/model.json", "votes.parquet", "--out", "s.csv"]) == 0
    assert panel(["votes.parquet", "--no-worth", "--out", "card.json"]) == 0
    again = {fit: "out/model.run.toml", score: "s.run.toml", panel: "card.run.toml"}
    before = {name: (folder / name).read_bytes() for name in (*again.values(), "s.csv", "card.json")}
    for command, name in again.items():
        assert command(["--config", name]) == 0
    assert {name: (folder / name).read_bytes() for name in before} == before


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a = ", r"must be a run\.toml that deep wrote\. Got 'bad\.toml': "),
        ("schema_version = 2\n[options]\n", "of schema_version 1"),
        (
            'schema_version = 1\ncommand = "deep fit"\n[options]\n',
            "must be of `deep ask`. Got the options of `deep fit`",
        ),
        ('schema_version = 1\ncommand = "deep ask"\n[options]\nno_such = 1\n', "must name options of `deep ask`"),
        ('schema_version = 1\ncommand = "deep ask"\n[options]\nlexical = true\n', "`lexical` must be a value in"),
        ('schema_version = 1\ncommand = "deep ask"\njudges = 5\n[options]\n', "must list `judges` by name"),
        ('schema_version = 1\ncommand = "deep ask"\njudges = [5]\n[options]\n', "must list `judges` by name"),
        ('schema_version = 1\ncommand = "deep ask"\nprices = 5\n[options]\n', "and `prices` in a table"),
        (f"a = {'[' * 100_000}", "too many nested brackets"),
        ('schema_version = 1\ncommand = "deep ask"\n[options]\nbatch = "x"\n', "`batch` must be true or false in"),
    ],
)
def test_another_file_is_refused(folder, capsys, text, why):
    """In one line."""
    (folder / "bad.toml").write_text(text)
    assert votes(["--config", "bad.toml"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert re.search(why, line), line


def test_links_that_go_round_and_names_that_are_no_utf_8_are_no_traceback(folder, capsys):
    """The first is a ledger that cannot be opened; what the second names is found by no TOML, and said to be not."""
    (folder / "round").symlink_to("round")
    asked = ["news.csv", "--prompt", "mine.toml", "--llm", "tiny", "--base-url", "http://127.0.0.1:9/v1"]
    assert votes([*asked, "--ledger", "round"]) == 2
    assert "`ledger` " in capsys.readouterr().err
    assert votes(["news.csv", "--lexical", "dates", "--out", "\udcff.parquet"]) == 0
    capsys.readouterr()
    assert votes(["--config", "\udcff.run.toml"]) == 2
    assert "must be a run.toml that deep wrote" in capsys.readouterr().err


def test_what_others_keep_under_that_name_stays(folder, capsys):
    """Before anything is asked."""
    (folder / "votes.run.toml").write_text("mine = 1\n")
    assert votes(["news.csv", "--lexical", "dates"]) == 2
    assert "must be a run.toml that deep wrote" in capsys.readouterr().err
    assert (folder / "votes.run.toml").read_text() == "mine = 1\n"
    assert not (folder / "votes.parquet").exists()


def test_a_password_is_not_kept(folder, capsys):
    """And must be given again."""
    from deep.console._parser import _path_from_folder

    kept = _path_from_folder("postgresql+psycopg://me:S3CRET@host/db", folder)
    assert kept == "postgresql+psycopg://me:***@host/db"
    text = f'schema_version = 1\ncommand = "deep ask"\n[options]\nexamples = "./news.csv"\nledger = "{kept}"\n'
    (folder / "run.toml").write_text(text)
    assert votes(["--config", "run.toml"]) == 2
    assert "`ledger` must be given: its password is not kept." in capsys.readouterr().err


def test_a_folder_of_prompts_is_read_without_the_files_of_runs(folder):
    """That a run wrote beside its output among them; a folder that deep did not make has its file beside it."""
    prompts = folder / "prompts"
    prompts.mkdir()
    (folder / "mine.toml").rename(prompts / "mine.toml")
    with FaultServer() as server:
        words = [
            "news.csv",
            "--pool",
            "prompts",
            "--llm",
            "tiny",
            "--base-url",
            server.url,
            "--out",
            "prompts/v.parquet",
        ]
        assert votes([*words, "--out", "prompts/v.parquet"]) == 0
        assert (prompts / "v.run.toml").exists()
        assert votes(["--config", "prompts/v.run.toml"]) == 0
        assert server.count == 8


def test_a_path_under_the_locale_c_can_be_read_again():
    """There Python holds bytes that are no ASCII as halves of surrogate pairs, which TOML has not."""
    from deep.console._parser import _toml

    assert tomllib.loads("out = " + _toml("a \udcc3\udcbc/s.csv")) == {"out": "a ü/s.csv"}
