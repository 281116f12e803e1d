"""The check of pairs: what it answers is what `deep score` says, and what it refuses."""

import json
import re
import shutil
from dataclasses import replace
from types import SimpleNamespace
from urllib.request import urlopen

import pytest

import deep
from deep.asking import AskOptions, Scored
from deep.exceptions import InputError
from deep.integrations.serve import Checker, CheckOptions, create_app, serving
from deep.integrations.serve._checker import answers_of
from deep.model import SCORE_COLUMNS
from tests.deep_commands import score, serve
from tests.guests.serve.serving_case import PAIR, ROOT, ask, code_of

CLAIMS = ROOT / "examples" / "claims.csv"


@pytest.fixture(scope="module")
def address(lexical_file):
    """Return the address of a served model of lexical checks."""
    with serving(create_app(deep.load(lexical_file), CheckOptions(most_pairs=50))) as result:
        yield result


def test_it_says_what_score_says(address, lexical_file, tmp_path):
    """P, its interval, each vote, reason, rationale and piece of evidence, of a file and of the same pairs by HTTP."""
    out = tmp_path / "scores.jsonl"
    assert score([str(lexical_file), "--input", str(CLAIMS), "--out", str(out)]) == 0
    wanted = [json.loads(line) for line in out.read_text().splitlines()]
    examples = list(deep.read_examples(str(CLAIMS)))
    pairs = [{"source": e.source, "claim": e.claim, "id": e.example_id} for e in examples]
    outcome = [
        result for at in range(0, len(pairs), 50) for result in ask(address, body=pairs[at : at + 50])[1]["results"]
    ]
    assert [result["id"] for result in outcome] == [e.example_id for e in examples]
    for row, result in zip(wanted, outcome, strict=True):
        for name in ("p_consistent", "p_low", "p_high", "p_uniform", "p_uncalibrated", "n_votes"):
            assert result[name] == pytest.approx(row[name], abs=1e-12)
        message = [
            {name: judge[name] for name in ("judge", "vote", "reason", "rationale")} for judge in result["judges"]
        ]
        assert message == [{name: judge[name] for name in message[0]} for judge in row["judges"]]
        assert [len(judge["evidence"]) for judge in result["judges"]] == [len(j["evidence"]) for j in row["judges"]]


def test_evidence_has_its_place(address):
    """Its characters in the claim or the source."""
    result = ask(address, body=PAIR)[1]
    places = [place for judge in result["judges"] for place in judge["evidence"] if place["where"]]
    assert places
    assert all(PAIR[place["where"]][place["start"] : place["end"]].lower() == place["text"].lower() for place in places)
    assert result["cost"] == 0
    assert result["id"] is None


def test_a_judgment_is_told_whole():
    """Its numbers as they are, words of any kind, and its evidence with its place."""
    example = deep.Example("It rained.", "It rained.", "1")
    plain = deep.Judgment(1, score=1, rationale='\u00e4 "quoted"\ud800')
    judgments = {"a": plain, "b": replace(plain, score=1.0), "c": replace(plain, seconds=0.0, evidence=("It",))}
    columns = dict.fromkeys(SCORE_COLUMNS, 0.5) | {"n_votes": 1}
    plan = SimpleNamespace(offline=[SimpleNamespace(name=name) for name in "abc"], claim_first=frozenset())
    (answer,) = answers_of(plan, [Scored(example, judgments, columns)])
    assert answer.count(b'"score":1.0,') == 1
    told = json.loads(answer)
    assert told["cost"] == 0
    assert [judge["score"] for judge in told["judges"]] == [1, 1, 1]
    assert told["judges"][2] == {
        "judge": "c",
        "vote": 1,
        "reason": None,
        "score": 1,
        "rationale": plain.rationale,
        "evidence": [{"text": "It", "where": "source", "start": 0, "end": 2, "verdict": None, "about": None}],
        "model": None,
        "cost": 0.0,
        "seconds": 0.0,
        "samples": [],
    }


def test_one_pair_is_as_a_list_of_it(address):
    """The second time from memory, and the same."""
    one = ask(address, body=PAIR)[1]
    assert ask(address, body=[PAIR, {**PAIR, "id": "b"}])[1] == {"results": [one, {**one, "id": "b"}]}


def test_the_model_is_described(address, lexical_file):
    """Its judges, method, training datasets, prior, threshold and versions."""
    status, about, _ = ask(address, "/v1/model")
    model = deep.load(lexical_file)
    assert status == 200
    assert [judge["judge"] for judge in about["judges"]] == list(model.voter_names)
    assert about["method"] == model.method
    assert set(about["training_datasets"]) == set(model.cells.groups)
    assert about["prior"]["estimate"] == pytest.approx(model.prior.estimate)
    assert about["decision"]["threshold"] == pytest.approx(model.threshold())
    assert about["decision"]["rule"] == model.rule.sentence(model.threshold())
    assert about["versions"]["deep"] == deep.__version__
    assert ask(address, "/healthz")[1] == {"status": "ok"}


def test_counts_for_a_monitor(lexical_file):
    """Requests by status, scored pairs by decision, and the sum of P; an answer from memory is no new pair."""
    others = []
    options = CheckOptions(on_scored=others.append)
    with serving(create_app(deep.load(lexical_file), options)) as address:
        assert ask(address, "/readyz")[:2] == (200, {"ready": True})
        result = [ask(address, body=PAIR)[1] for _ in range(2)]
        assert ask(address, body={"source": "", "claim": ""})[0] == 422
        with urlopen(f"{address}/metrics", timeout=600) as reply:
            assert reply.headers["content-type"].startswith("text/plain")
            counts = dict(re.findall(r"^(deep_\S+) (\S+)$", reply.read().decode(), re.MULTILINE))
    assert counts.pop('deep_requests_total{status="200"}') == "2"
    assert counts.pop('deep_requests_total{status="422"}') == "1"
    assert counts.pop(f'deep_pairs_total{{decision="{result[0]["decision"]}"}}') == "1"
    assert float(counts.pop("deep_p_consistent_sum")) == pytest.approx(result[0]["p_consistent"])
    assert float(counts.pop("deep_request_seconds_sum")) > 0
    assert counts == {"deep_dollars_sum": "0.0"}
    assert len(others) == 1


def test_a_model_file_that_changes_is_told(lexical_file, tmp_path):
    """By every answer, for as long as it holds another model or none; the model that was read goes on."""
    path = tmp_path / "model.json"
    shutil.copy(lexical_file, path)
    stale = lambda: (  # noqa: E731
        ask(address, body=PAIR)[2]["Deep-Model-File"],
        ask(address, "/healthz")[1].get("model_file"),
        "has changed or is gone" in " ".join(ask(address, "/v1/model")[1]["notes"]),
    )
    with serving(create_app(deep.load(path), CheckOptions(model_file=path))) as address:
        before = ask(address, body=PAIR)[1]
        assert stale() == (None, None, False)
        for content in (path.read_bytes().replace(b'"threshold"', b'"thresholx"') + b" ", b"{}", b"[", None):
            path.unlink() if content is None else path.write_bytes(content.replace(b'"checksum": "', b'"checksum": "x'))
            assert stale() == ("changed", "changed", True)
        shutil.copy(lexical_file, path)  # another file of the same content
        assert stale() == (None, None, False)
        assert ask(address, body=PAIR)[1] == before


def test_what_is_no_pair_is_refused(address):
    """With a clear word, and the server goes on; so are unknown paths."""
    for body in (b"\xff\xfe", b"[" * 100_000, b'{"source": NaN}', b""):
        assert code_of(ask(address, body=body)) == (400, "bad_json")
    for body in (
        [],
        [PAIR] * 51,
        "text",
        3,
        [1],
        {"source": "a"},
        {"source": "a", "claim": 1},
        {"source": "a", "claim": None},
        {"source": " ", "claim": "b"},
        {"source": "a\0", "claim": "b"},
        {**PAIR, "id": 7},
        {**PAIR, "id": "x" * 201},
        {**PAIR, "label": 1},
    ):
        assert code_of(ask(address, body=body)) == (422, "invalid"), body
    assert code_of(ask(address)) == code_of(ask(address, "/v1/model", body={})) == (405, "method_not_allowed")
    assert code_of(ask(address, "/nothing")) == (404, "not_found")
    assert ask(address, body=PAIR)[0] == 200


def test_odd_texts_are_judged(address):
    """Lone surrogates, markup, other scripts, marks of direction; and a long source, which a thread takes."""
    odd = [b'{"source": "\\ud800 a", "claim": "b \\udc00"}', {"source": "<b>\u202e\u4f60\u597d", "claim": "<script>"}]
    assert [ask(address, body=body)[0] for body in odd] == [200, 200]
    assert ask(address, body={"source": "It rained. " * 5000, "claim": "It rained."})[0] == 200


def test_no_text_is_kept(lexical_file, llm_file, tmp_path):
    """Nothing is answered from memory; a model that asks an LLM is refused."""
    told = []
    options = CheckOptions(on_scored=told.append, no_text=True)
    with serving(create_app(deep.load(lexical_file), options)) as address:
        assert ask(address, body=PAIR)[1] == ask(address, body=PAIR)[1]
    assert len(told) == 2
    with pytest.raises(
        InputError, match=r"`no_text` must be given with judges that need no ledger.* Got '[^' ]+'\. Leave"
    ):
        Checker(deep.load(llm_file), CheckOptions(no_text=True, ask=AskOptions(ledger=str(tmp_path / "l.sqlite"))))


def test_options_are_checked(llm_file):
    """By name."""
    with pytest.raises(InputError, match=r"`most_pairs` must be 1 or more\. Got 0"):
        CheckOptions(most_pairs=0)
    with pytest.raises(InputError, match=r"`cache_bytes` must be 0 or more\. Got -1"):
        CheckOptions(cache_bytes=-1)
    with pytest.raises(InputError, match="`ask` must be given with a model whose judges ask an LLM"):
        Checker(deep.load(llm_file))


def test_the_command_refuses(lexical_file, capsys, monkeypatch):
    """In one line, and before anything is served: two LLMs, a port that is none, a library that is missing."""

    def served(*_):
        raise AssertionError("it serves")

    monkeypatch.setattr("deep.integrations.serve._run.run_server", served)
    assert serve([str(lexical_file), "--llm", "a", "b"]) == 2
    assert "`llm` must name one LLM" in capsys.readouterr().err
    assert serve([str(lexical_file), "--port", "-1"]) == 2
    assert "`port` must be from 0 to 65535" in capsys.readouterr().err
    monkeypatch.setitem(__import__("sys").modules, "starlette.requests", None)
    assert serve([str(lexical_file)]) == 2
    message = capsys.readouterr().err
    assert "pip install 'deep-judges[serve]'" in message
    assert message.count("\n") == 1


def test_a_belief_about_the_share_is_served(lexical_file, monkeypatch, capsys):
    """`--share` moves P as it does for `deep score`; with `--prior`, or as nonsense, it is refused."""
    served = []
    monkeypatch.setattr("deep.integrations.serve._run.run_server", lambda app, _: served.append(app) or 0)
    for more in ([], ["--share", "90-95%"]):
        assert serve([str(lexical_file), "--port", "0", *more]) == 0
    result = []
    for app in served:
        with serving(app) as address:
            result.append(ask(address, body=PAIR)[1]["p_consistent"])
    assert result[1] > result[0]
    capsys.readouterr()
    for more, message in (
        (["--share", "60-80%", "--prior", "0.7"], "`share` must be given without `prior`. Got '60-80%' and 0.7."),
        (["--share", "nix"], "`share` must be two shares, as in 60-80% or 0.6-0.8. Got 'nix'."),
    ):
        assert serve([str(lexical_file), *more]) == 2
        assert message in capsys.readouterr().err
    assert len(served) == 2
