"""Read replies of real LLM judges, and say how many are read as meant, read otherwise, and not read.

    python benchmarks/replies.py [--folder ../shared/data/replies] [--show 5] [--list FILE.jsonl]

What a reply says is decided by the reply alone, by patterns of each source's own form that share nothing with the
reader; a reply that holds no verdict, or two, is left out of the shares and must not be read. Where a stored reading
exists, replies that contradict it are counted (`contradicted`). Gold labels are never looked at. The reader is told
what a prompt would say: labels, verdict words, scale, `answer_first`.
"""

import argparse
import gzip
import json
import os
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from deep.prompt_pool import Prompt

FOLDER = Path(os.environ.get("DEEP_DATA_HOME", "../shared/data")) / "replies"
NUMBERS = {"zero": 0, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5}

Row = Mapping[str, Any]


class Source(NamedTuple):
    """How the replies of one form are asked for, and what each says: a value, or None for no verdict or two."""

    asked: Callable[[Row], Prompt]
    meant: Callable[[Row], object]
    stored: Callable[[Row], object] = lambda _: None


def prompt(name: str, **fields: Any) -> Prompt:
    """Return a prompt that asks for an answer in the words of a source."""
    own = {"version": "1", "family": "measured", "follows": "own design", "reasons_first": False, "fenced": False}
    told = ", ".join(fields.get("labels", {}))
    return Prompt(id=name, user=f"Answer with one of: {told}. {{{{source}}}} {{{{claim}}}}", **{**own, **fields})


def _first_word(row: Row) -> object:
    result = re.match(r"\W*(yes|no)\b", row["reply"], re.IGNORECASE)
    return {"yes": 1, "no": 0}[result[1].lower()] if result else None


def _tag_or_word(row: Row) -> object:
    """Return what a reply of NoCha says: what all its answer tags hold, or its first word."""
    text = row["reply"] or ""
    message = {tag.strip().lower() for tag in re.findall(r"<answer>\s*(true|false)\W*</?<?answer", text, re.IGNORECASE)}
    first = re.match(r"\s*(?:<statement>)?\s*(true|false)\b(?!\s+or)", text, re.IGNORECASE)
    message |= {first[1].lower()} if first and not message else set()
    return {"true": 1, "false": 0}[message.pop()] if len(message) == 1 else None


def _leading_number(row: Row) -> object:
    result = re.match(r"\s*(\d+(?:\.\d+)?)(?![\d.]*\d)", row["reply"])
    high = 100 if "100" in row["prompt_form"] else 9
    return float(result[1]) / high if result and float(result[1]) <= high else None


def _summary_score(row: Row) -> object:
    """Return the score from 1 to 5 that a reply of LLM_summeval names, scaled to 0 to 1."""
    text = row["reply"].strip()
    if "mcq" in row["prompt_form"]:
        letter = re.match(r"\W*(?:the )?(?:answer is |choice )?\(?([A-E])\b", text)
        return (ord(letter[1]) - ord("A")) / 4 if letter else None
    number = r"(?P<n>\d+(?:\.\d+)?|one|two|three|four|five)"
    ways = (
        rf"\bscor\w*(?:[^.\d]|\.(?=\D)){{0,60}}?\b{number}\b(?!\s*(?:to|-)\s*5)",
        rf"\b{number}\s*(?:/|out of)\s*(?:5|five)\b",
        rf"\b{number}[ -]stars?\b",
        rf"\brat\w*[^.\d]{{0,40}}?\b{number}\b",
        rf"(?:\A|[.\n]\s*){number}\.?\s*\Z",
    )
    message = {}
    for way in ways:
        for result in re.finditer(way, text, re.IGNORECASE):
            word = result["n"].lower()
            message[result.start("n")] = float(NUMBERS.get(word, word))
    values = {value for value in message.values() if 1 <= value <= 5}
    final = re.findall(rf"final score\W*{number}", text, re.IGNORECASE)
    if final:
        values = {float(NUMBERS.get(word.lower(), word)) for word in final}
    return (values.pop() - 1) / 4 if len(values) == 1 else None


def _better(row: Row) -> object:
    """Return which output a reply of LLMBar prefers: what it says at its end, else at its beginning."""
    text = row["reply"].strip()
    if row["prompt_form"].startswith("rating"):
        return float(text) / 10 if re.fullmatch(r"\d+", text) else None
    only = re.fullmatch(r"Output \(([ab])\)\W*", text)
    stated = [result[1] for result in re.finditer(r"Output \(([ab])\) (?:is|was) (?:the )?(?:clearly )?better\b", text)]
    if only:
        return {"a": 1, "b": 0}[only[1]]
    if not stated:
        return None
    opens = re.match(r"Output \([ab]\) is better\b", text)
    if opens and len(set(stated)) > 1 and not text.rstrip(".").endswith("is better"):
        return None
    return {"a": 1, "b": 0}[stated[-1]] if len(set(stated)) == 1 or text.endswith("is better.") else None


def _stored_better(row: Row) -> object:
    if row["parsed"] is None:
        return None
    return int((row["parsed"] == "1") != row["item"].endswith("True"))


def _fits_reality(row: Row) -> object:
    negated, message = (len(re.findall(word, row["reply"])) for word in ("不符合现实", "符合现实"))
    return None if not message or 0 < negated < message else int(not negated)


_YES_NO = {"yes": 1, "no": 0}
_ERRORS = ("entity", "out-of-context", "predicate", "grammatical", "circumstantial", "coreference", "linking", "other")


def _entries(row: Row) -> object:
    """Return the labels of a list of sentences (1 = error) or key facts (1 = yes), entry by entry."""
    key = "category" if "category" in row["prompt_form"] else "response"
    message = [word.strip().lower() for word in re.findall(rf'"{key}"\s*:\s*"([^"]*)"', row["reply"])]
    if key == "response":
        return [int(word == "yes") for word in message] if message and set(message) <= {"yes", "no"} else None
    return [int(word != "no error") for word in message] or None


def _stored_entries(row: Row) -> object:
    return row["parsed"]


def _asked_finesure(row: Row) -> Prompt:
    return ERRORS if "category" in row["prompt_form"] else FACTS


OPENQA = prompt("openqa", labels={"Yes": 1, "No": 0}, answer_first=True)
NOCHA = prompt("nocha", labels={"TRUE": 1, "FALSE": 0})
CARE_9 = prompt("care-9", kind="score", scale=(0.0, 9.0), answer_first=True)
CARE_100 = prompt("care-100", kind="score", scale=(0.0, 100.0), answer_first=True)
STARS = prompt("damo-score", kind="score", scale=(1.0, 5.0))
LETTERS = prompt("damo-letters", kind="score", scale={"A": 1, "B": 2, "C": 3, "D": 4, "E": 5})
PAIR = prompt("llmbar", labels={"Output (a)": 1, "Output (b)": 0})
RATING = prompt("llmbar-rating", kind="score", scale=(0.0, 10.0))
REALITY = prompt("uhgeval", labels={"符合现实": 1, "不符合现实": 0})
ERRORS = prompt("finesure-errors", labels={"no error": 0, **{f"{name} error": 1 for name in _ERRORS}}, output="json")
FACTS = prompt("finesure-facts", labels={"Yes": 1, "No": 0}, output="json")

SOURCES = {
    "openqa_eval": Source(lambda _: OPENQA, _first_word, lambda row: _YES_NO.get(str(row["parsed"]).lower())),
    "nocha": Source(lambda _: NOCHA, _tag_or_word),
    "care": Source(lambda row: CARE_100 if "100" in row["prompt_form"] else CARE_9, _leading_number),
    "damo_summeval": Source(lambda row: LETTERS if "mcq" in row["prompt_form"] else STARS, _summary_score),
    "llmbar": Source(lambda row: RATING if row["prompt_form"].startswith("rating") else PAIR, _better, _stored_better),
    "uhgeval": Source(lambda _: REALITY, _fits_reality),
    "finesure": Source(_asked_finesure, _entries, _stored_entries),
}


def rows_of(folder: Path, name: str) -> Iterator[Row]:
    """Yield the replies of one file."""
    with gzip.open(folder / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def read(asked: Prompt, text: str) -> object:
    """Return what deep reads: a vote, a score, or the labels of a list; None for nothing."""
    if asked.output == "json":
        return asked.entries(text)
    judgment = asked.parse(text, finish_reason="stop")
    if judgment.vote == -1:
        return None
    return judgment.score if asked.kind == "score" else judgment.vote


def same(said: object, meant: object) -> bool:
    """Tell whether two readings are one, scores to six digits."""
    return said == meant or (isinstance(said, float) and isinstance(meant, float) and abs(said - meant) < 1e-6)


def measure(folder: Path, name: str) -> tuple[Counter[str], list[dict[str, object]]]:
    """Return the counts of one file, and the replies that are not read as meant."""
    counts: Counter[str] = Counter()
    odd = []
    started = time.process_time()
    for row in rows_of(folder, name):
        text = row["reply"] or ""
        meant, stored = SOURCES[name].meant(row), SOURCES[name].stored(row)
        message = read(SOURCES[name].asked(row), text)
        counts["replies"] += 1
        counts["contradicted"] += stored is not None and meant is not None and not same(stored, meant)
        if meant is None:
            kind = "no verdict" if message is None else "read where the form holds none"
        else:
            counts["with a verdict"] += 1
            kind = "unread" if message is None else "as meant" if same(message, meant) else "otherwise"
        counts[kind] += 1
        if kind not in ("as meant", "no verdict"):
            odd.append(
                {"kind": kind, "file": name, "meant": meant, "read": message, "model": row["model"], "reply": text}
            )
    counts["milliseconds"] = round(1000 * (time.process_time() - started))
    return counts, odd


def main() -> None:
    """Print a line a file, and some of the replies that are not read as meant."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=[])
    parser.add_argument("--folder", type=Path, default=FOLDER)
    parser.add_argument("--show", type=int, default=0)
    parser.add_argument("--list", type=Path)
    args = parser.parse_args()
    everything = []
    for name in args.names or SOURCES:
        counts, odd = measure(args.folder, name)
        n = max(counts["with a verdict"], 1)
        print(  # noqa: T201
            f"{name:14} {counts['with a verdict']:5} with a verdict: {counts['as meant'] / n:7.2%} as meant, "
            f"{counts['otherwise'] / n:6.2%} otherwise, {counts['unread'] / n:6.2%} unread; "
            f"{counts['no verdict']} hold none or two ({counts['read where the form holds none']} read); "
            f"{counts['contradicted']} stored otherwise; {counts['milliseconds'] / counts['replies']:.2f} ms a reply"
        )
        for kind in ("otherwise", "read where the form holds none", "unread"):
            for entry in [entry for entry in odd if entry["kind"] == kind][: args.show]:
                text = str(entry["reply"])
                ends = text if len(text) < 260 else f"{text[:110]} ... {text[-140:]}"
                print(f"    {kind}: meant {entry['meant']}, read {entry['read']}: {ends!r}")  # noqa: T201
        everything += odd
    if args.list:
        args.list.write_text("".join(json.dumps(entry, ensure_ascii=False) + "\n" for entry in everything))


if __name__ == "__main__":
    main()
