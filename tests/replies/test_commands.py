"""What is lost is told: before a run by `deep prompts check`, during one by `deep ask`, after one by `--reread`."""

import json

import pandas as pd
import pytest

from deep.asking._run import LossWatch
from deep.exceptions import InputError
from deep.prompt_pool import check_replies, load_prompt
from tests.deep_commands import prompts as main_prompts
from tests.deep_commands import votes as main
from tests.scripted_llm import ScriptedLLM

PROMPT = """id = "strict"
version = "1"
family = "mine"
follows = "own design"
reasons_first = true
user = "Compare {{source}} and {{claim}}. End with {{verdict}} and no contradiction, or a contradiction."
[verdict_words]
"no contradiction" = 1
"a contradiction" = 0
"""


@pytest.fixture
def prompt_file(tmp_path):
    """Return a prompt whose verdict is a sentence in words of its own."""
    path = tmp_path / "strict.toml"
    path.write_text(PROMPT)
    return path


def test_a_file_of_replies_is_read_by_a_prompt(prompt_file, tmp_path, capsys):
    """The counts of what is read, unread and contradictory, with an ending of each."""
    message = [
        "Therefore the summary holds no contradiction.",
        {"reply": "The summary contains a contradiction.", "finish_reason": "stop"},
        "It holds no contradiction.\\n\\nSo the summary contains a contradiction.".replace("\\n", "\n"),
        "Hard to say.",
    ]
    replies = tmp_path / "replies.jsonl"
    replies.write_text("".join(json.dumps(one) + "\n" for one in message))
    assert main_prompts(["check", str(prompt_file), "--replies", str(replies), "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["counts"] == {"1": 1, "0": 1, "contradictory": 1, "unparsable": 1}
    assert result["lost"] == 2
    assert main_prompts(["check", str(prompt_file), "--replies", str(replies)]) == 0
    printed = capsys.readouterr().out
    assert "2 of 4 replies are lost" in printed
    assert "Hard to say." in printed


@pytest.mark.parametrize(
    ("content", "message"),
    [("{", "must hold JSON lines"), ("3", "must hold texts, or objects"), ('{"reply": 1}', "must hold texts")],
)
def test_a_file_of_something_else_is_refused(content, message, tmp_path):
    """One line that says what the file must hold."""
    path = tmp_path / "replies.jsonl"
    path.write_text(content)
    with pytest.raises(InputError, match=message):
        check_replies(load_prompt("yes-no"), path)


def test_a_missing_file_is_refused(tmp_path):
    """One line, no traceback."""
    with pytest.raises(InputError, match="must be a readable file"):
        check_replies(load_prompt("yes-no"), tmp_path / "none.jsonl")


def test_losses_are_told_and_a_ledger_is_read_again(tmp_path, capsys):
    """From the 50th reply on a judge that loses more than 5 % is named with three endings; --reread asks nothing."""
    table = pd.DataFrame({"source": "It rained.", "claim": [f"It rained {i} times." for i in range(60)]})
    table.to_csv(tmp_path / "texts.csv", index=False)
    out = tmp_path / "votes.parquet"
    words = [str(tmp_path / "texts.csv"), "--prompt", "yes-no", "--constrain", "none", "--no-repair", "--llm", "tiny"]
    words += ["--out", str(out), "--max-failure-rate", "1"]
    with ScriptedLLM(lambda asked: "Who knows." if "3 times" in asked.user else "VERDICT: YES") as server:
        assert main([*words, "--base-url", server.url]) == 0
        told = capsys.readouterr().err
        assert "replies cannot be read. They end so:" in told
        assert told.count("  Who knows.") == 3
        assert "  `deep prompts show yes-no` prints the answer that it asks for." in told
        votes = pd.read_parquet(out)
        voter = votes.columns[-1]
        n_read, n_asked = int(votes[voter].notna().sum()), server.count
        assert n_read == 54
        votes.loc[votes[voter].eq(1) & (votes.index < 10), voter] = None
        votes.to_parquet(out)
        assert main([*words, "--base-url", server.url, "--reread"]) == 0
        assert server.count == n_asked
    printed = capsys.readouterr().out
    assert "9 votes of 60 items changed; nothing was asked" in printed
    assert f"{voter}: 9 none -> 1" in printed
    assert int(pd.read_parquet(out)[voter].notna().sum()) == n_read


@pytest.mark.parametrize(
    ("every", "n", "told_at"), [(1, 20, 10), (2, 40, None), (3, 49, None), (15, 60, 50), (21, 60, None)]
)
def test_a_model_that_cannot_answer_is_told_of_after_ten_replies(every, n, told_at):
    """Where more than half of them are lost; with fewer lost, from the fiftieth on."""
    told = []
    watch = LossWatch(told.append)
    for number in range(1, n + 1):
        watch.count("strict@1a2b/tiny", lost=number % every == 0, text="Hm.")
        assert bool(told) is (told_at is not None and number >= told_at)


def test_reread_needs_votes(tmp_path, capsys):
    """Without the votes of an earlier run there is nothing to compare."""
    pd.DataFrame({"source": ["It rained."], "claim": ["It did."]}).to_csv(tmp_path / "texts.csv", index=False)
    words = [str(tmp_path / "texts.csv"), "--prompt", "yes-no", "--llm", "tiny", "--out", str(tmp_path / "v.parquet")]
    assert main([*words, "--base-url", "http://127.0.0.1:9", "--reread"]) == 2
    assert "`out` must be the votes of an earlier run" in capsys.readouterr().err
