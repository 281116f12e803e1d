"""Whatever is said to a model or a person about the companion systems is said in our own words."""

import re
from pathlib import Path

import pytest

import deep
from deep.experiments.probe._probe_measures import EQUIVALENCE
from deep.integrations.labeling import WORKSHEET
from deep.prompt_pool import list_prompts, load_prompt

CODE = Path(deep.__file__).parent
DOCS = CODE.parent / "docs"
TEXTS = {
    **{str(path.relative_to(CODE)): path for path in (CODE / "experiments").rglob("*.toml") if path.stem != "papers"},
    "prompts": "\n\n".join(f"{prompt.system}\n{prompt.user}" for prompt in map(load_prompt, list_prompts())),
    **{f"{name}.md": DOCS / f"{name}.md" for name in ("fect", "probe", "cognibench", "finetune")},
    "worksheet": WORKSHEET,
    "equivalence": "\n".join(EQUIVALENCE.values()),
}


def word_runs(text: str, length: int) -> set[tuple[str, ...]]:
    """Return all runs of `length` words of a text, without case and punctuation."""
    words = re.findall(r"[a-z0-9]+", text.casefold())
    return {tuple(words[i : i + length]) for i in range(len(words) - length + 1)}


@pytest.fixture(scope="module")
def theirs(data_home):
    """Return every run of eight words of the papers."""
    papers = sorted((data_home.parent / "papers").glob("*.txt"))
    if not papers:
        pytest.skip(f"no papers found beside {data_home}")
    return set().union(*(word_runs(paper.read_text(encoding="utf-8"), 8) for paper in papers))


@pytest.mark.parametrize("name", TEXTS)
def test_no_eight_words_are_a_papers(theirs, name):
    """Strategies carry over, sentences do not."""
    text = TEXTS[name]
    words = word_runs(text if isinstance(text, str) else text.read_text(encoding="utf-8"), 8)
    assert len(words) > 20
    assert not words & theirs
