"""The examples of docs/integrations/own-judges.md, each with the real package, against a server on loopback."""

import json
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.scripted_llm import ScriptedLLM

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "integrations" / "own-judges.md").read_text(encoding="utf-8")
PACKAGES = {"litellm": "litellm", "langchain": "langchain_openai", "dspy": "dspy", "deepeval": "deepeval"}
"""The package of each function ``by_NAME`` of the page but the one of transformers, which another test runs."""

ASK = """
import sys
import deep
claims = [deep.Example("It rained all day.", f"It rained {n} times.", str(n)) for n in range(3)]
print(deep.ask(claims, %s, ledger="own.sqlite").votes[:, 0].tolist())
"""


def answer(asked):
    """Answer in the form that each package asks for: yes but for the second claim."""
    says = "rained 1" not in asked.text
    if "[[ ##" in asked.text:
        return f"[[ ## reasoning ## ]]\nso\n\n[[ ## consistent ## ]]\n{says}\n\n[[ ## completed ## ]]\n"
    if "JSON" in asked.text:
        return json.dumps({"score": 9 if says else 1, "reason": "so"})
    return "Yes." if says else "No."


def run(folder, name, **environment):
    """Run the block of a function and ask it about three claims; return what is printed last."""
    (code,) = re.findall(rf"```python\n((?:(?!```).)*def by_{name}\(.*?)```", PAGE, re.DOTALL)
    (folder / "block.py").write_text(code + ASK % f"by_{name}", encoding="utf-8")
    quiet = {"DEEPEVAL_TELEMETRY_OPT_OUT": "1", "LITELLM_LOCAL_MODEL_COST_MAP": "True", "DSPY_CACHEDIR": str(folder)}
    done = subprocess.run(
        [sys.executable, "block.py"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), **quiet, **environment},
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1]


def test_the_first_block_runs_and_prints_what_it_says(capsys):
    """A function is a judge, without any package."""
    first = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)[0]
    exec(compile(first, "own-judges.md", "exec"), {"__name__": "page"})
    printed, says = capsys.readouterr().out.strip(), re.findall(r"print\(.*?\)  # (\[.*?\])", first)
    assert says == [printed]


@pytest.mark.parametrize("name", PACKAGES)
def test_an_example_runs(tmp_path, name):
    """Three claims are asked about, and the votes are those of the server; asked again, nothing is."""
    if find_spec(PACKAGES[name]) is None:
        pytest.skip(f"{PACKAGES[name]} is not installed")
    with ScriptedLLM(answer) as server:
        where = {"OPENAI_BASE_URL": server.url, "OPENAI_API_BASE": server.url, "OPENAI_API_KEY": "sk-0123456789"}
        assert run(tmp_path, name, **where) == "[1, 0, 1]"
        count = server.count
        assert count >= 3
        assert run(tmp_path, name, **where) == "[1, 0, 1]"
        assert server.count == count


def test_every_example_is_run():
    """And no other."""
    assert set(re.findall(r"def by_(\w+)\(", PAGE)) == {*PACKAGES, "pipeline"}
