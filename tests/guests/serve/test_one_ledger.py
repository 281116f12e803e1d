"""One SQLite ledger has one server: a second one is refused before it serves anything."""

import subprocess
import sys

import pytest

import deep
from deep.exceptions import InputError
from deep.integrations.serve import create_app, serving
from tests.fault_server import FaultServer
from tests.guests.serve.serving_case import PAIR, ROOT, ask, command
from tests.guests.serve.test_llm import options_for, words_for


def test_a_second_server_in_a_process(llm_file, tmp_path):
    """It raises in one line; the first goes on; once that has ended, another may begin."""
    model = deep.load(llm_file)
    with FaultServer() as server:
        with serving(create_app(model, options_for(server, tmp_path))) as address:
            with (
                pytest.raises(InputError, match=r"`ledger` must not be in use by another process\. Got '"),
                serving(create_app(model, options_for(server, tmp_path))),
            ):
                pass
            assert ask(address, body=PAIR)[0] == 200
        with serving(create_app(model, options_for(server, tmp_path))) as address:
            assert ask(address, body=PAIR)[0] == 200


def test_a_second_command(llm_file, tmp_path):
    """One line, exit status 2, and no address."""
    with FaultServer() as server:
        words = words_for(llm_file, server, tmp_path)
        with command(*words) as (_, address):
            second = [sys.executable, "-m", "deep", "serve", *map(str, words), "--port", "0"]
            ended = subprocess.run(second, capture_output=True, text=True, cwd=ROOT, timeout=300, check=False)
            assert ask(address, body=PAIR)[0] == 200
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.count("\n") == 1
    assert "`ledger` must not be in use by another process" in ended.stderr
