"""The card of a panel of judges as lines for a terminal."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from deep._util.names import table
from deep.console._output import Results, percent, points
from deep.exceptions import printable

if TYPE_CHECKING:
    from deep.evaluate import JudgeCard, PanelCard, PanelReport


WORST = 3
"""Disagreements of each judge that a terminal shows; all that are kept are in the JSON."""

LONGEST = 40
"""Characters of a judge's name."""

Texts = Mapping[tuple[str, str], str]


def card_lines(card: "PanelCard", claims: Texts, notes: Sequence[str] = ()) -> Iterator[str]:
    """Yield the card of a panel: the people, each judge, the panel.

    Parameters
    ----------
    card : PanelCard
    claims : mapping of (dataset, item_id) to str
        Shown beside ids, where they are known.
    notes : sequence of str
        Why texts are not.
    """
    yield from _people(card)
    yield from _against_people(card)
    yield from _against_itself(card)
    yield from _against_others(card)
    yield from _panel(card)
    yield from _disagreements(card, claims, notes)


def shown_items(card: "PanelCard") -> set[tuple[str, str]]:
    """Return the items that the lines of a card name."""
    worst = [row for each in card.judges for row in each.disagreements[:WORST]]
    return {(row["dataset"], row["item_id"]) for row in [*worst, *card.doubtful_labels[:WORST]]}


def _name(judge: str) -> str:
    shown = printable(judge)
    return shown if len(shown) <= LONGEST else f"{shown[: LONGEST - 3]}..."


def _number(value: float | None, form: str = ".2f") -> str:
    return "-" if value is None or math.isnan(value) else f"{value:{form}}"


def _between(value: float, ends: tuple[float, float], form: str = ".2f") -> str:
    return "-" if math.isnan(value) else f"{value:{form}} ({_number(ends[0], form)} to {_number(ends[1], form)})"


def _table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield ""
    yield title
    yield from (f"  {line}" for line in table([header, *rows], right=len(header) - 1).split("\n"))


def _people(card: "PanelCard") -> Iterator[str]:
    documents = "no documents are named" if card.n_documents is None else f"{card.n_documents:,} documents"
    datasets = f"{len(card.datasets)} dataset{'s' if len(card.datasets) > 1 else ''}"
    yield f"{card.n:,} items of {datasets} ({documents}), {card.n_labeled:,} with a label"
    if len(card.people) > 1:
        yield f"The label is that of most of {len(card.people)} people; {card.n_tied:,} items are tied and left out."
        yield from (
            f"  {row['name']}: {_between(row['value'], (row['low'], row['high']))} on {row['items']:,} items"
            if row["value"] is not None
            else f"  {row['name']}: undefined on {row['items']:,} items"
            for row in card.people_agreement
        )
    elif card.n_labeled:
        yield "Each item has one label: how far people agree cannot be told."
    if card.n_replaced:
        yield f"{card.n_replaced:,} labels beside the votes differ from those given, which are used."
    if card.n_unmatched:
        yield f"{card.n_unmatched:,} labels are of items without votes, and are left out."


def _against_people(card: "PanelCard") -> Iterator[str]:
    rows = []
    for each in card.judges:
        if (found := each.people) is not None:
            counts = (found.true_positive, found.false_negative, found.false_positive, found.true_negative)
            rows.append(
                [
                    _name(each.judge),
                    *map(str, counts),
                    _number(found.base_rate),
                    _between(found.kappa, found.kappa_ci),
                    _number(found.alpha),
                    _between(found.tpr, found.tpr_ci),
                    _between(found.tnr, found.tnr_ci),
                    _number(found.leniency, "+.2f"),
                ]
            )
    if rows:
        by = "item" if card.n_documents is None else "document"
        title = f"Against people (1 = consistent; 95 % intervals, clustered by {by})"
        header = ["judge", "1 as 1", "1 as 0", "0 as 1", "0 as 0", "base rate", "kappa", "alpha", "TPR", "TNR"]
        yield from _table(title, [*header, "leniency"], rows)


def _against_itself(card: "PanelCard") -> Iterator[str]:
    rows = []
    for each in card.judges:
        own = each.itself
        why = ", ".join(f"{count} {reason}" for reason, count in own.reasons.items())
        why += f"; {own.n_repaired} repaired" if own.n_repaired else ""
        cells = (_number(own.coverage), _number(own.polarity), _number(own.consistency), str(own.ties))
        rows.append([_name(each.judge), *cells, why or "none"])
    header = ["judge", "coverage", "says 1", "consistency", "ties", "without vote"]
    yield from _table("Against itself (consistency: share of pairs of repeated samples that agree)", header, rows)


def _against_others(card: "PanelCard") -> Iterator[str]:
    if len(card.judges) < 2:
        return
    rows = [
        [
            _name(each.judge),
            _number(each.others.error_correlation),
            _between(each.others.adds, each.others.adds_ci, "+.4f"),
            _number(each.others.votes_without),
            _number(each.others.second_sample, "+.2f"),
            _number(each.others.cost_per_1000, ".4f"),
        ]
        for each in card.judges
    ]
    header = ["judge", "error correlation", "adds (log loss, 90 %)", "votes without it", "2nd sample", "$ per 1,000"]
    yield from _table("Against the others (votes are effective ones)", header, rows)


def _panel(card: "PanelCard") -> Iterator[str]:
    yield ""
    if len(card.judges) > 1 and not math.isnan(card.effective_votes):
        yield f"{len(card.judges)} judges are worth {card.effective_votes:.1f} independent ones."
        yield f"Most alike in their errors: {_alike(card)}."
    if card.cost_per_1000 is not None:
        bought = _number(card.effective_votes_a_dollar, ",.0f")
        yield f"The panel costs ${card.cost_per_1000:.4f} per 1,000 items; {bought} effective votes a dollar."
    else:
        unknown = [printable(each.judge) for each in card.judges if each.others.cost_per_1000 is None]
        of = "" if len(unknown) == len(card.judges) else f" of {', '.join(unknown)}"
        yield f"Costs{of} are not known: no file of judgments with prices lies beside the votes."
    if card.drop_first is not None:
        yield f"Without {printable(card.drop_first)} the panel has more effective votes{_per_dollar(card)}."
    if card.sample_twice is not None:
        yield f"A second sample pays most of {printable(card.sample_twice)}."
    elif all(math.isnan(each.others.second_sample) for each in card.judges):
        yield "Which judge to sample twice cannot be told: none was, on labeled items (`deep votes --samples 2`)."
    else:
        yield "A second sample of no judge adds effective votes."
    if card.worth is None:
        yield f"Whether the panel earns its cost cannot be measured. {card.worth_missing}"
    else:
        yield from _worth(card, card.worth)


def _alike(card: "PanelCard") -> str:
    """Return the pairs of judges whose errors are most correlated."""
    values = [] if card.error_correlation is None else card.error_correlation.tolist()
    pairs = [
        (value, f"{printable(one.judge)} and {printable(other.judge)} ({value:.2f})")
        for i, (one, row) in enumerate(zip(card.judges, values, strict=False))
        for other, value in zip(card.judges[:i], row, strict=False)
    ]
    return ", ".join(said for _, said in sorted(pairs, key=lambda pair: -pair[0])[:WORST])


def _per_dollar(card: "PanelCard") -> str:
    return " a dollar" if card.cost_per_1000 else ""


def _worth(card: "PanelCard", found: "PanelReport") -> Iterator[str]:
    yield ""
    yield "Dropped one after the other, the least useful first; log loss and balanced accuracy on datasets left out:"
    yield f"  {'judges':>6}  log loss  increase (90 % interval)     accuracy  dropped"
    for step in found.steps:
        low, high = step.increase_ci
        increase = f"{step.loss_increase:+.4f} ({low:+.4f} to {high:+.4f})"
        accuracy, dropped = points(step.balanced_accuracy), printable(step.dropped or "")
        yield f"  {len(step.judges):>6}  {step.log_loss:>8.4f}  {increase}  {accuracy:>8}  {dropped}"
    yield ""
    low, high = found.gain_ci
    best = printable(found.best_judge)
    yield (
        f"Panel minus best judge ({best}): {points(found.gain, '+')} points of balanced accuracy "
        f"(90 % interval {points(low, '+')} to {points(high, '+')}){_for_dollars(card, found)}."
    )
    yield f"Keep: {printable(', '.join(found.keep))}."
    yield f"Drop: {printable(', '.join(found.drop)) or 'none'}."
    yield "Those kept are within one standard error of the log loss of all."
    if found.one_judge:
        yield (
            f"For decisions alone one judge, {best}, would do. As a probability the best single judge differs from the "
            f"panel by {found.steps[-1].loss_increase:+.4f} of log loss."
        )


def _for_dollars(card: "PanelCard", found: "PanelReport") -> str:
    """Return the price of the panel beyond that of its best judge, as words."""
    best = next(each.others.cost_per_1000 for each in card.judges if each.judge == found.best_judge)
    if card.cost_per_1000 is None or best is None:
        return ""
    return f" for ${card.cost_per_1000 - best:.4f} more per 1,000 items"


def _disagreements(card: "PanelCard", claims: Texts, notes: Sequence[str]) -> Iterator[str]:
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


def _of(each: "JudgeCard") -> str:
    if each.people is None:
        return "no vote on a labeled item"
    return f"{each.n_disagreements:,} of {each.people.n:,} votes, {percent(each.n_disagreements, each.people.n)}"


def _item(row: Mapping[str, object], claims: Texts) -> str:
    claim = " ".join(claims.get((str(row["dataset"]), str(row["item_id"])), "").split())
    named = printable(f"{row['item_id']} of {row['dataset']}")
    return f"{named}. {printable(claim[:100])}" if claim else named


def label_lines(found: Results, *, told: str) -> Iterator[str]:
    """Yield lines on what is to be labeled; `told` says what the start found in the log that should not be there."""
    if told:
        yield f"{found['files']['log']}: {told}"
    yield from ([found["problem"]] if found["problem"] else [])
    done = _counted(found["complete"], "of them is", "of them are")
    yield f"{found['dataset']}: {_counted(found['items'], 'item', 'items')} to label, {done} done"
    yield f"labels: {found['files']['labels']}, written after each one"


def labeled_lines(found: Results) -> Iterator[str]:
    """Yield lines on the labels that there are, and their files."""
    by = ", ".join(f"{who} {n}" for who, n in found["people"].items()) or "nobody"
    yield f"{found['complete']} of {found['items']} items are done; labels by {by}"
    if found["ties"]:
        yield f"  on {_counted(found['ties'], 'item', 'items')} people are tied: a tie is no label"
    if found["after_reveal"]:
        seen = _counted(found["after_reveal"], "label was", "labels were")
        yield f"  {seen} given after a look at the votes; the annotations mark them"
    yield from ([f"  {found['problem']}"] if found["problem"] else [])
    yield f"labels of {_counted(found['labels'], 'item', 'items')}: {found['files']['labels']}"
    yield from (f"{name}: {found['files'][name]}" for name in ("annotations", "log"))


def _counted(n: int, one: str, several: str) -> str:
    return f"{n} {one if n == 1 else several}"
