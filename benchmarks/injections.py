"""Whether a document or a claim can vote: replies that quote one, in whatever form, and hold no answer of their own.

    PYTHONPATH=. python benchmarks/injections.py [--list FILE.jsonl]

Every text of ``tests/prompt_pool/injections.py`` and every ending of ``tests/prompt_pool/reply_corpus.py``, spelled in
the labels of each prompt, stands as the source or as the claim of 14 prompts: the forms of the pool and of papers,
labels, verdict words, scales and an answer that comes first. A reply quotes it in 16 ways. Each vote is a fault.
"""

import argparse
import json
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from deep.prompt_pool import Prompt, load_prompt
from tests.prompt_pool.injections import INJECTIONS
from tests.prompt_pool.reply_corpus import ECHOED, QUOTED
from tests.replies.asked import PROMPTS

POOL = (
    "deep-strict-steps",
    "yes-no",
    "direct-assessment",
    "five-stars",
    "fect-basic-direct-json",
    "fect-3d-reasoned-xml",
)
PRINTED = ("first", "deep", "consistent", "contradiction", "letters", "1-5", "words", "chinese")
PLAIN = "The harbour office counted its ships on Monday."


def prompts() -> dict[str, Prompt]:
    """Return the prompts by name: six of the pool and eight as papers print them."""
    return {name: load_prompt(name) for name in POOL} | {f"printed {name}": PROMPTS[name] for name in PRINTED}


def texts(prompt: Prompt) -> list[str]:
    """Return the documents: those that know nothing of the prompt, and those that end in its words."""
    words = [*prompt.labels] or [*prompt.scale_words] or ["5 stars", "100"]
    tick = "\u2705"
    ends = [
        form.format(label=word, other=words[-1], lower=word.lower(), title=word.title(), tick=tick)
        for form in ECHOED
        for word in words[:2]
    ]
    return [*INJECTIONS.values(), *ends]


def replies(text: str) -> Iterator[str]:
    """Yield replies that hold a text and no answer."""
    yield from (form.format(text=text) for form in QUOTED)
    yield text.upper()


def main() -> None:
    """Count the replies and the votes that are read from them, by prompt."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", type=Path, help="write the replies that gave a vote to a file of JSON lines")
    args = parser.parse_args()
    counts, faults = Counter[str](), []
    started = time.process_time()
    for name, prompt in prompts().items():
        for text in texts(prompt):
            for side in ("source", "claim"):
                material = {"source": PLAIN, "claim": PLAIN} | {side: text}
                for reply in replies(text):
                    judgment = prompt.parse(reply, **material)
                    counts[name] += 1
                    if judgment.vote != -1 or judgment.score is not None:
                        faults.append({"prompt": name, "side": side, "text": text, "reply": reply})
        n = sum(fault["prompt"] == name for fault in faults)
        print(f"{name:28} {counts[name]:6,} replies, {n} votes")  # noqa: T201
    seconds = time.process_time() - started
    print(f"{counts.total():,} replies, {len(faults)} votes, {seconds:.0f} processor seconds")  # noqa: T201
    if args.list:
        args.list.write_text("".join(json.dumps(fault, ensure_ascii=False) + "\n" for fault in faults))


if __name__ == "__main__":
    main()
