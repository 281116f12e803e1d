"""The card of a panel in sentences and tables, the same on a terminal and on a page."""

import math
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

from deep import evaluate  # by the room: few cards have grades, or writers of their texts
from deep._util.names import format_dollars, short_names
from deep.evaluate._cards import MIN_JOINT_ERRORS, JudgeCard, PanelCard, ranked
from deep.evaluate._measured import DataTable, Measured, in_percent, shown
from deep.evaluate._verdict import effective_words

# What is said where no panel beats its best judge beyond chance.
ONE_JUDGE_SENTENCE = "For decisions, these labels do not show that the panel is better than one judge ({})."

# The most similar pairs of judges that are named.
N_SIMILAR_PAIRS_NAMED = 3

# Beside a choice that loses more than chance explains.
KEEP_ALL_SENTENCE = " All judges together do better, beyond chance. Keep all until more labels show otherwise."

# The most characters of a claim beside its id.
MAX_CLAIM_CHARACTERS = 100


def worth_words(card: PanelCard) -> Iterator[str]:
    """Yield which judges to keep, and what they are worth beside all and beside the best one."""
    worth = card.worth
    if worth is None or evaluate.NO_JUDGE_DISTINGUISHES in card.constant:
        return  # which to keep would be said of nothing
    short, n = short_names(each.judge for each in card.judges), len(card.judges)
    price = {each.judge: each.others.cost_per_1000 for each in card.judges}
    outer, costs = worth.outer, [price[name] for name in worth.drop]
    saved = f": ${sum(filter(None, costs)):.2f} less per 1,000 items" if any(costs) and None not in costs else ""
    yield card.coin or f"Keep {', '.join(short[name] for name in worth.keep)}{saved}."
    if not card.coin:
        # Of the choice, not of these judges: each part has its own, so that it costs something where all are kept too.
        yield (
            f"Judges kept by this rule, on held-out parts: log loss {outer.loss_increase:+.3f} (90 % "
            f"interval {shown(outer.increase_ci, '+.3f')}), balanced accuracy {in_percent(outer.accuracy_change, '+')} "
            f"points ({in_percent(outer.change_ci, '+')}).{KEEP_ALL_SENTENCE if outer.increase_ci[0] > 0 else ''}"
        )
    yield (
        f"All {n}, with `deep fit` and each of {outer.parts} parts held out: balanced accuracy "
        f"{in_percent(outer.balanced_accuracy)}, log loss {outer.log_loss:.3f}."
    )
    best, own = short[worth.best_judge], price[worth.best_judge]
    coverage = next(each.itself.coverage for each in card.judges if each.judge == worth.best_judge)
    on = f"; on the {in_percent(coverage)} % of items that it votes on" if coverage < 1 else ""
    more = (
        f" for {format_dollars(card.cost_per_1000 - own)} more per 1,000 items"
        if card.cost_per_1000 and own is not None
        else ""
    )
    yield (
        f"Panel minus best judge ({best}{on}): {in_percent(worth.gain, '+')} points of balanced accuracy (90 % "
        f"interval {in_percent(worth.gain_ci, '+')}){more}."
    )
    if worth.one_judge and not card.coin:
        yield (
            f"{ONE_JUDGE_SENTENCE.format(best)} The best single judge's log loss differs from the panel's by "
            f"{worth.steps[-1].loss_increase:+.4f}."
        )


def people_words(card: PanelCard) -> str:
    """Return a sentence on whose labels a panel is measured by."""
    if len(card.people) > 1:
        return f"The label is the majority of {len(card.people)} people; {card.n_tied:,} tied items are left out."
    if card.n_labeled:
        return "Each item has one label, so agreement between people cannot be measured."
    return "No labels: rates, errors and the worth of each judge cannot be measured."


def panel_words(card: PanelCard) -> Iterator[str]:
    """Yield sentences on how alike the judges are, what they cost, and which to ask twice."""
    yield from card.constant
    if evaluate.NO_JUDGE_DISTINGUISHES in card.constant:
        return  # how alike the judges err, and which to keep, would be said of nothing
    if not math.isnan(card.agreement):
        yield f"Mean kappa between two judges: {card.agreement:.2f}."
    # The errors of coins are alike by what they always say, which is no dependence.
    if len(card.judges) > 1 and not math.isnan(card.effective_votes) and not card.coin:
        yield effective_words(len(card.judges), card.effective_votes)
        yield from _most_similar_judges(card)
    if card.own_family:
        yield from evaluate.own_family_words(card.own_family)
    yield from cost_words(card)
    if all(math.isnan(each.others.second_sample) for each in card.judges):
        yield "No labeled item has two samples of a judge (`deep ask --samples 2`): which one to repeat is unknown."
    elif card.sample_twice is None:
        yield "No judge's second sample adds effective votes."
    if card.worth is None:
        yield f"The benefit of the panel was not measured. {card.worth_missing}"


def _most_similar_judges(card: PanelCard) -> list[str]:
    """Return the judges whose errors are most correlated, of those that err together often enough to tell."""
    if card.error_correlation is None or card.joint_errors is None:
        return []
    pairs = [
        (card.error_correlation[i, j], i, j)
        for i in range(len(card.judges))
        for j in range(i)
        if card.joint_errors[i, j] >= MIN_JOINT_ERRORS
    ]
    if not pairs:
        return ["Most similar errors: too few common errors to tell."]
    short = list(short_names(each.judge for each in card.judges).values())
    n = card.joint_errors
    return [
        f"Similar errors: {short[i]} and {short[j]} (correlation {value:.2f}, {n[i, j]:,} joint errors)."
        for value, i, j in sorted(pairs, key=lambda pair: -pair[0])[:N_SIMILAR_PAIRS_NAMED]
        if value > 0
    ]


def cost_words(card: PanelCard) -> Iterator[str]:
    """Yield sentences on what a panel costs, and on the judges to drop and to ask twice for it."""
    short = short_names(each.judge for each in card.judges)
    if card.cost_per_1000 is None:
        unknown = [short[each.judge] for each in card.judges if each.others.cost_per_1000 is None]
        of = "" if len(unknown) == len(card.judges) else f" of {', '.join(unknown)}"
        yield f"Costs{of} are not known: no file of judgments with prices lies beside the votes."
    else:
        bought = shown(card.effective_votes_a_dollar, ",.0f")
        paid = f"; {bought} effective votes a dollar" if bought else ""
        yield f"The panel costs {format_dollars(card.cost_per_1000)} per 1,000 items{paid}."
    if card.drop_first is not None:
        a_dollar = " a dollar" if card.cost_per_1000 else ""
        yield f"Without {short[card.drop_first]} the panel has more effective votes{a_dollar}."
    if card.sample_twice is not None:
        yield f"A second sample is worth most for {short[card.sample_twice]}."


ClaimTexts = Mapping[tuple[str, str], str]


def card_tables(card: PanelCard, most: int, claims: ClaimTexts = MappingProxyType({})) -> Iterator[DataTable]:
    """Yield the tables of a card that have rows, those of single figures folded.

    Parameters
    ----------
    card : PanelCard
        As :func:`panel_card` returns it.
    most : int
        Disagreements of each judge, and doubtful labels.
    claims : mapping of (dataset, item_id) to str, optional
        Shown beside ids, where they are known.
    """
    yield from (table for table in _all_tables(card, most, claims) if table.rows)


def _all_tables(card: PanelCard, most: int, claims: ClaimTexts) -> Iterator[DataTable]:
    """Yield every table of a card, empty ones too."""
    agreement = [
        {
            "measure": row["name"],
            "items": f"{row['items']:,}",
            "value": shown(row["value"]) or "undefined",
            "95 % interval": shown([row["low"], row["high"]], ".2f"),
        }
        for row in card.people_agreement
    ]
    yield DataTable("People among themselves", agreement)
    short = short_names(each.judge for each in card.judges)
    judges = [{"judge": short[each.judge], **_judge_row(each, coin=bool(card.coin))} for each in ranked(card.judges)]
    yield DataTable("Each judge, in percent (accuracy: balanced; adds: rise of the log loss without it)", judges)
    if card.levels:
        yield from evaluate.level_tables(card.levels, [each.judge for each in card.judges], card.rank_agreement)
    by = "item" if card.n_documents is None else "document"
    parts: dict[str, Callable[[JudgeCard], Measured | None]] = {
        f"Against people (1 = consistent; 95 % intervals, clustered by {by})": lambda each: each.people,
        "Against itself (consistency: share of pairs of repeated samples that agree)": lambda each: each.itself,
    }
    if len(card.judges) > 1:
        others = "Against the others (adds: rise of the log loss without it, 90 % interval; votes: effective number)"
        parts[others] = lambda each: each.others
    for title, part in parts.items():
        rows = [{"judge": each.judge, **own.cells()} for each in card.judges if (own := part(each)) is not None]
        yield DataTable(title, rows, folded=True)
    by_person = [
        {"judge": each.judge, **{name: shown(kappa) for name, kappa in each.by_person.items()}}
        for each in card.judges
        if each.by_person
    ]
    yield DataTable("Kappa of each judge with each person", by_person, folded=True)
    families = [{"judge": each.judge, "family": each.family, **each.cells()} for each in card.own_family]
    title = "Judges and texts of their own family (bias: compared with how it judges other texts)"
    yield DataTable(title, families, folded=True)
    if card.by_writer is not None:
        yield card.by_writer
    steps = [{"judges": f"{len(step.judges)}", **step.cells()} for step in (card.worth.steps if card.worth else ())]
    title = "Judges dropped one by one, the least useful first; log loss and balanced accuracy on held-out datasets"
    yield DataTable(title, steps, folded=True)
    yield from _item_tables(card, most, claims)


def _item_tables(card: PanelCard, most: int, claims: ClaimTexts) -> Iterator[DataTable]:
    """Yield the worst disagreements of each judge, and the labels that most judges contradict."""

    def place(row: Mapping[str, object]) -> dict[str, str]:
        claim = " ".join(claims.get((str(row["dataset"]), str(row["item_id"])), "").split())
        return {"item": str(row["item_id"]), "dataset": str(row["dataset"]), "claim": claim[:MAX_CLAIM_CHARACTERS]}

    worst = [
        {"judge": each.judge, "vote": f"{row['vote']}", "label": f"{row['label']}"}
        | {"severity": shown(row["severity"])}
        | place(row)
        for each in card.judges
        for row in each.disagreements[:most]
    ]
    title = f"Disagreements of each judge with people, at most {most} each, the worst first"
    yield DataTable(title, worst, folded=True)
    doubtful = [
        {"label": f"{row['label']}", "votes against": f"{row['against']} of {row['votes']}"} | place(row)
        for row in card.doubtful_labels[:most]
    ]
    title = "Labels that most judges contradict: the label is wrong, or the judges misread the item"
    yield DataTable(title, doubtful, folded=True)


def _judge_row(each: JudgeCard, *, coin: bool) -> dict[str, str]:
    """Return the cells of one judge; with `coin`, where no judge beats a coin, none is marked to keep or to drop."""
    result, other = each.people, each.others
    rates = {} if result is None else {"TPR": in_percent(result.tpr), "TNR": in_percent(result.tnr)}
    wrong = "" if result is None else f"{each.n_disagreements:,} of {result.n:,}"
    return {
        "accuracy": "" if result is None else in_percent(result.balanced_accuracy),
        "keep": {None: "", True: "keep", False: "drop"}[None if coin else other.kept],
        "votes on": in_percent(each.itself.coverage),
        "says 1": in_percent(each.itself.polarity),
        **rates,
        "adds": shown(other.adds, "+z.4f"),
        "errors alike": shown(other.error_correlation),
        "$ per 1,000": shown(other.cost_per_1000 or None, format_dollars),
        "errors": wrong,
    }
