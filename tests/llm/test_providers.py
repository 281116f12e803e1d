"""Providers by name: where an LLM is asked, with which key, what it is not sent, and rows of one's own."""

import re

import pytest

import deep
from deep.asking import AskOptions, ask
from deep.cli import main
from deep.exceptions import InputError
from deep.llm import Provider
from deep.llm._providers import _rows
from tests.scripted_llm import ScriptedLLM

TRIED = {"llamacpp"}
"""The rows of deep's own table that somebody has asked with deep: `tried` is true of these, and of no other."""

EXAMPLES = [deep.Example("The cat sleeps.", "The cat sleeps.", "a"), deep.Example("It rained.", "It snowed.", "b")]


@pytest.fixture(autouse=True)
def _environment(monkeypatch):
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "AZURE_OPENAI_RESOURCE", "DEEP_PROVIDERS"):
        monkeypatch.delenv(name, raising=False)


def answer(asked):
    """Answer every prompt alike."""
    return "VERDICT: CORRECT"


@pytest.fixture
def rows(tmp_path, monkeypatch):
    """Return a function that writes rows of one's own."""

    def write(text):
        (tmp_path / "mine.toml").write_text(text)
        monkeypatch.setenv("DEEP_PROVIDERS", str(tmp_path / "mine.toml"))

    return write


@pytest.mark.parametrize("name", sorted(_rows()))
def test_each_row_can_be_used(name, monkeypatch):
    """It has an address, a page that says so, and says whether anybody has tried it: those of `TRIED`."""
    for variable in re.findall(r"\{(\w+)\}", _rows()[name]["base_url"]):
        monkeypatch.setenv(variable, "mine")
    provider = Provider.of(f"{name}/model")
    assert provider.address == provider.endpoint
    assert provider.source.startswith("https://")
    assert bool(provider.key) != provider.address.startswith("http://localhost")
    assert provider.tried is (name in TRIED)
    list(provider.quirks(["model"]))


def test_llms_of_several_providers_are_asked_in_one_run(tmp_path, rows, monkeypatch, capsys):
    """Each at its own address, with its own key, by its own model's name; what a provider lacks is not sent."""
    monkeypatch.setenv("FIRST_KEY", "sk-first-0123456789")
    with ScriptedLLM(answer) as one, ScriptedLLM(answer) as two:
        rows(
            f'[first]\nbase_url = "{one.url}"\nkey = "FIRST_KEY"\nlacks = ["schema", "logprobs"]\ntried = true\n'
            f'[second]\nbase_url = "{two.url}"\nsource = "https://second.example"\n'
        )
        options = {"llm": ["first/tiny", "second/org/tiny"], "ledger": str(tmp_path / "l.sqlite")}
        votes = ask(EXAMPLES, "diverse-terse", soft=True, **options)
        again = ask(EXAMPLES, "diverse-terse", soft=True, **options)
        assert (one.count, two.count) == (2, 2)
    assert [name.partition("/")[2] for name in votes.voter_names] == ["first/tiny", "second/org/tiny"]
    assert votes.votes.tolist() == again.votes.tolist() == [[1, 1], [1, 1]]
    assert {asked.model for asked in one.asked} == {"tiny"}
    assert {asked.model for asked in two.asked} == {"org/tiny"}
    assert not any({"response_format", "logprobs", "top_logprobs"} & asked.body.keys() for asked in one.asked)
    assert all(asked.body["logprobs"] for asked in two.asked)
    message = capsys.readouterr().err
    assert message.count("as documented (https://second.example); deep has never tried it") == 2
    assert "first at" not in message


def test_a_provider_without_a_key_is_sent_none(tmp_path, rows, monkeypatch):
    """Whatever variables the user has, also one named NO_KEY; a row with OpenAI's own address must name a key."""
    for name in ("OPENAI_API_KEY", "NO_KEY"):
        monkeypatch.setenv(name, "sk-of-the-user-0123456789")
    options = {"ledger": str(tmp_path / "l.sqlite")}
    with ScriptedLLM(answer) as server:
        rows(f'[mine]\nbase_url = "{server.url}"\n[theirs]\nbase_url = "https://api.openai.com/v1"\n')
        ask(EXAMPLES, "deep-numbers", llm="mine/tiny", **options)
        assert server.count > 0
        assert server.authorization == {"Bearer none"}
        with pytest.raises(InputError, match="`key` must hold the API key for theirs/"):
            ask(EXAMPLES, "deep-numbers", llm="theirs/tiny", **options)


def test_an_address_that_is_given_stands_before_names(tmp_path):
    """There the whole name is the model's, as vLLM has it."""
    with ScriptedLLM(answer) as server:
        ask(EXAMPLES, "deep-numbers", llm="mistral/tiny", base_url=server.url, ledger=str(tmp_path / "l.sqlite"))
        assert {asked.model for asked in server.asked} == {"mistral/tiny"}


def test_a_missing_key_is_one_line_before_anything_is_made(tmp_path, capsys, monkeypatch):
    """Of a provider, and of OpenAI, by the command and where a model is served."""
    claims = tmp_path / "claims.csv"
    claims.write_text("source,claim\nIt rained.,It was wet.\n")
    words = ["votes", str(claims), "--prompt", "deep-numbers", "--out", str(tmp_path / "votes.parquet"), "--llm"]
    for llm, key in (("anthropic/claude", "ANTHROPIC_API_KEY"), ("gpt-4o-mini", "OPENAI_API_KEY")):
        assert main([*words, llm]) == 2
        message = capsys.readouterr().err
        assert f"`{key}` must hold the API key for " in message
        assert message.count("\n") == 1
    with pytest.raises(InputError, match="`AZURE_OPENAI_RESOURCE` must be set for azure/"):
        ask(EXAMPLES, "deep-numbers", llm="azure/mine", ledger=str(tmp_path / "l.sqlite"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[mine]\nkey = 'K'", "`DEEP_PROVIDERS` must hold tables with base_url, .* Got 'mine'"),
        ("[mine]\nbase_url = 'http://h/v1'\nlacks = ['tools']", "lacks .of batches, logprobs, n, schema"),
        ("[mine]\nbase_url = 'http://h/v1'\nurl = 1", "Got 'mine'"),
        ("mine", "`DEEP_PROVIDERS` must be a readable TOML file"),
    ],
)
def test_rows_that_cannot_be_used_are_one_line(tmp_path, rows, text, message):
    """With the file's name."""
    rows(text)
    with pytest.raises(InputError, match=message):
        ask(EXAMPLES, "deep-numbers", llm="mine/x", ledger=str(tmp_path / "l.sqlite"))


def test_batches_take_an_address(tmp_path, monkeypatch):
    """The Batch API and batch files are of one endpoint."""
    monkeypatch.setenv("MISTRAL_API_KEY", "sk-0123456789")
    options = AskOptions(ledger=str(tmp_path / "l.sqlite"), batch=True)
    with pytest.raises(InputError, match=r"`batch` must be given with the address of the LLM. Got 'mistral/x'"):
        ask(EXAMPLES, "deep-numbers", llm="mistral/x", options=options)
