"""Score text: run the judges that a model names, and turn what they say into P(consistent)."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from deep._files import whole_file
from deep.asking._registry import Asked, Panel
from deep.asking._vote_files import chunks
from deep.model import Model, ScoreOptions, match_columns, score_rows, writer
from deep.records import ABSTAIN, Example, Judgment

if TYPE_CHECKING:
    from deep.asking._plan import Plan
    from deep.asking._run import Settings
    from deep.datasets import Examples

__all__ = ["Scored", "ask_panel", "plans_of", "score_examples", "write_scored"]

Said = Mapping[str, Judgment]


@dataclass(frozen=True)
class Scored:
    """One example with what its judges said, and the columns of its scores.

    Parameters
    ----------
    example : Example
    judgments : mapping of str to Judgment
        By the judge's own name.
    columns : dict
        A row of the scores.
    not_asked : sequence of str, optional
        Judges that were not needed, where they are asked one by one.
    """

    example: Example
    judgments: Said
    columns: dict[str, Any]
    not_asked: Sequence[str] | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        judges = [
            {
                "judge": name,
                "vote": None if judgment.vote == ABSTAIN else judgment.vote,
                "reason": judgment.reason,
                "rationale": judgment.rationale,
                "evidence": list(judgment.evidence),
            }
            for name, judgment in self.judgments.items()
        ]
        spared = {} if self.not_asked is None else {"not_asked": list(self.not_asked)}
        return {**self.columns, "judges": judges, **spared}


def plans_of(panel: Panel, examples: "Examples", endpoint: str) -> "list[Plan]":
    """Return what has to be asked: a plan for each model and way of asking."""
    from deep.asking._plan import Plan

    return [_plan(Plan, how, panel, examples, endpoint) for how in panel.asked]


def _plan(make: Any, how: Asked, panel: Panel, examples: "Examples", endpoint: str) -> Any:
    return make(
        examples=examples,
        prompts=tuple(panel.prompts.get(how, ())),
        models=(how.model,),
        endpoint=endpoint,
        samples=how.samples,
        temperature=how.temperature,
        max_tokens=how.max_tokens,
        judges=tuple(panel.staged.get(how, ())),
    )


def ask_panel(plans: "Sequence[Plan]", settings: "Settings") -> str | None:
    """Ask what the ledger lacks; return why it stopped, None where everything is settled."""
    from deep.asking._run import run_plan

    for plan in plans:
        stopped = run_plan(plan, settings).stopped
        if stopped is not None:
            return stopped
    return None


def score_examples(
    model: Model,
    panel: Panel,
    examples: "Examples",
    plans: "Sequence[Plan]",
    ledger: str | None,
    options: ScoreOptions,
) -> Iterator[list[Scored]]:
    """Yield scored examples, some at a time; what was asked is read from the ledger."""
    offline = panel.offline
    with ExitStack() as stack:
        history: Any = None
        if ledger is not None:
            from deep.llm import History

            history = stack.enter_context(History(ledger))
        for some in chunks(examples):
            said: list[dict[str, Judgment]] = [{} for _ in some]
            for plan in plans:
                _read(plan, some, history, said)
            for row, judged in zip(said, offline.judge(some), strict=True):
                row |= judged
            yield _score(model, some, said, options)


def _read(plan: "Plan", examples: Sequence[Example], history: Any, said: list[dict[str, Judgment]]) -> None:
    """Enter what one plan's judges said of some examples."""
    from deep.asking._plan import read_answer
    from deep.asking._replay import Replay
    from deep.prompt_pool import pool_judgments

    place = {(str(example.dataset), example.example_id): row for example, row in zip(examples, said, strict=True)}
    requests = list(replace(plan, examples=examples).requests())  # type: ignore[arg-type]
    answers = history.answers([request.key for request in requests])
    samples: dict[tuple[str, str, str], list[Judgment]] = {}
    for request in requests:
        reply = getattr(answers.get(request.key), "reply", None)
        judgment = None if reply is None else read_answer(request, reply)
        identity = request.dataset, request.item, request.voter
        samples.setdefault(identity, []).append(judgment or Judgment(vote=ABSTAIN, reason="failed"))
    for (dataset, item, voter), judgments in samples.items():
        place[dataset, item][voter] = judgments[0] if len(judgments) == 1 else pool_judgments(judgments)
    for program, value in Replay(lambda: plan.programs(examples), plan.endpoint, history).values():
        judgment = value if isinstance(value, Judgment) else Judgment(vote=ABSTAIN, reason="unparsable")
        place[program.dataset, program.item][program.voter] = judgment


def _score(model: Model, examples: Sequence[Example], said: Sequence[Said], options: ScoreOptions) -> list[Scored]:
    names = list(dict.fromkeys(name for row in said for name in row))
    columns = match_columns(model.voters, names, allow_mismatch=options.allow_mismatch)
    wanted = [names[column] for column in columns if column is not None]
    votes = np.array([[row[name].vote for name in wanted] for row in said], dtype=np.int8)
    rows = [
        {"dataset": str(example.dataset), "item_id": example.example_id, "label": example.label, **scores}
        for example, scores in zip(examples, score_rows(model, votes, options), strict=True)
    ]
    return [
        Scored(example, {name: judgments[name] for name in wanted}, row)
        for example, judgments, row in zip(examples, said, rows, strict=True)
    ]


def write_scored(scored: Iterator[list[Scored]], out: Path, schema: Any) -> int:
    """Write scored examples: rows of scores, or with ending .jsonl also what each judge said."""
    import pyarrow as pa

    n = 0
    with whole_file(out) as scratch, ExitStack() as stack:
        if out.suffix.lower() == ".jsonl":
            file = stack.enter_context(scratch.open("w", encoding="utf-8"))
            for some in scored:
                file.writelines(json.dumps(row.as_dict(), ensure_ascii=False) + "\n" for row in some)
                n += len(some)
        else:
            table = stack.enter_context(writer(scratch, out.suffix.lower(), schema))
            for some in scored:
                table.write_table(pa.Table.from_pylist([row.columns for row in some], schema=schema))
                n += len(some)
        stack.close()  # before the file takes its place
    return n
