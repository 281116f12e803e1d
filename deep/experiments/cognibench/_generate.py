"""Let LLMs talk about texts, for labeling.

For instance:

  deep cognibench generate --texts texts.jsonl --llm gpt-4o-mini --out dialogues.jsonl --budget 5
      three turns about the `source` of each row, each asked for by one of six personas
  deep cognibench label --data dialogues.jsonl --judge auto --llm gpt-4o-mini --out labeled --budget 5
      and the sentences of the answers labeled
"""

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import MISSING, dataclass
from itertools import product
from pathlib import Path

from deep import console
from deep._util.checks import check_choice
from deep._util.files import JsonObject, check_out, packaged, whole_file, write_json_lines
from deep._util.options import option
from deep.asking import Entry, ProgramId
from deep.datasets import read_rows
from deep.exceptions import ExitStatus, InputError
from deep.experiments import study
from deep.experiments.stepwise import fenced_messages
from deep.judges import Program, Question
from deep.prompt_pool import why_unusable
from deep.records import Reason


@dataclass(frozen=True)
class _Generate:
    """Options of the command.

    Parameters
    ----------
    texts : str
        Rows with a source (CSV, JSONL or Parquet), maybe example_id.
    turns : int, default=3
        Messages of the user, and answers.
    words : int, default=200
        Most words of an answer.
    persona : tuple of str
        Personas that ask, in turn; default: all six.
    asker : str, optional
        The LLM that plays the persona; default: the first that answers.
    out : Path
        Output .jsonl with one turn per line, which `label` reads.
    dry_run : bool, default=False
        Print the most calls it can take, and send nothing.
    """

    texts: str = option(MISSING, "FILE")
    turns: int = option(3, "N")
    words: int = option(200, "N")
    persona: tuple[str, ...] = option((), "NAME")
    asker: str | None = option(None, "LLM")
    out: Path = option(MISSING, "FILE")
    dry_run: bool = option(False)


add_arguments = console.adder(_Generate, "json", *console.CALL_TOPICS)


def _dialogues() -> JsonObject:
    return packaged(__package__, "dialogues.toml")


@dataclass(frozen=True, slots=True)
class Topic:
    """A text, who asks about it, and the LLM that answers."""

    text_id: str
    text: str
    persona: str
    llm: str

    @property
    def identity(self) -> ProgramId:
        """Return the name of its program."""
        return ProgramId(f"cognibench-dialogue/{self.llm}", "cognibench-generated", self.text_id)


# Messages of the user and of the LLM in turn, and why they ended before their time.
Said = tuple[list[str], Reason | None]


def dialogue_program(topic: Topic, turns: int, words: int, asker: str) -> Program[Said]:
    """Ask for the user's messages and the answers to them in turn; what did not come ends the dialogue."""
    talk: list[str] = []
    for number in range(2 * turns):
        (reply,) = yield [_question(topic, talk, turns, asker) if number % 2 == 0 else _answer(topic, talk, words)]
        reason = why_unusable(reply)
        message = "" if reply is None else (reply.text or "").strip()
        if reason or not message:
            return talk[: number // 2 * 2], reason or "unparsable"
        talk.append(message)
    return talk, None


def _question(topic: Topic, talk: Sequence[str], turns: int, asker: str) -> Question:
    prompt, number = _dialogues()["question"], len(talk) // 2 + 1
    aim = prompt["aims"]["first" if number == 1 else "last" if number == turns else "middle"]
    persona = _dialogues()["personas"][topic.persona]
    texts = {"persona": persona, "number": str(number), "turns": str(turns), "aim": aim}
    parameters = {**prompt["parameters"], "model": asker}
    messages = fenced_messages(prompt, _material(topic, talk), **texts)
    return Question(step="user", messages=messages, parameters=parameters)


def _answer(topic: Topic, talk: Sequence[str], words: int) -> Question:
    prompt = _dialogues()["answer"]
    messages = fenced_messages(prompt, _material(topic, talk), words=str(words))
    return Question(step="assistant", messages=messages, parameters=prompt["parameters"])


def _material(topic: Topic, talk: Sequence[str]) -> dict[str, str]:
    return {"text": topic.text, "dialogue": _history(talk) or "(nothing yet)"}


def _history(talk: Sequence[str]) -> str:
    """Return messages as the published dialogues have them."""
    return "\n\n".join(f"<{('user', 'assistant')[i % 2]}> {message}" for i, message in enumerate(talk))


def run(args: argparse.Namespace) -> int:
    """Ask for the dialogues, write and report."""
    out, llms = check_out(args.out, [".jsonl"]), console.check_models(args)
    console.check_least(args, turns=1, words=1)
    texts = _texts(Path(args.texts))
    personas = [check_choice(name, sorted(_dialogues()["personas"]), "persona") for name in args.persona]
    personas = personas or list(_dialogues()["personas"])
    topics = [Topic(*text, personas[i % len(personas)], llm) for (i, text), llm in product(enumerate(texts), llms)]
    if args.dry_run:
        calls = 2 * args.turns * len(topics)
        sys.stdout.write(f"at most {calls:,} calls for {len(topics):,} dialogues. Nothing was sent\n")
        return ExitStatus.DONE
    asker = args.asker or llms[0]

    def programs() -> Iterator[Entry]:
        for topic in topics:
            yield topic.identity, topic.llm, dialogue_program(topic, args.turns, args.words, asker)

    values = study.ask_programs(args, programs)
    rows = [row for topic in topics for row in _rows(topic, values[topic.identity][0], alone=len(llms) == 1)]
    ended = Counter(reason for _, reason in values.values() if reason)
    with whole_file(out) as scratch:
        write_json_lines(scratch, rows)
    early = "".join(f", {n:,} ended early ({reason})" for reason, n in sorted(ended.items()))
    line = f"{len(topics):,} dialogues, {len(rows):,} turns{early}: {out}"
    result = {"dialogues": len(topics), "turns": len(rows), "ended_early": ended, "out": str(out)}
    console.print_result(result, [line], as_json=args.json)
    return ExitStatus.DONE


def _texts(path: Path) -> list[tuple[str, str]]:
    """Return the id and the text of each row; the id is its number where it has none."""
    result: dict[str, str] = {}
    for number, (where, row) in enumerate(read_rows(path, ("source", "example_id"), param="texts"), start=1):
        name, text = str(row.get("example_id") or number), row.get("source")
        if not isinstance(text, str) or not text.strip() or name in result:
            raise InputError(
                f"`texts` must have a `source` in each row, and its `example_id`s must be unique. Got "
                f"{(name if name in result else text)!r} at {where}."
            )
        result[name] = text
    if not result:
        raise InputError(f"`texts` must have at least one row. Got none in {str(path)!r}.")
    return list(result.items())


def _rows(topic: Topic, talk: Sequence[str], *, alone: bool) -> Iterator[JsonObject]:
    """Yield the turns of a dialogue as examples, in the form of the published ones."""
    dialogue = topic.text_id if alone else f"{topic.text_id}/{topic.llm}"
    for number in range(len(talk) // 2):
        source = f"{topic.text.strip()}\n\n{_history(talk[: 2 * number + 1])}"
        identity = {"example_id": f"{dialogue}_{number}", "dataset": "cognibench-generated", "document_id": dialogue}
        row = {"source": source, "claim": talk[2 * number + 1], **identity}
        yield {**row, "model": topic.llm, "persona": topic.persona}
