"""Whatever is said to a model or a person about the companion systems is said in our own words."""

from pathlib import Path

import pytest

import deep
from deep.experiments.probe._probe_measures import EQUIVALENCE
from deep.integrations.labeling import WORKSHEET
from tests.prompt_pool.test_pool import word_runs

CODE = Path(deep.__file__).parent
DOCS = CODE.parent / "docs"
TEXTS = {
    **{path.name: path for path in (CODE / "prompt_pool" / "stepwise").glob("*.toml")},
    **{path.name: path for path in (CODE / "prompt_pool" / "tiered").glob("*.toml")},
    "probe builder": CODE / "experiments" / "probe" / "prompts.toml",
    **{f"{name}.md": DOCS / f"{name}.md" for name in ("fect", "probe", "cognibench", "finetune")},
    "worksheet": WORKSHEET,
    "equivalence": "\n".join(EQUIVALENCE.values()),
}


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
