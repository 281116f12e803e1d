"""Pack the votes of a run to be passed on: with reasons, replies, versions and licences, without the texts of examples.

For instance:

  deep data pack votes.parquet --out rte-pack
      a folder; `deep loo --votes rte-pack` and `deep fit rte-pack` read it
  deep data pack votes.parquet --out rte-pack --licence RTE=MIT mine=CC0-1.0
      datasets of your own, whose texts may be quoted: replies and rationales go in, too
"""

import argparse
import gzip
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import MISSING, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import sqlalchemy as sa

import deep
from deep import console
from deep._util.files import atomic_folder, write_results
from deep._util.options import option
from deep.datasets import PACK_TABLE, file_beside, file_metadata, read_beside, read_votes
from deep.datasets.benchmarks import BENCHMARKS
from deep.exceptions import ExitStatus, InputError
from deep.judges import parse_voter
from deep.llm import History, read_reply, schema
from deep.records import VoteMatrix

# Licences under which parts of a text may be passed on; CC-BY-ND forbids them, and no licence allows nothing.
QUOTABLE_LICENCES = ("Apache-2.0", "CC-BY-4.0", "CC-BY-NC-4.0", "CC0-1.0", "MIT", "MIT-0")


@dataclass(frozen=True)
class _PackArgs:
    """Options of the command.

    Parameters
    ----------
    votes : Path
        The table that `deep ask` wrote, with the files beside it.
    out : Path
        The pack: a new folder, or an earlier pack's.
    licence : tuple of str
        Of texts that are of no benchmark. Without it replies and rationales, which quote the texts, stay out.
    ledger : str, optional
        Where the replies are. Default: VOTES.ledger.sqlite.
    """

    votes: Path = option(MISSING, "VOTES.parquet", flags=["votes"])
    out: Path = option(MISSING, "FOLDER")
    licence: tuple[str, ...] = option((), "[DATASET=]TEXT", nargs="+")
    ledger: str | None = option(None, "LEDGER")


add_arguments = console.adder(_PackArgs)


def run(args: argparse.Namespace) -> int:
    """Read, write and report."""
    origin = file_metadata(args.votes)
    if "run" not in origin:
        raise InputError(f"`votes` must be a Parquet table that `deep ask` wrote. Got {str(args.votes)!r}.")
    votes = read_votes(args.votes)
    own = {name: terms for name, _, terms in (word.rpartition("=") for word in args.licence)}
    licences = {
        name: _licence(name, origin.get("examples"), own.get(name) or own.get(""))
        for name in map(str, np.unique(votes.datasets))
    }
    if unknown := sorted(own.keys() - licences.keys() - {""}):
        raise InputError(f"`licence` must name datasets of the votes: {', '.join(licences)}. Got {unknown[0]!r}.")
    quotable = {name for name, (_, may_quote) in licences.items() if may_quote}
    ledger = args.ledger or str(file_beside(args.votes, "ledger").with_suffix(".sqlite"))
    has_replies = any(parse_voter(name).model for name in votes.voter_names)  # word checks and encoders have no replies
    if has_replies and args.ledger is None and not Path(ledger).is_file():
        raise InputError(f"`ledger` must be a file. Got none at {ledger!r}. Name the one of these votes by --ledger.")
    forms: dict[str, Counter[str]] = {name: Counter() for name in votes.voter_names}
    with atomic_folder(args.out) as folder:
        for kind in (None, "judgments", "reasons", "soft"):
            path = args.votes if kind is None else read_beside(args.votes, kind)
            if path is not None:
                place = folder / PACK_TABLE
                _copy(path, place if kind is None else file_beside(place, kind), origin, quotable)
        if has_replies:
            with gzip.open(folder / "replies.jsonl.gz", "wt", encoding="utf-8") as file, History(ledger) as history:
                for reply in _replies(history, votes, str(origin.get("endpoint"))):
                    forms[reply["judge"]][reply["form"]] += 1
                    reply["reply"] = reply["reply"] if reply["dataset"] in quotable else None
                    file.write(json.dumps(reply) + "\n")
        card = _card(votes, licences, forms)
        (folder / "README.md").write_text(_page(card), encoding="utf-8")
        write_results(folder, card)
    n_left = len(licences) - len(quotable)
    note = f"; datasets without replies and rationales, which quote the texts: {n_left}" if n_left else ""
    counts = f"{len(votes.item_ids):,} items, {len(votes.voter_names)} judges, {card['replies']:,} replies"
    lines = [f"{counts}: {args.out}{note}", f"next: deep loo --votes {args.out}, or deep fit {args.out}"]
    console.print_result(console.SCHEMA | card | {"out": str(args.out)}, lines, as_json=args.json)
    return ExitStatus.DONE


def _licence(dataset: str, examples: Any, own: str | None) -> tuple[str, bool]:
    """Return the licence of the texts of a dataset, and whether replies that quote them may be passed on.

    What a benchmark says goes before what the user says: a gated text stays out whoever packs it.
    """
    name = examples.get("benchmark") if isinstance(examples, dict) else None
    of = [
        b
        for b in BENCHMARKS.values()
        if b.name == name or dataset.casefold().replace("_", "-") in (b.datasets or (b.name,))
    ]
    if not of:
        return own or "not stated", own is not None
    gated = any(file.by_hand and not (file.optional or b.any_file) for b in of for file in b.files)
    return "; ".join(sorted({b.terms for b in of})), not gated and all(b.licence in QUOTABLE_LICENCES for b in of)


def _copy(path: Path, out: Path, origin: dict[str, Any], quotable: set[str]) -> None:
    """Copy a table of the run without the path of the texts, and without evidence where they may not be quoted."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.read_table(path)
    examples = origin.get("examples") or {}
    if "path" in examples:
        examples = {**examples, "path": Path(examples["path"]).name}
    for column in {"rationale", "passages"} & set(table.column_names):
        field = table.schema.field(column)
        pairs = zip(table[column].to_pylist(), table["dataset"].to_pylist(), strict=True)
        cells = pa.array([cell if dataset in quotable else None for cell, dataset in pairs], field.type)
        table = table.set_column(table.schema.get_field_index(column), field, cells)
    metadata = {"deep": json.dumps({**origin, "examples": examples or None}, sort_keys=True)}
    pq.write_table(table.replace_schema_metadata(metadata), out)


def _replies(history: History, votes: VoteMatrix, endpoint: str) -> Iterator[dict[str, Any]]:
    """Yield each reply about the items of a table, dataset by dataset; the ledger may hold other runs, too."""
    item, request, attempt = schema.items.c, schema.requests.c, schema.attempts.c
    body = sa.func.coalesce(request.changed_body, request.requested_body)
    columns = (item.dataset, item.item, item.voter, item.sample, attempt.number, request.vote, request.reason)
    query = sa.select(*columns, attempt.answered_by, attempt.seconds, attempt.reply, body.label("form"))
    query = query.join(schema.requests, request.key == item.key).join(schema.attempts, attempt.key == item.key)
    query = query.order_by(item.item, item.voter, item.sample, attempt.number)
    for dataset in np.unique(votes.datasets):
        own = set(votes.item_ids[votes.datasets == dataset].tolist())
        here = (item.dataset == str(dataset), item.endpoint == endpoint, attempt.outcome == "answered")
        for row in history.select(query.where(*here)):
            # What a window of a long source, a step or a repair turn is called stands behind "#".
            judges = {row["voter"], row["voter"].rpartition("#")[0]} & {*votes.voter_names}
            if judges and {row["item"], row["item"].rpartition("#")[0]} & own:
                reply = read_reply(row["reply"])
                answer = {"reply": reply.text, "finish_reason": reply.finish_reason, "tokens": dict(reply.tokens)}
                yield {**row, **answer, "judge": judges.pop(), "form": _form(json.loads(row["form"]))}


def _form(body: dict[str, Any]) -> str:
    """Return how a request, as it was sent, bound the reply to its labels."""
    return "schema" if "response_format" in body else "choice" if "structured_outputs" in body else "free"


def _card(votes: VoteMatrix, licences: dict[str, tuple[str, bool]], forms: dict[str, Counter[str]]) -> dict[str, Any]:
    """Return the counts of a pack, and where everything is from."""
    datasets = {}
    for name, (licence, may_quote) in licences.items():
        labels = votes.labels[votes.datasets == name]
        counts = {"items": len(labels), "labeled": int((labels >= 0).sum()), "consistent": int((labels == 1).sum())}
        datasets[name] = {**counts, "licence_of_texts": licence, "with_replies": may_quote}
    voters = {
        name: {"votes": int((cast >= 0).sum()), "ones": int((cast == 1).sum()), "forms": dict(forms[name])}
        for name, cast in zip(votes.voter_names, votes.votes.T, strict=True)
    }
    replies = sum(counts.total() for counts in forms.values())
    return console.SCHEMA | {"deep": deep.__version__, "replies": replies, "datasets": datasets, "voters": voters}


def _page(card: dict[str, Any]) -> str:
    """Return the card for people."""
    datasets, voters = (
        "\n".join(f"| {' | '.join(map(_cell, (name, *row.values())))} |" for name, row in card[kind].items())
        for kind in ("datasets", "voters")
    )
    page = Path(__file__).with_name("page.md").read_text(encoding="utf-8")
    return page.format(deep=card["deep"], datasets=datasets, voters=voters)


def _cell(value: object) -> str:
    """Return a value as it stands in the card."""
    if isinstance(value, dict):
        return ", ".join(f"{n} {form}" for form, n in value.items()) or "no LLM"
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)
