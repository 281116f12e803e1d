"""`deep score`: P(consistent) by a fitted model, of votes or of text that its judges read first."""

import argparse
import json
import math
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deep._files import check_out
from deep.asking import Finder, Panel, Scored, ask_panel, plans_of, score_examples, write_scored
from deep.console import (
    HelpFormatter,
    Values,
    add_call_options,
    add_example_options,
    call_settings,
    endpoint_of,
    examples_from,
    guarded,
)
from deep.exceptions import InputError
from deep.model import (
    Model,
    ScoreOptions,
    check_prior,
    load,
    prior_lines,
    score_at_learned_prior,
    score_file,
    score_schema,
)

if TYPE_CHECKING:
    from deep.datasets import Examples

__all__ = ["main"]

BUDGET, INTERRUPTED = 3, 130

LARGEST_TEXT = 1 << 26
"""Bytes of a source or a claim in a file of its own."""

LEARNED = "learned"

EXAMPLES = """\
examples:
  deep score model.json --votes votes.parquet --out scores.parquet
      P(consistent) and its interval for every row of votes; .csv likewise
  deep score model.json --source article.txt --claim summary.txt
      run the judges that the model names on one pair; what each said, and why
  deep score model.json --input claims.csv --out scores.jsonl
      the same for a file of examples; asked again, it asks LLMs only what is missing
  deep score model.json --input claims.csv --out scores.csv --sequential
      ask the judges one by one, and no more of them than it takes to know the decision of all
"""


def parser() -> argparse.ArgumentParser:
    """Return the options of the command."""
    p = argparse.ArgumentParser(
        prog="deep score",
        description="Give a calibrated P(consistent) by a model that `deep fit` wrote.",
        epilog=EXAMPLES,
        formatter_class=HelpFormatter,
    )
    several: dict[str, Any] = {"action": Values, "nargs": "+", "default": []}
    p.add_argument("model_file", metavar="MODEL.json", help="a model file")
    what = p.add_argument_group("what to score")
    what.add_argument("--votes", metavar="FILE", **several, help="tables of votes")
    what.add_argument("--input", metavar="EXAMPLES", help="a benchmark, or a file with the columns source and claim")
    what.add_argument("--source", metavar="FILE", help="a text file; - for standard input")
    what.add_argument("--claim", metavar="FILE", help="a text file; - for standard input")
    what.add_argument("--source-text", metavar="TEXT", help="in place of --source")
    what.add_argument("--claim-text", metavar="TEXT", help="in place of --claim")
    p.add_argument("--out", type=Path, metavar="FILE", help="scores: .csv, .parquet, or of text .jsonl with rationales")
    p.add_argument(
        "--prior",
        metavar="P|learned",
        help="expected share of consistent rows, or 'learned': estimated for each dataset of --votes; default: 0.5",
    )
    p.add_argument("--allow-mismatch", action="store_true", help="take votes of another prompt version or model")
    p.add_argument("--allow-missing", action="store_true", help="of --votes: a voter without a column has no vote")
    p.add_argument("--json", action="store_true", help="print JSON and nothing else")
    judges = p.add_argument_group("judges of text")
    judges.add_argument("--prompt", metavar="FILE", **several, help="TOML prompts besides those of deep, or folders")
    judges.add_argument("--encoder", metavar="DIR", **several, help="folders of models that the hub does not have")
    turns = p.add_argument_group("asking one by one")
    turns.add_argument("--sequential", action="store_true", help="stop where the rest cannot change the decision")
    turns.add_argument(
        "--error-cost",
        type=float,
        metavar="N",
        help="stop where asking costs more than the errors it spares; N for each, in dollars where all prices are "
        "known, else in calls",
    )
    turns.add_argument("--dry-run", action="store_true", help="say what it saves on the training data; send nothing")
    add_call_options(p)
    add_example_options(p)
    return p


def prior_of(args: argparse.Namespace) -> float | None:
    """Return the class prior that was given as a number; None where none was, or it is to be learned."""
    if args.prior == LEARNED and not args.votes:
        raise InputError("`prior` must be a number with text: an estimate needs the votes of a whole dataset.")
    if args.prior in (None, LEARNED):
        return None
    try:
        number = float(args.prior)
    except ValueError:
        raise InputError(f"`prior` must be a number or 'learned'. Got {args.prior!r}.") from None
    return check_prior(number)


def text_of(args: argparse.Namespace, name: str) -> str:
    """Return the source or the claim."""
    path, text = getattr(args, name), getattr(args, f"{name}_text")
    if (path is None) == (text is None):
        raise InputError(f"`{name}` or `{name}_text` must be given. Got {'neither' if path is None else 'both'}.")
    if text is None:
        text = _read(path, name)
    if not text.strip() or "\0" in text:
        raise InputError(f"`{name}` must be text. Got {'a NUL byte' if text.strip() else 'nothing'}.")
    return str(text)


def _read(path: str, name: str) -> str:
    try:
        raw = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
        if len(raw) > LARGEST_TEXT:
            raise InputError(f"`{name}` must have at most {LARGEST_TEXT:,} bytes. Got {len(raw):,} in {path!r}.")
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"`{name}` must be UTF-8. Got byte {error.start} of {path!r}.") from None
    except OSError as error:
        raise InputError(f"`{name}` must be a readable file. Got {path!r}: {error.strerror}.") from None


def score_votes(model: Model, args: argparse.Namespace, options: ScoreOptions) -> int:
    """Score tables of votes."""
    if args.out is None:
        raise InputError("`out` must be given with `votes`. Got none.")
    out = check_out(args.out, [".csv", ".parquet"])
    if args.prior == LEARNED:
        found = score_at_learned_prior(model, args.votes, out, options)
        priors = {name: vars(prior) for name, prior in found.items()}
        _say(args, {"priors": priors, "out": str(out)}, "\n".join([*prior_lines(found), f"scored: {out}"]))
        return 0
    n = score_file(model, args.votes, out, options)
    _say(args, {"rows": n, "out": str(args.out)}, f"{n} rows scored: {args.out}")
    return 0


def _say(args: argparse.Namespace, values: dict[str, Any], text: str) -> None:
    sys.stdout.write((json.dumps({"schema_version": 1, **values}, indent=2) if args.json else text) + "\n")


def score_texts(model: Model, args: argparse.Namespace, options: ScoreOptions) -> int:
    """Run the model's judges on text, and score what they say."""
    if len(args.model) > 1:
        raise InputError(f"`model` must name one model to ask in place of the fitted ones. Got {len(args.model)}.")
    if args.allow_missing:
        raise InputError("`allow_missing` must be given with `votes`. Got it with text, whose judges are all run.")
    out, examples = args.out, _examples(args)
    if args.input is not None and out is None:
        raise InputError("`out` must be given with `input`. Got none.")
    if out is not None:
        check_out(out, [".csv", ".jsonl", ".parquet"])
    examples.check()
    if args.sequential:
        from deep.asking import check_sequential

        check_sequential(model)
    panel = Finder(args.prompt, args.encoder, args.model[0] if args.model else None, args.allow_mismatch).panel(model)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        if args.sequential:
            return score_one_by_one(model, args, panel, examples, options, folder)
        plans, ledger = [], None
        if panel.asked:
            plans = plans_of(panel, examples, endpoint_of(args))
            settings = call_settings(args, out or folder / "one")
            ledger = settings.ledger
            stopped = ask_panel(plans, settings)
            if stopped is not None:
                return _stopped(stopped)
        _deliver(args, score_examples(model, panel, examples, plans, ledger, options), score_schema(), {})
    return 0


def score_one_by_one(
    model: Model, args: argparse.Namespace, panel: Panel, examples: "Examples", options: ScoreOptions, folder: Path
) -> int:
    """Score text by asking its judges one by one; say first what that would have done to the training data."""
    from deep.asking import OneByOne, sequential_schema, training_lines

    if not panel.asked:
        raise InputError("`sequential` must be given with a model of judges that are asked. Got none. Score without.")
    settings = call_settings(args, args.out or folder / "one")
    plans = plans_of(panel, examples, endpoint_of(args))
    work = OneByOne.prepare(model, panel, plans, settings, options, args.error_cost)
    training = work.training()
    if not args.json:
        sys.stderr.write("\n".join([*training_lines(training), ""]))
    if args.dry_run:
        _say(args, {"dry_run": True, "training": training}, "nothing was sent")
        return 0
    found = work.run(settings)
    if isinstance(found, str):
        return _stopped(found)
    _deliver(args, found, sequential_schema(), {"training": training})
    return 0


def _stopped(why: str) -> int:
    sys.stderr.write(f"stopped: {why}; nothing was scored. The same command asks what is missing.\n")
    return BUDGET if why == "budget" else INTERRUPTED


def _deliver(args: argparse.Namespace, scored: Iterator[list[Scored]], schema: Any, more: dict[str, Any]) -> None:
    """Write scored examples, or print the one of a pair."""
    if args.input is None:
        (one,) = next(scored)
        if args.out is not None:
            write_scored(iter([[one]]), args.out, schema)
        _say(args, {**one.as_dict(), **more}, "\n".join(pair_lines(one)))
    else:
        n = write_scored(scored, args.out, schema)
        _say(args, {"rows": n, "out": str(args.out), **more}, f"{n} examples scored: {args.out}")


def _examples(args: argparse.Namespace) -> "Examples":
    if args.input is not None:
        return examples_from(args, args.input)
    from deep.datasets import examples_from_dataset

    return examples_from_dataset([{"source": text_of(args, "source"), "claim": text_of(args, "claim")}], name="text")


def pair_lines(scored: Scored) -> list[str]:
    """Return what is to be said of one pair, for people."""
    row = scored.columns
    bounds = "no interval" if row["p_low"] is None else f"90 % interval {row['p_low']:.3f} to {row['p_high']:.3f}"
    lines = [f"P(consistent) = {row['p_consistent']:.4f} ({bounds})"]
    for name, judgment in scored.judgments.items():
        vote = judgment.reason if judgment.reason else str(judgment.vote)
        why = " ".join((judgment.rationale or "").split())
        lines.append(f"  {name}: {vote}{f'. {why}' if why else ''}")
    if scored.not_asked is not None:
        lines[1:1] = [f"decision: {'consistent' if row['decision'] else 'inconsistent'}"]
        lines += [f"  {name}: not asked" for name in scored.not_asked]
    return lines


def run(argv: Sequence[str] | None) -> int:
    """Read the options, score and report."""
    args = parser().parse_args(argv)
    pair = [name for name in ("source", "claim", "source_text", "claim_text") if getattr(args, name) is not None]
    if bool(args.votes) + (args.input is not None) + bool(pair) != 1:
        raise InputError("`votes`, `input`, or `source` and `claim` must be given. Got none or more than one of them.")
    options = ScoreOptions(args.allow_mismatch, args.allow_missing, prior_of(args))
    _check_turns(args)
    model = load(args.model_file)
    return score_votes(model, args, options) if args.votes else score_texts(model, args, options)


def _check_turns(args: argparse.Namespace) -> None:
    if args.sequential and args.votes:
        raise InputError("`sequential` must be given with text. Got it with votes, which have all been asked for.")
    given = [name for name in ("error_cost", "dry_run") if getattr(args, name) not in (None, False)]
    if given and not args.sequential:
        raise InputError(f"`{given[0]}` must be given with `sequential`. Got it without.")
    if args.error_cost is not None and not 0 < args.error_cost < math.inf:
        raise InputError(f"`error_cost` must be above 0. Got {args.error_cost!r}.")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status."""
    return guarded(run, argv)


if __name__ == "__main__":
    sys.exit(main())
