"""`deep.ask` below a cell of a real kernel, and its silence elsewhere."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from jupyter_client.manager import start_new_kernel

import deep
from deep.asking import AskProgress
from deep.asking._options import _Output, notebook_progress

ROOT = Path(deep.__file__).parents[1]

CELL = """\
import deep
examples = [deep.Example("Sales rose to 1,200 units.", f"Sales rose to 1,{n}00 units.", str(n)) for n in range(5)]
votes = deep.ask(examples, ["numbers"], progress=PROGRESS)
"""
CALLBACK = """
seen = []
deep.ask(examples, ["numbers"], progress=lambda at: seen.append((at.judged, at.n_examples)))
print(seen[-1])
"""


@pytest.fixture(scope="module", autouse=True)
def _ipython_home(tmp_path_factory):
    """Give IPython a folder of its own; it warns where it cannot write to HOME."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("IPYTHONDIR", str(tmp_path_factory.mktemp("ipython")))
        yield


@pytest.fixture(scope="module")
def kernel(_ipython_home):
    """Return the client of a kernel, which is stopped at the end."""
    manager, client = start_new_kernel(kernel_name="python3", env={**os.environ, "PYTHONPATH": str(ROOT)})
    yield client
    client.stop_channels()
    manager.shutdown_kernel(now=True)


def run(kernel, cell):
    """Return the messages of a cell by type, and its reply."""
    messages = []
    reply = kernel.execute_interactive(cell, output_hook=messages.append, timeout=120)
    return [(message["msg_type"], message["content"]) for message in messages], reply["content"]


def test_a_notebook_shows_one_output_that_changes(kernel):
    """The counts, below the cell, by the messages that every notebook draws; nothing on its streams."""
    messages, reply = run(kernel, CELL.replace("PROGRESS", "None"))
    assert reply["status"] == "ok", reply
    shown = [(kind, content) for kind, content in messages if kind in ("display_data", "update_display_data")]
    assert [kind for kind, _ in shown] == ["display_data", *["update_display_data"] * (len(shown) - 1)]
    assert len({content["transient"]["display_id"] for _, content in shown}) == 1
    assert shown[-1][1]["data"]["text/plain"].splitlines()[-1].startswith("judging 5/5 ")
    assert not [content for kind, content in messages if kind == "stream"]


def test_a_callback_takes_the_place_of_the_output(kernel):
    """Nothing is drawn that was not asked for."""
    messages, reply = run(kernel, CELL.replace("PROGRESS", "lambda at: None") + CALLBACK)
    assert reply["status"] == "ok", reply
    assert [content["text"] for kind, content in messages if kind == "stream"] == ["(5, 5)\n"]
    assert not [kind for kind, _ in messages if "display" in kind]


def test_a_script_prints_nothing():
    """Neither before IPython is loaded nor behind that."""
    code = CELL.replace("PROGRESS", "None")
    words = [sys.executable, "-c", f"{code}import IPython\n{code}"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")


def test_what_has_not_changed_is_not_sent_again(monkeypatch):
    """By IPython's own display, whose messages a publisher records."""
    from IPython.core.displaypub import CapturingDisplayPublisher
    from IPython.core.interactiveshell import InteractiveShell

    from deep.llm import Tally

    assert notebook_progress() is None
    shell = InteractiveShell.instance()
    try:
        monkeypatch.setattr(shell, "display_pub", CapturingDisplayPublisher())
        assert notebook_progress() is None
        monkeypatch.setattr(shell, "kernel", object(), raising=False)
        show = notebook_progress()
        assert isinstance(show, _Output)
        for judged in (1, 1, 2):
            show(AskProgress(Tally(), judged, 2))
        sent = shell.display_pub.outputs
        assert [one["data"]["text/plain"].partition("  ")[0] for one in sent] == ["judging 1/2", "judging 2/2"]
        assert [one.get("update", False) for one in sent] == [False, True]
        json.dumps([one["data"] for one in sent])
    finally:
        InteractiveShell.clear_instance()
