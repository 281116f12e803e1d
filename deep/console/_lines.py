"""The card of a panel of judges as lines for a terminal."""

import math
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from deep import evaluate
from deep._util.names import dollars, short_names
from deep.console._output import percent
from deep.evaluate import DataTable, JudgeCard, OuterWorth, PanelCard, PanelReport, in_percent, shown
from deep.exceptions import printable

WORST = 3
"""Disagreements of each judge that a terminal shows; all that are kept are in the JSON."""

LONGEST = 40
"""Characters of a judge's name."""

Claims = Mapping[tuple[str, str], str]


def card_lines(card: PanelCard, claims: Claims, notes: Sequence[str] = (), *, full: bool = False) -> Iterator[str]:
    """Yield the card of a panel: the people, each judge, the panel.

    Parameters
    ----------
    card : PanelCard
    claims : mapping of (dataset, item_id) to str
        Shown beside ids, where they are known.
    notes : sequence of str
        Why texts are not.
    full : bool, default=False
        Every figure of every judge, in place of one line each that fits the terminal.
    """
    yield from _people(card)
    if not full:
        yield from _matrix(card, shutil.get_terminal_size().columns)
        yield from _panel(card)
        yield "Every figure with its interval, judges dropped one after the other, disagreements: --full."
        return
    for table in evaluate.card_tables(card):
        yield ""
        yield from replace(table, rows=[{**row, "judge": _name(row["judge"])} for row in table.rows]).lines()
    yield from _panel(card)
    if card.worth is not None:
        yield from _steps(card.worth)
    yield from _disagreements(card, claims, notes)


MOST_JUDGES = 15
"""Lines of judges, the best first; `full` has all."""


def _matrix(card: PanelCard, width: int) -> Iterator[str]:
    """Yield a line a judge, best first; columns that do not fit the width are left out, the last ones first."""
    rows = [{**row, "judge": _name(row["judge"])} for row in evaluate.judge_rows(card)]
    first = [{name.removesuffix(", %"): cell for name, cell in row.items()} for row in rows[:MOST_JUDGES]]
    title = (
        "Each judge, in percent (accuracy: balanced; adds: log loss of the panel without it, less that of the whole)"
    )
    yield ""
    yield from DataTable(title, first).lines(width)
    if len(rows) > len(first):
        yield f"  ... and {len(rows) - len(first)} more; all of them, with intervals: --full, or --json"


def shown_items(card: PanelCard) -> set[tuple[str, str]]:
    """Return the items that the lines of a card name."""
    worst = [row for each in card.judges for row in each.disagreements[:WORST]]
    return {(row["dataset"], row["item_id"]) for row in [*worst, *card.doubtful_labels[:WORST]]}


def _name(judge: str) -> str:
    name = printable(judge)
    return name if len(name) <= LONGEST else f"{name[: LONGEST - 3]}..."


def _people(card: PanelCard) -> Iterator[str]:
    documents = "no documents are named" if card.n_documents is None else f"{card.n_documents:,} documents"
    datasets = f"{len(card.datasets)} dataset{'s' if len(card.datasets) > 1 else ''}"
    yield f"{card.n:,} items of {datasets} ({documents}), {card.n_labeled:,} with a label"
    yield evaluate.people_words(card)
    for row in card.people_agreement:
        ends = shown([row["low"], row["high"]])
        value = shown(row["value"]) or "undefined"
        yield f"  {row['name']}: {value}{f' ({ends})' if ends else ''} on {row['items']:,} items"
    if card.n_replaced:
        yield f"{card.n_replaced:,} labels beside the votes differ from those given, which are used."
    if card.n_unmatched:
        yield f"{card.n_unmatched:,} labels are of items without votes, and are left out."


def _panel(card: PanelCard) -> Iterator[str]:
    yield ""
    if not math.isnan(card.agreement):
        yield f"Two judges agree by a kappa of {card.agreement:.2f}, mean over pairs."
    if len(card.judges) > 1 and not math.isnan(card.effective_votes):
        yield evaluate.effective_words(len(card.judges), card.effective_votes)
        yield f"Most alike in their errors: {_alike(card) or 'no two judges err together often enough to tell'}."
    yield from map(printable, evaluate.cost_words(card))
    if all(math.isnan(each.others.second_sample) for each in card.judges):
        yield "Which judge to sample twice cannot be told: none was, on labeled items (`deep votes --samples 2`)."
    elif card.sample_twice is None:
        yield "A second sample of no judge adds effective votes."
    if card.worth is None:
        yield f"Whether the panel earns its cost cannot be measured. {card.worth_missing}"
    else:
        yield from _worth(card, card.worth)


def _alike(card: PanelCard) -> str:
    """Return the pairs of judges whose errors are most correlated, of those that err together often enough to tell."""
    if card.error_correlation is None or card.joint_errors is None:
        return ""
    pairs = [
        (card.error_correlation[i, j], i, j)
        for i in range(len(card.judges))
        for j in range(i)
        if card.joint_errors[i, j] >= evaluate.FEWEST_JOINT_ERRORS
    ]
    short = list(short_names(each.judge for each in card.judges).values())
    return ", ".join(
        f"{printable(short[i])} and {printable(short[j])} ({value:.2f}, {card.joint_errors[i, j]:,} joint errors)"
        for value, i, j in sorted(pairs, key=lambda pair: -pair[0])[:WORST]
    )


def _steps(found: PanelReport) -> Iterator[str]:
    yield ""
    yield "Dropped one after the other, the least useful first; log loss and balanced accuracy on datasets left out:"
    yield f"  {'judges':>6}  log loss  increase (90 % interval)     accuracy  dropped"
    for step in found.steps:
        increase = f"{step.loss_increase:+.4f} ({shown(step.increase_ci, '+.4f')})"
        accuracy, dropped = in_percent(step.balanced_accuracy), printable(step.dropped or "")
        yield f"  {len(step.judges):>6}  {step.log_loss:>8.4f}  {increase}  {accuracy:>8}  {dropped}"


def _worth(card: PanelCard, found: PanelReport) -> Iterator[str]:
    short = short_names(each.judge for each in card.judges)
    best = printable(short[found.best_judge])
    coverage = next(each.itself.coverage for each in card.judges if each.judge == found.best_judge)
    taken = f"; on the {percent(coverage)} of the items that it votes on" if coverage < 1 else ""
    yield (
        f"Panel minus best judge ({best}{taken}): {in_percent(found.gain, '+')} points of balanced "
        f"accuracy (90 % interval {in_percent(found.gain_ci, '+')}){_for_dollars(card, found)}."
    )
    if found.outer is not None:
        yield from _outer(card, found, found.outer)
    yield f"Keep {printable(', '.join(short[name] for name in found.keep))}."
    if found.one_judge:
        yield (
            f"For decisions alone one judge, {best}, would do. As a probability the best single judge differs from the "
            f"panel by {found.steps[-1].loss_increase:+.4f} of log loss."
        )


def _outer(card: PanelCard, found: PanelReport, outer: OuterWorth) -> Iterator[str]:
    """Yield lines on the whole panel and on the judges kept, on data that had no part in the choice."""
    yield (
        f"All {len(card.judges)}, by the model of `deep fit`, each of {outer.parts} parts held out: balanced accuracy "
        f"{in_percent(outer.balanced_accuracy)}, log loss {outer.log_loss:.3f}."
    )
    prices = [each.others.cost_per_1000 for each in card.judges if each.judge in found.drop]
    known = [price for price in prices if price is not None]
    saved = f"saves ${sum(known):.2f} per 1,000 items, " if found.drop and len(known) == len(prices) else ""
    yield (
        f"Keep these {len(found.keep)} of {len(card.judges)}: {saved}log loss {outer.loss_increase:+.3f} (90 % "
        f"interval {shown(outer.increase_ci, '+.3f')}), balanced accuracy {in_percent(outer.accuracy_change, '+')} "
        f"points ({in_percent(outer.change_ci, '+')}); on each part those chosen without it."
    )


def _for_dollars(card: PanelCard, found: PanelReport) -> str:
    """Return the price of the panel beyond that of its best judge, as words."""
    best = next(each.others.cost_per_1000 for each in card.judges if each.judge == found.best_judge)
    if card.cost_per_1000 is None or best is None:
        return ""
    return f" for {dollars(card.cost_per_1000 - best)} more per 1,000 items" if card.cost_per_1000 else ""


def _disagreements(card: PanelCard, claims: Claims, notes: Sequence[str]) -> Iterator[str]:
    if card.n_labeled:
        yield ""
        yield f"Disagreements with people, at most {WORST} of each judge, the worst first"
        for each in card.judges:
            yield f"  {_name(each.judge)}: {_of(each)}"
            for row in each.disagreements[:WORST]:
                yield f"    voted {row['vote']}, label {row['label']}: {_item(row, claims)}"
        yield "Labels that most judges are against: wrong labels, or items that all misread"
        yield from (
            f"    label {row['label']}, {row['against']} of {row['votes']} judges: {_item(row, claims)}"
            for row in card.doubtful_labels[:WORST]
        )
    yield from notes


def _of(each: JudgeCard) -> str:
    if each.people is None:
        return "no vote on a labeled item"
    return f"{each.n_disagreements:,} of {each.people.n:,} votes, {percent(each.n_disagreements, each.people.n)}"


def _item(row: Mapping[str, object], claims: Claims) -> str:
    claim = " ".join(claims.get((str(row["dataset"]), str(row["item_id"])), "").split())
    named = printable(f"{row['item_id']} of {row['dataset']}")
    return f"{named}. {printable(claim[:100])}" if claim else named
