"""Every block of code on the site runs as it stands: shell and Python, in the order of their page.

They run in a folder that holds what the pages speak of (`claims.csv`, `votes.parquet`, `model.json` ...), made by
deep from `examples/`, and an LLM answers on loopback. A block of the language `console` names commands that print a
figure of the page from data that are not in the repository: of those, the options are read and nothing is run.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from deep.cli import command_parser, main
from tests.deep_commands import COMMAND_NAMES
from tests.fault_server import FaultServer

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    path for path in (ROOT / "docs").rglob("*.md") if "reference" not in path.parts and "gallery" not in path.parts
)
BLOCK = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
SHELL = ["bash", "-euo", "pipefail", "-c"]
RUN = {"bash": SHELL, "sh": SHELL, "python": [sys.executable, "-c"]}
SHOWN = {"console", "csv", "json", "mermaid", "sql", "text", "toml", "yaml"}
SAID = RUN.keys() | {"console"}
"""Languages of code."""
MADE_FIRST = {"index"}
"""A page for those who have nothing yet: no model lies there."""
LIMIT = 600


def blocks(page):
    """Return (language, text) of each block of a page, directives of MyST left out."""
    return [(language, text) for language, text in BLOCK.findall(page.read_text(encoding="utf-8")) if language]


def write_grades(labels, folder):
    """Write grades from 1 to 5 by two judges, the same of new items, and the first beside three other scales."""
    grade = 1 + 2 * labels["label"].to_numpy() + np.random.default_rng(0).integers(0, 3, (3, len(labels)))
    items = labels[["dataset", "item_id"]]
    items.assign(**{"gpt-large": grade[0], "gpt-small": grade[1]}).to_csv(folder / "grades.csv", index=False)
    new = items.assign(item_id="new-" + items["item_id"].astype(str))
    new.assign(**{"gpt-large": grade[1], "gpt-small": grade[2]}).to_csv(folder / "new-grades.csv", index=False)
    tone = np.array(["bad", "bad", "fair", "good", "good"])[grade[1] - 1]
    mixed = items.assign(**{"gpt-large": grade[0]}, risk=6 - grade[2], tone=tone, bart=1.6 * grade[1] - 8)
    mixed.to_csv(folder / "mixed.csv", index=False)


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """Return a folder with examples, their lexical votes, labels and a model."""
    folder = tmp_path_factory.mktemp("world")
    shutil.copytree(ROOT / "examples", folder / "examples")
    for name in ("claims.csv", "unlabeled.csv"):
        if (folder / "examples" / name).exists():
            shutil.copy(folder / "examples" / name, folder / name)
    claims = pd.read_csv(folder / "claims.csv")
    weather = claims["dataset"] == "weather"
    asked = claims.assign(question="What happened?", query="What happened?")
    asked.head(8).to_csv(folder / "rag.csv", index=False)
    claims[~weather].to_csv(folder / "labeled.csv", index=False)
    claims[weather].drop(columns="label").to_csv(folder / "mine.csv", index=False)
    labels = claims[weather].rename(columns={"example_id": "item_id"})[["dataset", "item_id", "label"]]
    labels.to_csv(folder / "labels.csv", index=False)
    labels.groupby("label").head(5).to_csv(folder / "ten.csv", index=False)
    (folder / "article.txt").write_text(claims["source"][0], encoding="utf-8")
    (folder / "summary.txt").write_text(claims["claim"][0], encoding="utf-8")
    for name, table in (("claims", "votes"), ("labeled", "labeled"), ("mine", "mine")):
        words = ["votes", str(folder / f"{name}.csv"), "--lexical", "all", "--out", str(folder / f"{table}.parquet")]
        assert main(words) == 0
    mine = pd.read_parquet(folder / "mine.parquet")
    mine.assign(generator=["one", "other"] * (len(mine) // 2)).to_parquet(folder / "systems.parquet")
    write_grades(labels, folder)
    assert main(["fit", str(folder / "labeled.parquet"), "--out", str(folder / "model.json")]) == 0
    run = ["--sizes", "3", "--ensembler", "LogisticRegression", "--jobs", "1", "--out", str(folder / "runs" / "loo")]
    assert main(["loo", "--test", "aggrefact", *run]) == 0
    return folder


RUNNING = [
    page
    for page in PAGES
    if page.parent.name
    != "integrations"  # whose libraries are not here: tests/guests/integrations/test_pages.py runs them
    and any(language in RUN for language, _ in blocks(page))
]


def run_blocks(found, folder):
    """Run blocks of code in a folder, in their order; an LLM answers on loopback."""
    python = Path(sys.executable).parent
    with FaultServer() as server:
        environment = os.environ | {
            "PATH": f"{python}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "OPENAI_API_KEY": "placeholder-of-the-tests",
            "OPENAI_BASE_URL": f"{server.url}",
            "OUT": "runs",
        }
        for language, text in found:
            done = subprocess.run(
                [*RUN[language], text],
                cwd=folder,
                env=environment,
                capture_output=True,
                text=True,
                timeout=LIMIT,
                check=False,
            )
            assert done.returncode == 0, f"{text}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"


NEEDS = {
    "cognibench": "the data of CogniBench",
    "deploy": "the network, once",
    "encoders": "a model to download",
    "fect": "the data of FECT and the key of an LLM",
    "finetune": "a server that serves the tuned model",
    "install": "the network",
    "judges": "a benchmark to download",
    "label": "a browser: the second command serves a page until you stop it",
    "mutation": "a copy of the repository, and an hour",
    "netcal": "an hour",
    "papers-real": "the network, and an LLM that you can pay for",
    "pairs": "pairs of your own, and the key of an LLM",
    "probe": "the key of an LLM",
    "prompt-files": "prompt files of your own",
    "recipes": "votes of your own",
    "results": "the data of the tables",
    "results-tables": "the data of the tables",
    "serve": "a server that runs",
    "walks": "votes of your own",
}
"""Pages whose first block nobody can run as it stands, and what it says that it needs."""

FIRST = {
    page: found[0]
    for page in [ROOT / "README.md", *PAGES]
    if (found := [one for one in blocks(page) if one[0] in SAID or (page.stem in NEEDS and one[0] == "text")])
}
"""The first block of code of each page."""


def test_the_first_block_of_a_page_runs_or_says_what_it_needs():
    """With nothing but what the page speaks of, `test_blocks_run` runs it; else its first line names what is needed."""
    for page, (language, text) in FIRST.items():
        if page.stem in NEEDS:
            assert text.startswith(f"# Needs {NEEDS[page.stem]}.\n"), page
        else:
            assert language in RUN, f"{page.name} must have a first block that runs, or one that says what it needs"


@pytest.mark.slow
@pytest.mark.parametrize("page", RUNNING, ids=lambda path: path.stem)
def test_blocks_run(page, world, tmp_path):
    """Each block of a page ends without an error, after those before it."""
    folder = shutil.copytree(world, tmp_path / "here")
    if page.stem in MADE_FIRST:
        (folder / "model.json").unlink()
    run_blocks([block for block in blocks(page) if block[0] in RUN], folder)


def test_every_block_says_its_language():
    """No block is left without a language, and none has one that nobody checks."""
    for page in PAGES:
        languages = [
            opening[3:].strip() for opening in re.findall(r"^```[^\n]*", page.read_text(encoding="utf-8"), re.MULTILINE)
        ][::2]
        plain = [language for language in languages if not language.startswith("{")]
        assert set(plain) <= RUN.keys() | SHOWN, page


def test_commands_that_printed_a_figure_have_these_options():
    """What a block `console` names is a command of today with options of today."""
    for page in PAGES:
        for language, text in blocks(page):
            if language == "console":
                for line in re.findall(r"^\$ (.*?[^\\])$", text, re.MULTILINE | re.DOTALL):
                    check_command(shlex.split(line.replace("\\\n", " "), comments=True))


def test_steps_give_the_action_inputs_that_it_has():
    """What a page gives deep's action under `with` is an input of `action.yml`, and the required ones are there."""
    text = (ROOT / "action.yml").read_text(encoding="utf-8").partition("\noutputs:")[0]
    inputs = re.findall(r"^  (\w+):$", text.partition("inputs:")[2], re.MULTILINE)
    steps = [text for page in PAGES for language, text in blocks(page) if language == "yaml"]
    (given,) = re.findall(r"uses: OWNER/deep-judges@TAG\n  with: { (.*) }", "".join(steps))
    names = [pair.partition(":")[0] for pair in given.split(", ")]
    assert {"model", "votes"} <= set(names) <= set(inputs)


def check_command(words):
    """Parse the options of a command of deep; of another program see that the file is there."""
    match words:
        case ["deep", name, *rest] if name in COMMAND_NAMES:
            command_parser(name).parse(rest)
        case ["python", "-m", module, *rest] if module.startswith("deep.experiments."):
            command_parser(module.rpartition(".")[2]).parse(rest)
        case ["python", script, *_]:
            assert (ROOT / script).exists(), words
        case ["make", target, *_]:
            assert f"\n{target}:" in (ROOT / "Makefile").read_text(encoding="utf-8"), words
        case _:
            pytest.fail(f"no program of deep: {words}")
