"""`deep.ask`: votes in Python by the engine of `deep ask`, in a running event loop too, along the documented way."""

import asyncio
import pydoc
import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import deep
from deep.asking import AskOptions, ask, run_in_loop
from deep.exceptions import InputError, StoppedError
from deep.features.lexical import LEXICAL
from deep.prompt_pool import PromptJudge, load_prompt
from deep.records import Example, VoteMatrix
from tests.asking.toy_judge import ToyJudge, answer
from tests.scripted_llm import Fault, ScriptedLLM

pytestmark = pytest.mark.usefixtures("own_key")

PAGE = Path(__file__).parents[2] / "docs" / "walks.md"

EXAMPLES = [
    Example("The cat sleeps.", "The cat sleeps.", "a", label=1, dataset="pets"),
    Example("The cat sleeps.", "The dog barks.", "b", label=0, dataset="pets"),
]


def script(asked):
    """Answer the toy judge truthfully, and a prompt by whether the text holds a dog."""
    if asked.user[:5] in ("SPLIT", "CHECK"):
        return answer(asked)
    return f"VERDICT: {'NOT SUPPORTED' if 'dog' in asked.text else 'SUPPORTED'}"


def test_lexical_checks_need_no_llm(monkeypatch):
    """No key, no ledger, no file; the labels and datasets of the examples are in the matrix."""
    monkeypatch.delenv("OPENAI_API_KEY")
    votes = ask(EXAMPLES, "lexical")
    checks = [check() for check in LEXICAL.values()]
    assert isinstance(votes, VoteMatrix)
    assert votes.voter_names == tuple(check.voter() for check in checks)
    assert votes.votes.tolist() == [[check.label(example).vote for check in checks] for example in EXAMPLES]
    assert (votes.labels.tolist(), votes.datasets.tolist()) == ([1, 0], ["pets", "pets"])
    assert votes.item_ids.tolist() == ["a", "b"]


def test_judges_of_every_kind_fill_one_matrix_once(tmp_path):
    """Names and objects mix; called again, nothing is asked; judges without an LLM come last."""
    judges = ["numbers", ToyJudge(), "deep-numbers", PromptJudge(load_prompt("deep-entities"))]
    with ScriptedLLM(script) as server:
        options = {"llm": "tiny", "ledger": str(tmp_path / "l.sqlite"), "base_url": server.url}
        votes = ask(EXAMPLES, judges, **options)
        count = server.count
        again = ask(EXAMPLES, judges, **options)
        assert server.count == count == 2 * 2 + 4
    names = [name.partition("@")[0] for name in votes.voter_names]
    assert names == ["deep-numbers", "deep-entities", "toy", "lexical-numbers"]
    assert votes.votes[:, :3].tolist() == [[1, 1, 1], [0, 0, 0]]
    assert np.array_equal(votes.votes, again.votes)


def test_a_notebook_has_a_loop_already(tmp_path):
    """Inside a running event loop the call waits for a loop of its own, and the progress is told."""
    seen = []

    async def cell(url):
        return ask(
            EXAMPLES,
            "deep-numbers",
            llm="tiny",
            ledger=str(tmp_path / "l.sqlite"),
            base_url=url,
            progress=lambda progress: seen.append(progress.tally.answered),
        )

    with ScriptedLLM(script) as server:
        votes = asyncio.run(cell(server.url))
    assert votes.votes.tolist() == [[1], [0]]
    assert seen[-1] == 2


def test_the_command_finds_the_same_votes_in_the_same_ledger(tmp_path, capsys):
    """`deep ask` on the ledger of `ask` asks nothing, and writes the same votes."""
    from deep.cli import main

    ledger, out = tmp_path / "l.sqlite", tmp_path / "votes.parquet"
    pd.DataFrame(
        [{"source": e.source, "claim": e.claim, "example_id": e.example_id, "dataset": e.dataset} for e in EXAMPLES]
    ).to_csv(tmp_path / "pets.csv", index=False)
    with ScriptedLLM(script) as server:
        votes = ask(EXAMPLES, "deep-3", llm="tiny", ledger=str(ledger), base_url=server.url, samples=2)
        count = server.count
        words = ["--pool", "deep-3", "--samples", "2", "--llm", "tiny", "--base-url", server.url]
        words += ["--ledger", str(ledger), "--out", str(out)]
        assert main(["ask", str(tmp_path / "pets.csv"), *words]) == 0
        assert server.count == count
    capsys.readouterr()
    table = pd.read_parquet(out)[list(votes.voter_names)].fillna(-1).to_numpy(dtype=int)
    assert table.tolist() == votes.votes.tolist()


def test_the_budget_stops_it(tmp_path):
    """Nothing is returned; what was answered stays in the ledger."""
    prices = tmp_path / "prices.toml"
    prices.write_text("[tiny]\ninput = 1.0\noutput = 1.0\n")
    with ScriptedLLM(script) as server:
        options = AskOptions(
            ledger=str(tmp_path / "l.sqlite"), base_url=server.url, budget=0.0, prices=str(prices), backoff=0.01
        )
        with pytest.raises(StoppedError, match="the budget is reached"):
            ask(EXAMPLES, "deep-numbers", llm="tiny", options=options)
        assert server.count == 0


def test_no_answer_is_a_failure(tmp_path):
    """A request that fails for good gives no vote, and no error."""
    with ScriptedLLM(lambda _: Fault("filtered")) as server:
        votes = ask(EXAMPLES, "deep-numbers", llm="tiny", ledger=str(tmp_path / "l.sqlite"), base_url=server.url)
    assert votes.votes.tolist() == [[-1], [-1]]


@pytest.mark.parametrize(
    ("judges", "options", "message"),
    [
        (["deep-numbers"], {"ledger": "l"}, "`llm` must be given with judges that ask one. Got none"),
        (["deep-numbers"], {"llm": "tiny"}, "`ledger` must be given with judges that ask an LLM"),
        ([], {}, "`judges` must hold at least one judge. Got none"),
        (["no-such"], {}, "`judges` must be prompts, .* Got 'no-such'"),
        ([3], {}, "`judges` must hold names, judges and functions. Got 3"),
        (["numbers", "numbers"], {}, "must name each voter once"),
        (["deep-numbers"], {"llm": "tiny", "ledger": "l", "samples": 0}, "`samples` must be 1 or more. Got 0"),
    ],
)
def test_what_cannot_be_asked_is_refused(judges, options, message):
    """One line names the parameter, and nothing is written."""
    with pytest.raises(InputError, match=message):
        ask(EXAMPLES, judges, **options)


def test_its_help_fits_on_a_screen():
    """Fifty lines with the signature in one, which Python 3.13 prints over as many lines as there are parameters."""
    heading, _, signature, *rest = pydoc.plain(pydoc.render_doc(deep.ask)).splitlines()
    if not signature.endswith(")") and "->" not in signature:
        rest = rest[next(n for n, line in enumerate(rest) if line.startswith(")")) + 1 :]
    assert len([heading, "", signature, *rest]) <= 50


def test_examples_must_be_distinct():
    """An id comes once in a dataset."""
    with pytest.raises(InputError, match="`example_id` must be unique"):
        ask([EXAMPLES[0], EXAMPLES[0]], "numbers")


def test_a_question_passes_the_documented_functions(tmp_path):
    """From `ask` to `Client.send` there are at most seven, entered in the order of docs/walks.md."""
    listed = re.findall(r"^\d+\. `([\w.]+:[\w.]+)`", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert 2 < len(listed) <= 7
    assert (listed[0], listed[-1]) == ("deep.asking._ask:ask", "deep.llm._client:Client.send")
    entered = []

    def profile(frame, event, _):
        name = f"{frame.f_globals.get('__name__')}:{frame.f_code.co_qualname}"
        if event == "call" and name in listed and name not in entered:
            entered.append(name)

    async def watch(by):
        sys.setprofile(by)  # of the thread in which all is asked

    with ScriptedLLM(script) as server:
        before = sys.getprofile()
        sys.setprofile(profile)
        run_in_loop(watch(profile)).result()
        try:
            deep.ask(EXAMPLES[:1], "deep-numbers", llm="tiny", ledger=str(tmp_path / "l.sqlite"), base_url=server.url)
        finally:
            sys.setprofile(before)
            run_in_loop(watch(None)).result()
    assert entered == listed
