"""How fast the lexical checks are, and how often they are right.

::

    python benchmarks/lexical.py               # pairs a second, all checks together, on one core
    python benchmarks/lexical.py --accuracy    # coverage and accuracy by check on SummEdits and FECT (DEEP_DATA_HOME)

Speed is measured on made-up documents of 400 words and claims of 12, drawn with a fixed seed: function words, words
with a frequency like that of real text, names and numbers. In *distinct* no two pairs share a document, so nothing
is kept from one pair to the next but single words and their stems; in *shared* ten claims follow each other on one
document.
"""

import argparse
import random
import sys
import time
from collections.abc import Callable, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np

from deep.features import analyze_votes
from deep.features.lexical import LEXICAL, LexicalCheck
from deep.records import Example, Judgment

DOCUMENT_WORDS, CLAIM_WORDS, SENTENCE_WORDS = 400, 12, 18
FUNCTION_WORDS = ("the", "of", "and", "to", "a", "in", "that", "is", "was", "for", "it", "with", "not", "will", "but")
ENDINGS = ("", "", "", "s", "ed", "ing", "ly")


def say(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def vocabulary(draw: random.Random, n: int = 5_000) -> tuple[list[str], list[float]]:
    """Return made-up words and their cumulative weights, the k-th one's being 1 / k."""
    stems = ["".join(draw.choices("abcdefghiklmnoprstuvw", k=draw.randint(3, 9))) for _ in range(n)]
    return [s + draw.choice(ENDINGS) for s in stems], list(accumulate(1 / (k + 10) for k in range(n)))


def sentences(draw: random.Random, words: list[str], weights: list[float], n_words: int) -> list[str]:
    """Return a text of about `n_words` words, as sentences."""
    made = []
    for _ in range(max(1, round(n_words / SENTENCE_WORDS))):
        chosen = draw.choices(words, cum_weights=weights, k=min(SENTENCE_WORDS, n_words))
        for i in range(len(chosen)):
            kind = draw.random()
            if kind < 0.4:
                chosen[i] = draw.choice(FUNCTION_WORDS)
            elif kind < 0.45:
                chosen[i] = chosen[i].capitalize()
            elif kind < 0.47:
                chosen[i] = draw.choice(("1,250", "3.5%", "$12 million", "2019", "twenty"))
        made.append(f"{' '.join(chosen).capitalize()}.")
    return made


def pairs(n_documents: int, claims_each: int) -> list[Example]:
    """Return examples, each claim made of words of its document and a few others."""
    draw = random.Random(0)
    words, weights = vocabulary(draw)
    made = []
    for _ in range(n_documents):
        document = sentences(draw, words, weights, DOCUMENT_WORDS)
        for _ in range(claims_each):
            start = draw.choice(document).rstrip(".").split()[: CLAIM_WORDS - 4]
            claim = " ".join([*start, *draw.choices(words, cum_weights=weights, k=4)])
            made.append(Example(" ".join(document), f"{claim}.", str(len(made))))
    return made


def renewed(made: Sequence[Example]) -> list[Example]:
    """Return the examples with documents that nobody has seen, still shared where they were."""
    mark = f" {time.perf_counter_ns()}"
    return [Example(f"{example.source}{mark}", example.claim, example.example_id) for example in made]


def best(run: Callable[[Sequence[Example]], Any], examples: Callable[[], Sequence[Example]], rounds: int) -> float:
    """Return the pairs a second of the best round; each has its own copy of the texts."""
    fastest = 0.0
    for _ in range(rounds):
        fresh = examples()
        start = time.perf_counter()
        run(fresh)
        fastest = max(fastest, len(fresh) / (time.perf_counter() - start))
    return fastest


def label_all(checks: Sequence[LexicalCheck], examples: Sequence[Example]) -> list[list[Judgment]]:
    """Return the judgments of all checks, example by example: what is known of a text serves all checks of it."""
    return [[check.label(example) for check in checks] for example in examples]


def speed(rounds: int) -> None:
    """Print pairs a second."""
    from deep.features.lexical._base import TokenizedText

    checks = [check() for check in LEXICAL.values()]
    say(f"{len(checks)} checks together on one core; documents of 400 words, claims of 12; best of {rounds} rounds")
    for name, n_documents, claims_each in (("distinct", 4_000, 1), ("shared", 400, 10)):
        made = pairs(n_documents, claims_each)
        rate = best(lambda some: label_all(checks, some), lambda made=made: renewed(made), rounds)
        say(f"{name:>10}: {rate:8,.0f} pairs/s")
    alone = best(lambda some: [TokenizedText(example.source) for example in some], lambda: pairs(2_000, 1), rounds)
    say(f"{'cutting up':>10}: {alone:8,.0f} documents/s, the share of the work that no check can do without")


def accuracy() -> None:
    """Print what the votes of each check are worth, and what it adds to the others."""
    from deep.datasets import read_examples

    checks = [check() for check in LEXICAL.values()]
    examples = [e for name in ("summedits", "fect") for e in read_examples(name) if e.label is not None]
    votes = np.array([[j.vote for j in row] for row in label_all(checks, examples)], dtype=np.int8)
    labels = np.array([example.label for example in examples])
    datasets = np.array([str(example.dataset) for example in examples])
    in_fect = datasets == "fect"
    for title, mask in (("SummEdits", ~in_fect), ("FECT", in_fect)):
        say(f"\n{title}: {mask.sum()} pairs, {labels[mask].mean():.1%} consistent; shares in percent")
        say(f"{'check':<17} {'coverage':>8} {'votes 0':>8} {'of 0s right':>14} {'of 1s right':>17} {'balanced':>9}")
        table = analyze_votes(votes[mask], labels[mask], voter_names=[check.name for check in checks])
        for column, (name, row) in enumerate(table.iterrows()):
            message = votes[mask][:, column]
            zero, one = (_share_right(message, labels[mask], vote) for vote in (0, 1))
            balanced = "" if np.isnan(row["balanced_accuracy"]) else f"{row['balanced_accuracy']:.1%}"
            said_zero = f"{float((message == 0).mean()):.1%}"
            say(f"{name:<17} {row['coverage']:8.1%} {said_zero:>8} {zero:>14} {one:>17} {balanced:>9}")
    contributions([check.name for check in checks], votes, labels, datasets)


def _share_right(votes: Any, labels: Any, vote: int) -> str:
    chosen = votes == vote
    return f"{(labels[chosen] == vote).mean():.1%} of {chosen.sum()}" if chosen.any() else "none"


def contributions(names: list[str], votes: Any, labels: Any, datasets: Any) -> None:
    """Print the balanced accuracy of logistic regression on held-out datasets, with all checks and with all but one."""
    whole = held_out(votes, labels, datasets)
    say("\nlogistic regression on the votes, one dataset held out, datasets and classes weighing the same;")
    say("balanced accuracy in percent: mean over the 8 domains of SummEdits, and FECT")
    say(f"{'all checks':<25} {_domains(whole):5.1f} {whole['fect']:5.1f}")
    for column, name in enumerate(names):
        less = held_out(np.delete(votes, column, axis=1), labels, datasets)
        say(f"without {name:<17} {_domains(less):5.1f} {less['fect']:5.1f}")


def _domains(rates: dict[str, float]) -> float:
    return float(np.mean([rate for name, rate in rates.items() if name != "fect"]))


def held_out(votes: Any, labels: Any, datasets: Any) -> dict[str, float]:
    """Return the balanced accuracy in percent on each dataset of a model that was fitted on all others."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import balanced_accuracy_score

    X = np.concatenate([votes == 1, votes == 0], axis=1).astype(float)
    weights = np.zeros(len(labels))
    for name in np.unique(datasets):
        for label in (0, 1):
            cell = (datasets == name) & (labels == label)
            weights[cell] = 1_000 / cell.sum()
    rates = {}
    for name in np.unique(datasets):
        test = datasets == name
        model = LogisticRegression(max_iter=1_000).fit(X[~test], labels[~test], sample_weight=weights[~test])
        rates[str(name)] = 100 * balanced_accuracy_score(labels[test], model.predict(X[test]))
    return rates


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--accuracy", action="store_true", help="coverage and accuracy instead of speed")
    options.add_argument("--rounds", type=int, default=5, metavar="N", help="the best of so many counts (default 5)")
    args = options.parse_args()
    accuracy() if args.accuracy else speed(args.rounds)
