"""Models to serve: one of lexical checks, one that asks an LLM."""

import json

import pytest

import deep
from deep.asking import AskOptions
from tests.fault_server import FaultServer
from tests.guests.serve.serving_case import ROOT

CLAIMS = ROOT / "examples" / "claims.csv"


@pytest.fixture(scope="session")
def lexical_file(tmp_path_factory):
    """Return the file of a model of lexical checks."""
    path = tmp_path_factory.mktemp("lexical") / "model.json"
    deep.fit(deep.ask(deep.read_examples(str(CLAIMS)), "lexical")).save(path)
    return path


@pytest.fixture(scope="session")
def llm_file(tmp_path_factory):
    """Return the file of a model of two prompts and a lexical check."""
    folder = tmp_path_factory.mktemp("asked")
    with FaultServer() as server:
        options = AskOptions(ledger=str(folder / "old.sqlite"), base_url=server.url)
        judges = ["deep-strict-steps", "deep-key-points", "numbers"]
        claims = deep.read_examples(str(CLAIMS))
        votes = deep.ask(claims, judges, llm="small", options=options, endpoint="local")
    deep.fit(votes).save(folder / "model.json")
    assert json.loads((folder / "model.json").read_text())["voters"]
    return folder / "model.json"
