"""What people read of deep stays plain: `benchmarks/sentences.py` finds no hard sentence."""

import importlib.util
import sys
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

MOST_WORDS = 32_000
"""Words on the pages for users, without what commands write into them."""


@cache
def collector():
    """Return the committed script."""
    spec = importlib.util.spec_from_file_location("sentences", ROOT / "benchmarks" / "sentences.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["sentences"] = module
    spec.loader.exec_module(module)
    return module


def test_no_sentence_is_hard():
    """Each has at most 22 words and no phrase of `CHAINS`."""
    assert [f"{one.place}: {one.text}" for one in collector().collect() if one.badness] == []


def test_the_list_has_every_kind():
    """Errors, output, help and pages, of Python, templates and scripts; prompts for LLMs are not among them."""
    places = {kind: set() for kind in ("error", "output", "help", "page")}
    for one in collector().collect():
        places[one.kind].add(one.place.partition(":")[0])
    assert all(len(files) > 10 for files in places.values())
    assert "deep/integrations/labeling/templates/label.html" in places["page"]
    assert "deep/integrations/serve/templates/check.js" in places["page"]
    assert "deep/console/_options.py" in places["help"]
    assert not any("prompt_pool/prompts" in place for files in places.values() for place in files)


def test_a_sentence_is_flagged_for_its_length_or_a_chain():
    """Twenty-two words pass; one more, or a chain, does not. A value counts as one word."""
    sentence = collector().Sentence
    assert sentence("word " * 22, "", "output").badness == 0
    assert sentence("word " * 23, "", "output").badness == 1
    assert sentence("The share, of which nothing is told, falls.", "", "output").chains == ["of which", "is told"]
    assert list(collector().split("It failed at row 3. Fix the row, then run it again.")) == [
        "It failed at row 3.",
        "Fix the row, then run it again.",
    ]


def test_pages_for_users_stay_short():
    """Their words, the README counted in; pages for contributors and what commands write are apart."""
    pages = collector().user_pages()
    assert len(pages) > 30
    assert sum(len(collector().prose(page).split()) for page in pages) <= MOST_WORDS
