"""Every page and every table that people look at, made from invented votes: for pictures, and for tests that measure.

`pages(folder)` serves and yields them; `terminals(folder)` yields what commands print at 80 and 120 columns. Studies
that ask an LLM ask the scripted ones of the tests.
"""

import contextlib
import io
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pandas as pd
from playwright.sync_api import Page

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT)]

from deep import model  # noqa: E402
from deep.cli import main  # noqa: E402
from deep.integrations.labeling import label_app, open_label_desk, read_label_subject  # noqa: E402
from deep.integrations.serve import create_app, serving  # noqa: E402
from tests.experiments import cognibench_case, test_probe_measures  # noqa: E402
from tests.nasty_panels import panel  # noqa: E402
from tests.scripted_llm import ScriptedLLM  # noqa: E402

CLAIMS, UNLABELED = ROOT / "examples" / "claims.csv", ROOT / "examples" / "unlabeled.csv"
KEY = {"OPENAI_API_KEY": "sk-scripted"}
WIDTHS = (80, 120)
SMALL = ["--n-boot", "100", "--jobs", "1"]


@dataclass(frozen=True)
class View:
    """A page, and what is done on it before it is looked at."""

    name: str
    address: str
    reach: Callable[[Page], object] = str


class Terminal(io.StringIO):
    """Takes what is printed as a terminal does."""

    def isatty(self) -> bool:
        """Say that it is one."""
        return True


def deep(*words: object) -> str:
    """Run a command in this process and return what it prints."""
    out = Terminal()
    with contextlib.redirect_stdout(out), patch.dict(os.environ, KEY), patch("deep.console._options.MOST_JOBS", 1):
        try:
            status = main([str(word) for word in words])
        except SystemExit as ended:  # of the help
            status = ended.code
    if status:
        raise RuntimeError(f"deep {' '.join(map(str, words))}: status {status}")
    return out.getvalue()


def asked(script: Callable[..., object], *words: object) -> str:
    """Run a study whose LLM is a script."""
    with ScriptedLLM(script) as server:
        endpoint = ["--base-url", server.url, "--endpoint-name", "scripted", "--concurrency", "1"]
        return deep(*words, *endpoint)


def write_inputs(folder: Path) -> None:
    """Write votes, models and tables of invented judges."""
    folder.mkdir(exist_ok=True)
    deep("ask", CLAIMS, "--lexical", "all", "--out", folder / "votes.parquet")
    deep("ask", UNLABELED, "--lexical", "all", "--out", folder / "new.parquet")
    deep("fit", folder / "votes.parquet", "--out", folder / "model.json")
    panel((90, 90, 90), voters=4, abstain=0.1, names=["mine", "news", "talks"]).to_csv(folder / "four.csv", index=False)
    sixty = panel((300, 300), voters=60, accuracy=0.65, abstain=0.2, seed=1, names=["news", "talks"])
    sixty.to_parquet(folder / "sixty.parquet", index=False)
    systems = pd.read_parquet(folder / "new.parquet")
    systems.insert(2, "system", np.where(np.arange(len(systems)) % 2, "writer-b", "writer-a"))
    systems.to_csv(folder / "systems.csv", index=False)
    test_probe_measures.write_samples(folder / "evaluation.jsonl", test_probe_measures.samples())
    cognibench_case.write_case(folder / "turns")


def studies(folder: Path) -> dict[str, str]:
    """Run every study; return what each printed, by the name of its folder."""
    fect = ["--data", CLAIMS, "--votes", folder / "votes.parquet"]
    probe = ["--data", folder, "--llm", "reader", "--ledger", folder / "probe.sqlite"]
    chains = ["--ensembler", "LogisticRegression", "MajorityLabelVoter"]
    alone = {
        "loo": ["loo", "--votes", folder / "four.csv", "--test", "all", "--few", "1", "--sizes", "3", *chains, *SMALL],
        "paper": ["paper", *chains, "--no-netcal", *SMALL],
        "fect": ["fect", *fect],
    }
    with (
        patch("deep.experiments.few_datasets.PAPER_ENSEMBLERS", ("LogisticRegression",)),
        patch("deep.experiments.few_datasets.LABEL_DRAWS", 3),
    ):
        message = {name: deep(*words, "--out", folder / name) for name, words in alone.items()}
    message["probe"] = asked(test_probe_measures.script, "probe", "eval", *probe, "--out", folder / "probe")
    tiers = ["--data", folder / "turns", "--llm", "tiny", "--threshold", "2", "3", "--out", folder / "cognibench"]
    return message | {"cognibench": asked(cognibench_case.script, "cognibench", *tiers)}


def reports(folder: Path) -> dict[str, Path]:
    """Write the reports; return their files by name."""
    made = {
        "unlabeled": [folder / "model.json", folder / "new.parquet"],
        "labeled": [folder / "votes.parquet"],
        "sixty": [folder / "sixty.parquet"],
        "compare": [folder / "model.json", folder / "systems.csv", "--compare", "system"],
    }
    for name, words in made.items():
        deep("report", *words, "--out", folder / f"{name}.html")
    result = {f"report-{name}": folder / f"{name}.html" for name in made}
    return result | {f"study-{name}": folder / name / "report.html" for name in studies(folder)}


def _labeled(page: Page) -> None:
    """Label what is left, as one person."""
    shown = page.locator("#work, #done").locator("visible=true").first
    shown.wait_for()
    while not page.locator("#done").is_visible():
        page.evaluate("document.getElementById('status').textContent = ''")
        page.keyboard.press("1")
        page.locator("#status").filter(has_text="kept.").wait_for()
        shown.wait_for()
    page.locator("#end pre").first.wait_for()


def _scrolled(page: Page) -> None:
    """Look for a word in a long source, some screens down."""
    page.locator("#work").wait_for()
    page.keyboard.press("PageDown")
    page.keyboard.press("w")


def _pair(page: Page) -> None:
    row = pd.read_csv(UNLABELED).set_index("example_id").loc["museum-8-e"]
    page.get_by_label("Source", exact=True).fill(row["source"])
    page.get_by_label("Claim", exact=True).fill(row["claim"])
    page.get_by_role("button", name="Check").click()
    page.locator("#result > ul li").last.wait_for()


def _file(page: Page) -> None:
    page.get_by_label("or drop it on this page").set_input_files(UNLABELED)
    page.get_by_role("button", name="Download as CSV").wait_for()
    page.locator("#file-watch li").last.wait_for()


def _error(page: Page) -> None:
    wrong = {"name": "wrong.csv", "mimeType": "text/csv", "buffer": b"text;summary\nIt rained.;It was dry.\n"}
    page.get_by_label("or drop it on this page").set_input_files(wrong)
    page.locator("#file-error:not(:empty)").wait_for()


def _long(folder: Path) -> list[Path]:
    """Write votes on a source of 10,000 words; return them and their texts."""
    words = " ".join(f"Sentence {i} tells of bridge number {i} and of what it cost." for i in range(800))
    texts = pd.DataFrame({"dataset": "long", "example_id": [f"{i}" for i in range(30)], "source": words})
    texts["claim"] = [f"Bridge number {i} cost much." for i in range(30)]
    texts.to_csv(folder / "long.csv", index=False)
    votes = texts.rename(columns={"example_id": "item_id"})[["dataset", "item_id"]]
    votes.assign(a=[1, 0] * 15, b=[1, 1, 0] * 10, c=[0, 1] * 15).to_csv(folder / "long-votes.csv", index=False)
    return [folder / "long-votes.csv", folder / "long.csv"]


@contextmanager
def pages(folder: Path) -> Iterator[list[View]]:
    """Write all that is shown into a folder, serve it, and yield a view of every page."""
    write_inputs(folder)
    votes, texts = _long(folder)
    short = read_label_subject([str(folder / "new.parquet")], model=folder / "model.json")
    long = read_label_subject([str(votes)], examples=texts)
    with ExitStack() as stack:

        def labels(subject: object, name: str, n: int) -> str:
            desk = stack.enter_context(open_label_desk(subject, folder / f"{name}.labels.csv", n=n))
            return stack.enter_context(serving(label_app(desk, person="Ann")))

        served = stack.enter_context(serving(create_app(model.load(folder / "model.json"))))
        wait = lambda page: page.locator("#work").wait_for()  # noqa: E731
        yield [
            *(View(name, path.as_uri()) for name, path in reports(folder).items()),
            View("label-first", labels(short, "first", 30), wait),
            View("label-long", labels(long, "long", 30), _scrolled),
            View("label-end", labels(short, "end", 12), _labeled),
            View("serve-pair", served, _pair),
            View("serve-file", served, _file),
            View("serve-error", served, _error),
        ]


def terminals(folder: Path) -> Iterator[tuple[str, int, str]]:
    """Yield the name, the width and the text of what commands print, of the inputs of a folder."""
    commands: dict[str, Sequence[object]] = {
        "fit": ["fit", folder / "votes.parquet", "--out", folder / "again.json"],
        "score": ["score", folder / "model.json", folder / "new.parquet", "--out", folder / "scores.csv"],
        "panel": ["panel", folder / "sixty.parquet"],
        "loo": ["loo", "--votes", folder / "four.csv", "--test", "news", "--sizes", "3", *SMALL, "--out", folder / "l"],
        "fect": ["fect", "--data", CLAIMS, "--votes", folder / "votes.parquet", "--out", folder / "f"],
        "help": ["--help"],
        "help-fit": ["fit", "--help"],
    }
    for width in WIDTHS:
        with patch.dict(os.environ, {"COLUMNS": str(width)}):
            for name, words in commands.items():
                yield name, width, deep(*words)
