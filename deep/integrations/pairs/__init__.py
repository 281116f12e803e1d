"""Join the answers of judges to pairs in both orders; show each judge's bias; rank systems.

A judge that names the same text in both orders has a vote: 1, A is better, or 0, B is. A tie and a contradiction are
no vote. The table that is written is one of votes: fit, score, estimate and report take it, and P is that A is better.

For instance:

  deep panel pairs asked.parquet --pairs pairs.csv --out votes.parquet
      judges that were asked in both orders; position and length bias with 90 % intervals
  deep panel pairs votes.parquet --held-out
      P by both orders beside P by one alone, each dataset held out
  deep panel pairs asked.parquet --pairs pairs.csv --rank scores.csv
      systems in order, by P(A is better) that `deep score` gave
"""

import argparse
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import mean, stdev

import numpy as np
import numpy.typing as npt

from deep import asking, calibration, console, datasets, evaluate, model
from deep._util.checks import Floats, Votes
from deep._util.files import check_out
from deep._util.options import option
from deep.exceptions import ExitStatus, InputError
from deep.records import ABSTAIN, Example, Judgment, VoteMatrix

# The orders in which two answers are shown to a judge.
ORDERS = ("ab", "ba")
# The prompt that asks which of two answers is better.
BETTER_PROMPT = Path(__file__).with_name("better.toml")

# A is better, B is, or neither: of a tie there is no label.
LABELS: Mapping[str, int | None] = {"a": 1, "1": 1, "b": 0, "0": 0, "": None, "tie": None, "none": None, "nan": None}


@dataclass(frozen=True)
class AnswerPair:
    """Two answers to one question.

    Parameters
    ----------
    item_id, dataset : str
        The id of the pair, which its dataset has once, and the name of the dataset.
    a, b : str
        The texts of the two answers.
    question, source : str
        Either may be empty.
    label : {1, 0, None}
        1 where A is better, 0 where B is.
    document_id : str
        Pairs that share it are no independent evidence; the question's, unless given.
    systems : (str, str), optional
        Who wrote A, and who wrote B.
    """

    item_id: str
    dataset: str
    a: str
    b: str
    question: str = ""
    source: str = ""
    label: int | None = None
    document_id: str = ""
    systems: tuple[str, str] | None = None


def read_pairs(path: str | Path) -> list[AnswerPair]:
    """Read pairs from a CSV, JSON, JSONL or Parquet file.

    Parameters
    ----------
    path : str or Path
        With the columns `a` and `b`, and as wanted `question`, `source`, `label` (a, b, 1, 0 or tie), `item_id`,
        `dataset`, `document_id`, `system_a` and `system_b`.

    Raises
    ------
    InputError
        A column is missing, a label is none of these, or an id comes twice.
    """
    path = Path(path)
    names = ("a", "b", "question", "source", "label", "item_id", "dataset", "document_id", "system_a", "system_b")
    pairs, keys = list[AnswerPair](), set[tuple[str, str]]()
    for number, (_, row) in enumerate(datasets.read_rows(path, names, param="pairs"), start=1):
        cell = {name: "" if row.get(name) is None else str(row[name]) for name in names}
        if not cell["a"] or not cell["b"]:
            raise InputError(f"`pairs` must have a text in the columns a and b. Got none in row {number} of {path}.")
        label = cell["label"].strip().lower().removesuffix(".0")
        if label not in LABELS:
            raise InputError(f"`label` must be a, b, 1, 0, tie or empty. Got {label!r} in row {number} of {path}.")
        name, dataset = cell["item_id"] or str(number), cell["dataset"] or path.name.partition(".")[0]
        if (dataset, name) in keys:
            raise InputError(
                f"`item_id` must be unique within a dataset. Got {name!r} again in row {number} of {path}."
            )
        keys.add((dataset, name))
        systems = (cell["system_a"], cell["system_b"]) if cell["system_a"] and cell["system_b"] else None
        texts = {key: cell[key] for key in ("a", "b", "question", "source")}
        document = cell["document_id"] or cell["question"] or name
        pairs.append(AnswerPair(name, dataset, **texts, label=LABELS[label], document_id=document, systems=systems))
    return pairs


def both_orders(pairs: Sequence[AnswerPair], orders: Sequence[str] = ORDERS) -> Iterator[Example]:
    """Yield pairs as examples that any judge can be asked about, whose claim is that the first answer is better.

    The task is the example's source, the two answers are its claim. The id ends in ``@ab`` or ``@ba``, and the label
    is turned with the order.

    Examples
    --------
    >>> from deep.integrations.pairs import AnswerPair, both_orders
    >>> result = list(both_orders([AnswerPair("q1", "d", "4", "5", "2 + 2?", label=1)]))
    >>> [(one.example_id, one.label) for one in result]
    [('q1@ab', 1), ('q1@ba', 0)]
    """
    for pair in pairs:
        task = "\n\n".join(filter(None, (pair.question, pair.source))) or "Write a good answer."
        for order in orders:
            first, second = (pair.a, pair.b) if order == "ab" else (pair.b, pair.a)
            label = pair.label if pair.label is None or order == "ab" else 1 - pair.label
            claim = f"First answer:\n{first}\n\nSecond answer:\n{second}"
            yield Example(task, claim, f"{pair.item_id}@{order}", label, pair.dataset, pair.document_id or pair.item_id)


@dataclass(frozen=True, eq=False)
class JoinedPairs:
    """One vote of each judge on each pair, of its answers in both orders.

    Parameters
    ----------
    votes : VoteMatrix
        1 where a judge says in both orders that A is better, 0 where that B is; else no vote.
    orders : mapping of str to ndarray of shape (n_pairs, n_judges)
        By order the same before they are joined: 1 A is better, 0 B is, -1 no answer.
    """

    votes: VoteMatrix
    orders: Mapping[str, Votes]

    def judgments(self) -> Iterator[tuple[Example, dict[str, Judgment]]]:
        """Yield each pair with the judgment of each judge; where there is no vote, its words say why."""
        v = self.votes
        ab, ba = (self.orders[order] for order in ORDERS)
        for i, (dataset, item, label) in enumerate(zip(v.datasets, v.item_ids, v.labels, strict=True)):
            document = None if v.document_ids is None else v.document_ids[i]
            example = Example("", "", item, None if label == ABSTAIN else int(label), dataset, document)
            yield example, {name: _joined(ab[i, j], ba[i, j]) for j, name in enumerate(v.voter_names)}

    def alone(self, order: str) -> VoteMatrix:
        """Return the answers in one order alone, as votes."""
        return self.votes.with_columns(votes=self.orders[order])


def _joined(ab: int, ba: int) -> Judgment:
    if ABSTAIN in (ab, ba):
        which = "both orders" if ab == ba else "one order"
        return Judgment(ABSTAIN, "abstained", rationale=f"A tie, or no answer, in {which}.")
    if ab == ba:
        return Judgment(int(ab))
    place = "first" if ab else "second"
    return Judgment(ABSTAIN, "abstained", rationale=f"A contradiction: the answer shown {place} wins in both orders.")


def join_orders(votes: VoteMatrix) -> JoinedPairs:
    """Join answers in both orders to one vote.

    Parameters
    ----------
    votes : VoteMatrix
        Items ``ID@ab`` and ``ID@ba``, of which 1 says that the answer that stands first is better; or judges
        ``NAME__ab`` and ``NAME__ba``, of which 1 says that A is, in whichever place it stands.

    Raises
    ------
    InputError
        There are neither such items nor such judges, or one has no counterpart in any order.

    Examples
    --------
    >>> from deep import VoteMatrix
    >>> from deep.integrations.pairs import join_orders
    >>> asked = VoteMatrix([[1], [0], [1], [1]], ["p@ab", "p@ba", "q@ab", "q@ba"], ["strict"], ["d"] * 4, [1, 0, 0, 1])
    >>> joined = join_orders(asked)
    >>> joined.votes.item_ids.tolist(), joined.votes.votes.tolist(), joined.votes.labels.tolist()
    (['p', 'q'], [[1], [-1]], [1, 0])
    """
    judges = sorted({name.rpartition("__")[0] for name in votes.voter_names if name.endswith(("__ab", "__ba"))})
    if judges:
        columns = dict(zip(votes.voter_names, votes.votes.T, strict=True))
        none = np.full(len(votes.votes), ABSTAIN, dtype=np.int8)
        orders = {o: np.column_stack([columns.get(f"{name}__{o}", none) for name in judges]) for o in ORDERS}
        base = votes.with_columns(votes=orders["ab"], voter_names=tuple(judges))
        return JoinedPairs(base.with_columns(votes=_agreeing_votes(orders)), orders)
    rows: dict[tuple[str, str], dict[str, int]] = {}
    for i, (dataset, item) in enumerate(zip(votes.datasets, votes.item_ids, strict=True)):
        name, _, order = str(item).rpartition("@")
        if order not in ORDERS or not name:
            raise InputError(
                "`votes` must have items ending in @ab and @ba (`deep data pairs`), or judges ending in __ab and "
                f"__ba. Got {item!r} and {votes.voter_names[0]!r}."
            )
        rows.setdefault((dataset, name), {})[order] = i
    # A label, and a vote, of an item that was asked in the order B, A is about B.
    orders = {}
    for order in ORDERS:
        at = np.array([places.get(order, -1) for places in rows.values()])
        orders[order] = _votes_turned_round(np.where(at[:, None] < 0, np.int8(ABSTAIN), votes.votes[at]), order)
    first = [next(iter(at.items())) for at in rows.values()]
    labels = [int(_votes_turned_round(votes.labels[[i]], order)[0]) for order, i in first]
    documents = None if votes.document_ids is None else [votes.document_ids[i] for _, i in first]
    names, ids = zip(*rows, strict=True)
    return JoinedPairs(VoteMatrix(_agreeing_votes(orders), ids, votes.voter_names, names, labels, documents), orders)


def _votes_turned_round(values: npt.NDArray[np.int8], order: str) -> npt.NDArray[np.int8]:
    return values if order == "ab" else np.where(values == ABSTAIN, ABSTAIN, 1 - values).astype(np.int8)


def _agreeing_votes(orders: Mapping[str, Votes]) -> Votes:
    ab, ba = (orders[order] for order in ORDERS)
    return np.where(ab == ba, ab, ABSTAIN).astype(np.int8)


@dataclass(frozen=True)
class OrderCard:
    """How one judge answers pairs.

    Parameters
    ----------
    judge : str
        Its column in the table of votes.
    n : int
        Pairs that it answered in both orders.
    agreement : float
        Share of these on which both answers name the same text.
    position_bias : float
        Share of answers that name the text that stands first, less one half; 0 of a judge without a bias.
    position_interval : (float, float)
        90 %, by Agresti and Min (2005, doi:10.1002/sim.1781) for the difference of two paired proportions.
    length_bias : float
        Share of joined votes for the longer text, less the share of longer texts among those that labels prefer, on
        the same pairs; NaN without texts or labels.
    length_interval : (float, float)
        90 %, likewise; NaN where the bias is.
    accuracy : float
        Of joined votes, where there are labels; NaN without any.
    """

    judge: str
    n: int
    agreement: float
    position_bias: float
    position_interval: tuple[float, float]
    length_bias: float = math.nan
    length_interval: tuple[float, float] = (math.nan, math.nan)
    accuracy: float = math.nan


def order_cards(joined: JoinedPairs, pairs: Sequence[AnswerPair] = (), level: float = 0.9) -> list[OrderCard]:
    """Measure each judge's bias to the answer that stands first, and to the longer one.

    Parameters
    ----------
    joined : JoinedPairs
        The joined votes, and those of both orders that they come from.
    pairs : sequence of AnswerPair
        Their texts, for the bias of length.
    level : float, default=0.9
        Of the intervals.
    """
    votes, (ab, ba) = joined.votes, (joined.orders[order] for order in ORDERS)
    lengths = {(pair.dataset, pair.item_id): len(pair.a) - len(pair.b) for pair in pairs}
    longer = np.array([lengths.get(key, 0) for key in zip(votes.datasets, votes.item_ids, strict=True)])
    cards: list[OrderCard] = []
    for j, judge in enumerate(votes.voter_names):
        both = (ab[:, j] >= 0) & (ba[:, j] >= 0)
        vote, n = votes.votes[:, j], int(both.sum())
        first, second = ((ab[both, j] == a) & (ba[both, j] == 1 - a) for a in (1, 0))
        position = paired_difference(int(first.sum()), int(second.sum()), n, level)
        is_labeled = (vote >= 0) & (votes.labels >= 0)
        at = is_labeled & (longer != 0)
        chose, right = (which[at] == (longer[at] > 0) for which in (vote, votes.labels))
        length = paired_difference(int((chose & ~right).sum()), int((~chose & right).sum()), int(at.sum()), level)
        hits = (vote == votes.labels)[is_labeled]
        cards.append(
            OrderCard(
                judge,
                n,
                float((ab[both, j] == ba[both, j]).mean()) if n else math.nan,
                position[0] / 2,
                (position[1] / 2, position[2] / 2),
                length[0],
                (length[1], length[2]),
                float(hits.mean()) if hits.size else math.nan,
            )
        )
    return cards


def paired_difference(only_one: int, only_other: int, n: int, level: float) -> tuple[float, float, float]:
    """Return the difference of two proportions of the same n things, and its interval by Agresti and Min.

    Parameters
    ----------
    only_one, only_other : int
        How many count for the one alone, and for the other alone.
    n : int
        The number of things that both proportions are of; of 0 all is NaN.
    level : float
        Coverage of the interval, in (0, 1).
    """
    from scipy.stats import norm

    if not n:
        return math.nan, math.nan, math.nan
    difference, total = only_one - only_other, n + 2  # half a thing is added to each of the four cells
    spread = math.sqrt(only_one + only_other + 1 - difference**2 / total) / total
    margin = float(norm.ppf(0.5 + level / 2)) * spread
    return difference / n, max(difference / total - margin, -1.0), min(difference / total + margin, 1.0)


@dataclass(frozen=True)
class RankedSystem:
    """The place of one system among others.

    Parameters
    ----------
    system : str
        Its name.
    n : int
        Its pairs.
    chance : float
        That its answer is better than that of the mean system.
    interval : (float, float)
        90 %, by resampling questions.
    ranks : (int, int)
        The places that it has in nine of ten resamples, from 1.
    """

    system: str
    n: int
    chance: float
    interval: tuple[float, float]
    ranks: tuple[int, int]


def rank_systems(
    pairs: Sequence[AnswerPair], p: Mapping[tuple[str, str], float], *, n_boot: int = 200, random_state: int = 0
) -> list[RankedSystem]:
    """Rank systems by Bradley and Terry (1952), on P(A is better), with intervals.

    Parameters
    ----------
    pairs : sequence of AnswerPair
        With their systems.
    p : mapping of (dataset, item_id) to float
        P(A is better) of each pair, as `deep score` gives it.
    n_boot : int, default=200
        Resamples of questions, from which the 90 % intervals are.
    random_state : int, default=0
        Seed of the resamples.

    Returns
    -------
    list of RankedSystem
        The best first.

    Raises
    ------
    InputError
        No pair has systems and a P, or all are of one system.
    """
    from scipy.special import expit
    from sklearn.linear_model import LogisticRegression

    matches = [pair for pair in pairs if pair.systems is not None and (pair.dataset, pair.item_id) in p]
    names = sorted({name for pair in matches for name in pair.systems or ()})
    if len(names) < 2:
        raise InputError(
            "`pairs` must have the columns system_a and system_b, and a P for each row. Got fewer than two systems."
        )
    x = np.array(
        [[(name == pair.systems[0]) - (name == pair.systems[1]) for name in names] for pair in matches if pair.systems]
    )
    wins = np.array([p[pair.dataset, pair.item_id] for pair in matches])
    _, question = np.unique([pair.document_id for pair in matches], return_inverse=True)

    def strengths(weight: npt.NDArray[np.generic]) -> Floats:
        """Fit log-odds, in which a pair counts for either side by its P; a weak ridge keeps them finite."""
        both, y = np.vstack([x, x]), np.repeat([1, 0], len(x))
        fitted = LogisticRegression(C=10.0, fit_intercept=False, max_iter=500)
        fitted.fit(both, y, sample_weight=np.concatenate([weight * wins, weight * (1 - wins)]))
        return np.asarray(fitted.coef_[0] - fitted.coef_[0].mean())

    rng = np.random.default_rng(random_state)
    n = question.max() + 1
    draws = (rng.multinomial(n, np.full(n, 1 / n))[question] for _ in range(n_boot))
    samples = np.array([strengths(weight) for weight in draws if weight.any()])
    ranks = (-samples).argsort(axis=1).argsort(axis=1) + 1
    best = strengths(np.ones(len(x)))
    chances, places = (np.quantile(values, (0.05, 0.95), axis=0).T for values in (expit(samples), ranks))
    return [
        RankedSystem(
            names[i],
            int((x[:, i] != 0).sum()),
            float(expit(best[i])),
            (float(chances[i, 0]), float(chances[i, 1])),
            (round(places[i, 0]), round(places[i, 1])),
        )
        for i in np.argsort(-best)
    ]


HeldOut = Mapping[str, list[float]]
"""Balanced accuracy and log loss of each dataset that was held out."""


def held_out(joined: JoinedPairs, random_state: int = 0) -> dict[str, HeldOut]:
    """Hold each dataset out in turn, and measure P by joined votes beside P by the votes of either order alone.

    Returns
    -------
    dict
        By kind of votes, balanced accuracy and log loss of each dataset, in the order of their names.

    Raises
    ------
    InputError
        There are fewer than two labeled datasets.
    """
    result: dict[str, HeldOut] = {}
    kinds = {"both orders": joined.votes, **{f"order {order} alone": joined.alone(order) for order in ORDERS}}
    for kind, votes in kinds.items():
        rows: dict[str, list[float]] = {"balanced_accuracy": [], "log_loss": []}
        result[kind] = rows
        for name in votes.dataset_names:
            split = evaluate.hold_out(votes, name)
            scores = model.fit(split.train, random_state=random_state).scores_of(split.test)
            y = split.test.labels
            rows["balanced_accuracy"].append(float(calibration.balanced_accuracy(y, scores.decisions)))
            rows["log_loss"].append(float(calibration.log_loss(y, scores.p_consistent)))
    return result


@dataclass(frozen=True)
class _Pairs:
    """Options of the command.

    Parameters
    ----------
    votes : tuple of str
        Answers: items ending in @ab and @ba, or judges ending in __ab and __ba.
    pairs : str, optional
        The pairs: their texts and systems.
    rank : str, optional
        P of the pairs, as `deep score` writes it.
    held_out : bool, default=False
        Compare P from both orders with P from one order.
    out : Path, optional
        The joined votes: .parquet.
    """

    votes: tuple[str, ...] = option((), "VOTES", flags=["votes"], nargs="+")
    pairs: str | None = option(None, "FILE")
    rank: str | None = option(None, "SCORES")
    held_out: bool = option(False)
    out: Path | None = option(None, "FILE.parquet")


add_arguments = console.adder(_Pairs, "json")

# What `deep score` writes of each pair.
SCORE_COLUMNS = ("dataset", "item_id", "p_consistent")


def run(args: argparse.Namespace) -> int:
    """Join, measure, write and report."""
    if args.rank and not args.pairs:
        raise InputError("`pairs` must be given with `rank`: it has the systems. Got none.")
    out = None if args.out is None else check_out(args.out, [".parquet"])
    panel = join_orders(datasets.read_votes(args.votes))
    texts = [] if args.pairs is None else read_pairs(args.pairs)
    cards = order_cards(panel, texts)
    results = console.SCHEMA | {"pairs": panel.votes.shape[0], "judges": [evaluate.json_value(card) for card in cards]}
    lines = list(_card_lines(cards, panel.votes.shape[0]))
    if args.held_out:
        result = held_out(panel)
        results["held_out"] = result
        lines += _held_out_lines(result)
    if args.rank:
        rows = [row for _, row in datasets.read_rows(Path(args.rank), SCORE_COLUMNS, param="rank")]
        if not {*SCORE_COLUMNS} <= {*rows[0]}:
            raise InputError(f"`rank` must have the columns {', '.join(SCORE_COLUMNS)}. Got {args.rank!r} without one.")
        scores = {(row["dataset"], row["item_id"]): float(row["p_consistent"]) for row in rows if row["p_consistent"]}
        systems = rank_systems(texts, scores)
        results["systems"] = [asdict(row) for row in systems]
        lines += _rank_lines(systems)
    if out is not None:
        metadata = {"schema_version": 1, "voters": {name: {"kind": "pairs"} for name in panel.votes.voter_names}}
        asking.write_judgments(panel.judgments(), panel.votes.voter_names, out, metadata)
        lines.append(f"votes: {out}")
    console.print_result(results, lines, as_json=args.json)
    return ExitStatus.DONE


def _card_lines(cards: Sequence[OrderCard], n: int) -> Iterator[str]:
    yield f"{n:,} pairs. Position bias: how much more often than 50 % the first text wins, in points (90 % interval)."
    for card in cards:
        if not card.n:
            yield f"  {card.judge}: no pair has answers in both orders"
            continue
        line = f"  {card.judge}: {_points(card.position_bias, card.position_interval)}, "
        line += f"both orders agree on {console.percent(card.agreement)} of {card.n:,}"
        if card.accuracy == card.accuracy:
            line += f", {console.percent(card.accuracy)} of those right"
        if card.length_bias == card.length_bias:
            line += f"; for the longer text {_points(card.length_bias, card.length_interval)}"
        yield line


def _points(bias: float, interval: tuple[float, float]) -> str:
    value, low, high = evaluate.in_percent(bias, "+"), *(evaluate.in_percent(end, "+") for end in interval)
    return f"{value} ({low} to {high})"


def _held_out_lines(results: Mapping[str, HeldOut]) -> Iterator[str]:
    yield "Each dataset held out, mean over datasets: balanced accuracy, log loss"
    both_orders = results["both orders"]
    for kind, rows in results.items():
        line = f"  {kind}: {console.percent(mean(rows['balanced_accuracy']))}, {mean(rows['log_loss']):.3f}"
        if rows is not both_orders:
            gains = [alone - both for alone, both in zip(rows["log_loss"], both_orders["log_loss"], strict=True)]
            error = stdev(gains) / math.sqrt(len(gains))
            line += f"; log loss higher than with both orders by {mean(gains):.3f} (standard error {error:.3f})"
        yield line


def _rank_lines(systems: Sequence[RankedSystem]) -> Iterator[str]:
    yield "Systems by their chance to beat the average system (Bradley-Terry on P; 90 % interval; ranks)"
    for row in systems:
        ends = " to ".join(map(console.percent, row.interval))
        ranks = " to ".join(map(str, dict.fromkeys(row.ranks)))
        yield f"  {row.system}: {console.percent(row.chance)} ({ends}), rank {ranks}, {row.n} pairs"
