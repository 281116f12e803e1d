"""Runs of CogniBench: methods are measured, a judge's labels become training data, and LLMs talk about texts."""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

from deep import console
from deep._util.checks import check_choice
from deep._util.columns import escape_frame
from deep._util.files import (
    JsonObject,
    atomic_file,
    atomic_files,
    check_out,
    check_replaceable,
    read_asset,
    read_bytes,
    write_json_lines,
)
from deep._util.names import sentence_spans
from deep.asking import ProgramEntry, ProgramId
from deep.datasets import ending_of, read_examples, read_rows
from deep.evaluate import DatasetVerdict, frame_records, markdown
from deep.exceptions import ExitStatus, InputError
from deep.experiments import study
from deep.experiments.cognibench import _cognibench_tables as build
from deep.experiments.cognibench import _methods
from deep.experiments.cognibench._turns import (
    Answered,
    Turn,
    accuracy_of,
    chats,
    classify_sentences,
    complete,
    read_dialogues,
    read_labels,
    read_turns,
    read_voted,
    turns_of_split,
)
from deep.experiments.printed import load_tag_judge
from deep.experiments.stepwise import fenced_messages
from deep.experiments.tiered import AutoLabelJudge, SentenceJudge, SentenceVerdict, TieredJudge, load_contrasts
from deep.judges import Program, Question
from deep.prompt_pool import why_unusable
from deep.records import Example, Reason


def evaluate(args: argparse.Namespace) -> int:
    """Run ``deep cognibench``."""
    published = read_turns(args.data)
    turns = turns_of_split(published, args)
    judges = _methods.asked_judges(args)
    if args.dry_run:
        return _dry_run(turns, judges)
    check_replaceable(args.out)
    # Without a classifier the LLM says the types, or nobody asks for them.
    classify = args.llm and "auto" in args.judge and args.classifier != "llm"
    kinds = classify_sentences(turns, published) if classify else None
    spans = [method for entry in args.spans for method in _methods.read_spans(entry, turns)]
    methods = [
        *_methods.constants(turns),
        *spans,
        *_encoders(args, turns),
        *_methods.ask_judges(args, turns, judges, kinds),
    ]
    _write(args, turns, methods, None if kinds is None else accuracy_of(kinds, turns))
    return ExitStatus.DONE


def _dry_run(turns: Sequence[Turn], judges: Sequence[_methods.AskedJudge]) -> int:
    calls = {one: sum(one.judge.most_calls(Example(t.source, t.response, t.turn_id)) for t in turns) for one in judges}
    width = max((len(f"{one.name} ({one.model})") for one in judges), default=0)
    lines = [f"{f'{one.name} ({one.model})':<{width}}  at most {n:,} calls" for one, n in calls.items()]
    lines.append(f"{sum(calls.values()):,} calls at most; questions that judges share are asked once. Nothing was sent")
    sys.stdout.write("\n".join([*lines, ""]))
    return ExitStatus.DONE


def _encoders(args: argparse.Namespace, turns: Sequence[Turn]) -> list[_methods.Method]:
    if not args.encoder:
        return []
    from deep.integrations.encoders import load_encoder

    label = args.entailment_label
    label = int(label) if label is not None and label.isdecimal() else label
    encoders = [load_encoder(name, entailment_label=label) for name in args.encoder]
    return [method for encoder in encoders for method in _methods.read_encoder(encoder, turns, args.neutral)]


def _write(
    args: argparse.Namespace, turns: Sequence[Turn], methods: Sequence[_methods.Method], accuracy: float | None
) -> None:
    """Write tables, figures and every sentence, and print the summary."""
    scored = build.scores_of(turns, methods, args.level)
    frames = build.tables(turns, scored, args.level)
    split = {"split": args.split, "test_share": args.test_share, "seed": args.split_seed}
    results = {**build.results_of(turns, scored), "level": args.level, "samples": args.samples, "split": split}
    sentences = escape_frame(build.sentences(turns, methods, args.level))
    study.publish(
        args,
        build.verdict_of(results, turns),
        results | {"classifier": {"mean_accuracy": accuracy}},
        build.summary_text(results, frames, args.out),
        tables=frames,
        titles=build.TITLES,
        shown=study.percentages,
        paper="cognibench",
        figures=build.draw_figures(frames, results["counts"]),
        more=lambda folder: sentences.to_csv(folder / "sentences.csv", index=False, lineterminator="\n"),
    )


FIGURE, CURVE_TITLE = "figure12-training-size", "Figure 12: F1 of the tuned detector by training size, in percent"


def curve(args: argparse.Namespace) -> int:
    """Run ``deep cognibench curve``."""
    check_replaceable(args.out)
    points = sorted((_point(pair, args.method) for pair in args.points), key=lambda row: row["training chats"])
    for pair in args.points:
        console.check_not_in(args.out, Path(pair.partition("=")[2]), "points")
    table = pd.DataFrame(points)
    fits = {part: fit for part in build.PARTS if (fit := _fit(points, part)) is not None}
    slopes = {part: {"intercept": low, "per_tenfold": slope} for part, (low, slope) in fits.items()}
    study.publish(
        args,
        _curve_verdict(points, fits),
        {"points": frame_records(table), "fits": slopes},
        "\n".join([CURVE_TITLE, "", *markdown(study.percentages(table)), ""]),
        lines=[f"{part}: {100 * slope:+.2f} points by ten times as many chats" for part, (_, slope) in fits.items()],
        tables={FIGURE: table},
        titles={FIGURE: CURVE_TITLE},
        shown=study.percentages,
        figures={FIGURE: build.draw_curve(table, fits)},
    )
    return ExitStatus.DONE


def _curve_verdict(points: Sequence[JsonObject], fits: Mapping[str, tuple[float, float]]) -> DatasetVerdict:
    """Return the answer of a curve: the best point, and what ten times the chats bring."""
    best, (_, slope) = max(points, key=lambda row: row["overall"] or 0.0), fits.get("overall", (0.0, float("nan")))
    suspect = f"F1 is highest with {best['training chats']:,} chats, {100 * (best['overall'] or 0.0):.1f} %."
    trust = f"Ten times the chats change F1 by {100 * slope:+.1f} points, by a line through {len(points)} sizes."
    return DatasetVerdict(f"{len(points)} tuned detectors.", suspect, trust, "add chats while F1 rises", picture=FIGURE)


def _point(pair: str, method: str | None) -> JsonObject:
    """Return a row of the curve from SIZE=RUN."""
    left, equals, right = pair.partition("=")
    if not (equals and left.isdecimal() and int(left)):
        raise InputError(f"`points` must be SIZE=RUN, SIZE a number of training chats. Got {pair!r}.")
    try:
        return {"training chats": int(left), **_read_f1(right, method)}
    except (KeyError, TypeError):
        raise InputError(f"`points` must be runs of `deep cognibench`. Got another kind in {right!r}.") from None


def _read_f1(run: str, method: str | None) -> JsonObject:
    """Return F1 of one method of a run."""
    try:
        results = json.loads(read_bytes(Path(run) / "results.json", "points"))
    except (OSError, ValueError) as error:
        reason = str(error).partition("\n")[0].rstrip(".")
        raise InputError(f"`points` must be folders of runs. Got {str(Path(run))!r}: {reason}.") from None
    methods = results.get("methods", []) if isinstance(results, dict) else []
    matches = [m for m in methods if (m["group"] == "direct" if method is None else m["method"] == method)]
    if len(matches) != 1:
        names = ", ".join(m["method"] for m in methods) or "none"
        raise InputError(f"`method` must be one method of {run!r}: {names}. Got {method!r}.")
    parts = matches[0]["parts"]
    result = {part: parts[part]["f1"] for part in build.PARTS} | {"macro mean": matches[0]["macro_f1"]}
    if not all(value is None or 0 <= value <= 1 for value in result.values()):
        raise TypeError(result)
    return {"method": matches[0]["method"], **result}


def _fit(points: Sequence[JsonObject], part: str) -> tuple[float, float] | None:
    """Return the intercept and the slope of F1 on the logarithm of the size, by least squares; None of one size."""
    rows = [row for row in points if row[part] is not None]
    if len({row["training chats"] for row in rows}) < 2:
        return None
    sizes = np.log10([float(row["training chats"]) for row in rows])
    slope, low = np.polyfit(sizes, [float(row[part]) for row in rows], 1)
    return float(low), float(slope)


def label(args: argparse.Namespace) -> int:
    """Run ``deep cognibench label``."""
    (llm, *others) = console.check_models(args)
    if others:
        raise InputError(f"`llm` must be one LLM. Got {others[0]!r} too. Run once for each.")
    console.check_draws(args, "samples")
    judge = _judge(args)
    check_replaceable(args.out)
    turns = turns_of_split(_turns(args.data), args)
    if args.dry_run:
        calls = sum(judge.most_calls(Example(t.source, t.response, t.turn_id)) for t in turns)
        sys.stdout.write(f"at most {calls:,} calls for {len(turns):,} turns. Nothing was sent\n")
        return ExitStatus.DONE
    learned = args.classifier or ("llm" if ending_of(Path(args.data)) else args.data)
    classify = isinstance(judge, AutoLabelJudge) and learned != "llm"
    kinds = classify_sentences(turns, read_turns(learned)) if classify else None
    (readings,) = _methods.ask_about(args, [(judge, llm)], turns, kinds, dataset="cognibench-labeled")
    labeled = []
    for turn, reading in zip(turns, readings, strict=True):
        pairs = zip(turn.texts, reading.sentences, strict=True)
        labeled.append(replace(turn, sentences=tuple(replace(verdict, text=text) for text, verdict in pairs)))
    typed_by = "a classifier" if kinds is not None else None if args.prompt else "an LLM"
    _write_labels(args, labeled, {"judge": judge.voter(llm), "types_by": typed_by})
    return ExitStatus.DONE


def _judge(args: argparse.Namespace) -> SentenceJudge:
    """Return the judge that the options name."""
    if args.prompt is not None:
        return load_tag_judge(args.prompt, samples=args.samples, threshold=args.threshold)
    contrasts = None if args.examples is None else load_contrasts(args.examples)
    maker = AutoLabelJudge if args.judge == "auto" else TieredJudge
    return maker(samples=args.samples, threshold=args.threshold, contrasts=contrasts)


def _turns(data: str) -> list[Turn]:
    """Return all turns of a folder or of a file of examples, with their sentences and no verdicts."""
    if ending_of(Path(data)) is None:
        published = {turn.turn_id: turn.texts for turn in read_turns(data)}
        return [
            _unlabeled(t.turn_id, t.dialogue_id, t.source, t.response, t.generator, published.get(t.turn_id))
            for t in read_dialogues(data)[1]
        ]
    with console.naming_option("data"):
        examples = list(read_examples(data))
        written_by = [row.get("model") for _, row in read_rows(Path(data), ("model",), param="data")]
    return [
        _unlabeled(e.example_id, e.document_id or e.example_id, e.source, e.claim, str(llm) if llm else None)
        for e, llm in zip(examples, written_by, strict=True)
    ]


def _unlabeled(
    turn_id: str, dialogue_id: str, source: str, response: str, generator: str | None, texts: list[str] | None = None
) -> Turn:
    if texts is None:
        texts = [response[start:end] for start, end in sentence_spans(response)]
    return Turn(turn_id, dialogue_id, source, response, tuple(map(SentenceVerdict, texts)), generator)


def _write_labels(args: argparse.Namespace, turns: Sequence[Turn], settings: JsonObject) -> None:
    """Write the labels, the shares of types and of hallucinations by generating LLM, and the results."""
    generated = {turn.generator for turn in turns if turn.generator}
    name = "figure8-models" if generated else "shares-by-labels"
    groups = {llm: [t for t in turns if t.generator == llm] for llm in sorted(generated)}
    groups = groups or {settings["judge"]: list(turns)}
    origins = (
        (llm, [[(s.kind, s.hallucinated(args.level)) for s in turn.sentences] for turn in some])
        for llm, some in groups.items()
    )
    table = build.shares(origins)
    verdicts = Counter(str(sentence.verdict or "undecided") for turn in turns for sentence in turn.sentences)
    n, decided = verdicts.total(), verdicts.total() - verdicts["undecided"]
    result = int(table["factual hallucinated"].sum() + table["cognitive hallucinated"].sum())
    suspect = f"{result:,} of {decided:,} decided sentences are called hallucinated."
    trust = f"These labels are a judge's: {n - decided:,} sentences are undecided, and no person has seen any."
    basis = f"{len(turns):,} turns, {n:,} sentences, labeled by {settings['judge']}."
    verdict = DatasetVerdict(basis, suspect, trust, "label 30 of these sentences by hand, and compare", picture=name)
    results = {
        **settings,
        "level": args.level,
        "samples": args.samples,
        "turns": len(turns),
        "sentences": dict(sorted(verdicts.items())),
        "shares": {"table": name, "rows": frame_records(table)},
    }
    study.publish(
        args,
        verdict,
        results,
        "\n".join([build.TITLES[name], "", *markdown(study.percentages(table)), ""]),
        lines=[
            ", ".join(f"{n:,} {one}" for one, n in results["sentences"].items()),
            f"{len(turns):,} turns labeled by {settings['judge']}, types by {settings['types_by'] or 'nobody'}",
        ],
        tables={name: table},
        titles=build.TITLES,
        shown=study.percentages,
        figures={name: build.draw_shares(table)},
        more=lambda folder: write_json_lines(folder / "labels.jsonl", (turn.to_row() for turn in turns)),
    )


def export(args: argparse.Namespace) -> int:
    """Run ``deep cognibench export-sft``."""
    out = check_out(args.out, [".jsonl"])
    every = _read(args)
    turns = turns_of_split(every, args)
    answers = [(turn.turn_id, (turn.source, turn.response, bad)) for turn, bad in complete(turns, args.level)]
    if not answers:
        raise InputError(f"`level` must leave a turn whose sentences are all decided. Got none in {len(turns)}.")
    lines = []
    files = _files(out, answers, args.sizes)
    with atomic_files({str(path): path for path in files}) as partial:
        for path, some in files.items():
            write_json_lines(partial[str(path)], chats(pair for _, pair in some))
            lines.append(f"{len(some):,} chats: in {path}")
    n_open = len(turns) - len(answers)
    lines += [f"{n_open:,} turns left out, with a sentence that the judge left undecided"] if n_open else []
    rest = len(every) - len(turns)
    lines += [f"{rest:,} turns of other dialogues are left for --split test"] if rest and args.split == "train" else []
    sys.stdout.write("\n".join([*lines, ""]))
    return ExitStatus.DONE


def _read(args: argparse.Namespace) -> Sequence[Turn]:
    names = [name for name in ("data", "labels") if getattr(args, name) is not None]
    if len(names) != 1:
        raise InputError(f"`data` or `labels` must be given, and not both. Got {' and '.join(names) or 'neither'}.")
    if args.labels is not None:
        if args.votes:
            raise InputError("`votes` must be given with the examples as `data`. Got `labels`.")
        return read_labels(args.labels)
    return read_voted(args.data, args.votes, args.voter) if args.votes else read_turns(args.data)


def _files(
    out: Path, answers: list[tuple[str, Answered]], sizes: Sequence[str]
) -> dict[Path, list[tuple[str, Answered]]]:
    """Return the turns of each file; those of a smaller size are among those of a larger one."""
    wrong = [size for size in sizes if not size.isdecimal() or not 1 <= int(size) <= len(answers)]
    if wrong:
        raise InputError(f"`sizes` must be whole numbers from 1 to {len(answers)}. Got {wrong[0]!r}.")
    if not sizes:
        return {out: answers}
    shuffled = sorted(answers, key=lambda pair: sha256(pair[0].encode()).digest())
    return {out.with_stem(f"{out.stem}-{size}"): shuffled[: int(size)] for size in sizes}


def _dialogues() -> JsonObject:
    return read_asset(__package__, "dialogues.toml")


@dataclass(frozen=True, slots=True)
class Topic:
    """A text, who asks about it, and the LLM that answers.

    Parameters
    ----------
    text_id, text : str
        The text, and its name in the ledger.
    persona : str
        Who the user is that asks.
    llm : str
        The LLM that answers the user.
    """

    text_id: str
    text: str
    persona: str
    llm: str

    @property
    def identity(self) -> ProgramId:
        """Return the name of its program."""
        return ProgramId(f"cognibench-dialogue/{self.llm}", "cognibench-generated", self.text_id)


# Messages of the user and of the LLM in turn, and why they ended before their time.
DialogueOutcome = tuple[list[str], Reason | None]


def dialogue_program(topic: Topic, turns: int, words: int, asker: str) -> Program[DialogueOutcome]:
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


def generate(args: argparse.Namespace) -> int:
    """Run ``deep cognibench generate``."""
    out, llms = check_out(args.out, [".jsonl"]), console.check_models(args)
    console.check_minimum(args, turns=1, words=1)
    texts = _texts(Path(args.texts))
    personas = [check_choice(name, sorted(_dialogues()["personas"]), "persona") for name in args.persona]
    personas = personas or list(_dialogues()["personas"])
    topics = [Topic(*text, personas[i % len(personas)], llm) for (i, text), llm in product(enumerate(texts), llms)]
    if args.dry_run:
        calls = 2 * args.turns * len(topics)
        sys.stdout.write(f"at most {calls:,} calls for {len(topics):,} dialogues. Nothing was sent\n")
        return ExitStatus.DONE
    asker = args.asker or llms[0]

    def programs() -> Iterator[ProgramEntry]:
        for topic in topics:
            yield topic.identity, topic.llm, dialogue_program(topic, args.turns, args.words, asker)

    values = study.ask_programs(args, programs)
    rows = [row for topic in topics for row in _rows(topic, values[topic.identity][0], alone=len(llms) == 1)]
    ended = Counter(reason for _, reason in values.values() if reason)
    with atomic_file(out) as scratch:
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
