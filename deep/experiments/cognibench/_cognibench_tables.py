"""Measures of the detection of hallucinated sentences, agreement of annotators, and Tables 2, 3 and 5 of the paper."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from deep._util.figures import BLUE, GRAY, RED, new_figure, plain_grid
from deep._util.files import JsonObject
from deep.evaluate import DatasetVerdict, IntervalRow, as_frame, draw_intervals, markdown
from deep.exceptions import InputError
from deep.experiments.cognibench._methods import Method
from deep.experiments.cognibench._turns import SentenceFlags, Turn, counts_of
from deep.experiments.study import draw_bars, percentages, printed_text
from deep.experiments.tiered import TIERS
from deep.features import agreement_interval, cohen_kappa, krippendorff_alpha, pairwise_agreement
from deep.integrations.labeling import rating_table, read_annotation_rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure


PARTS = ("overall", "factual", "cognitive")

# Units of the counts: the paper weighs sentences by their words; by sentences, each weighs the same.
UNITS = ("words", "sentences")


@dataclass(frozen=True, slots=True)
class Score:
    """The counts behind precision and recall of a method, in words or in sentences.

    Parameters
    ----------
    decided : int
        In all sentences that it decided.
    labeled : int
        In those that are hallucinated.
    detected : int
        In those that it found hallucinated.
    right : int
        In those that are both.
    open : int
        In the sentences that it left undecided, which enter nothing else.
    """

    decided: int = 0
    labeled: int = 0
    detected: int = 0
    right: int = 0
    open: int = 0

    @property
    def recall(self) -> float | None:
        """Share of the hallucinated units that are detected; None where there are none."""
        return self.right / self.labeled if self.labeled else None

    @property
    def precision(self) -> float | None:
        """Share of the detected units that are hallucinated; None where there are none."""
        return self.right / self.detected if self.detected else None

    @property
    def f1(self) -> float | None:
        """Harmonic mean of both; 0 where something is hallucinated and nothing detected."""
        both = self.labeled + self.detected
        return 2 * self.right / both if both else None

    @property
    def coverage(self) -> float | None:
        """Share of all that lies in decided sentences."""
        every = self.decided + self.open
        return self.decided / every if every else None


def score_turns(turns: Sequence[Turn], flags: SentenceFlags, level: str, by: str = "words") -> dict[str, Score]:
    """Return the scores of a method overall and for factual and cognitive statements, by one of `UNITS`.

    Examples
    --------
    >>> from deep.experiments.cognibench._cognibench_tables import score_turns
    >>> from deep.experiments.cognibench._turns import Turn
    >>> from deep.experiments.tiered import SentenceVerdict
    >>> sentences = (SentenceVerdict("It opened in 1871.", "factual", "invented"),
    ...              SentenceVerdict("It was loved.", "cognitive", "reliable"))
    >>> turn = Turn("1_en_0", "1_en", "", "", sentences)
    >>> score = score_turns([turn], [[True, True]], "grounded")["overall"]
    >>> score.recall, score.precision
    (1.0, 0.5714285714285714)
    """
    rows = [
        (sentence.kind, sentence.words if by == "words" else 1, bool(sentence.hallucinated(level)), flag)
        for turn, in_turn in zip(turns, flags, strict=True)
        for sentence, flag in zip(turn.sentences, in_turn, strict=True)
        if sentence.kind != "irrelevant"
    ]
    scores = {}
    for part in PARTS:
        part_rows = [(n, gold, flag) for kind, n, gold, flag in rows if part in ("overall", kind)]
        decided_rows = [(n, gold, flag) for n, gold, flag in part_rows if flag is not None]
        scores[part] = Score(
            decided=sum(n for n, _, _ in decided_rows),
            labeled=sum(n for n, gold, _ in decided_rows if gold),
            detected=sum(n for n, _, flag in decided_rows if flag),
            right=sum(n for n, gold, flag in decided_rows if gold and flag),
            open=sum(n for n, _, flag in part_rows if flag is None),
        )
    return scores


def macro(scores: dict[str, Score]) -> float | None:
    """Return the mean of the F1 of factual and of cognitive statements; None where one is not defined."""
    values = [scores[part].f1 for part in ("factual", "cognitive")]
    numbers = [value for value in values if value is not None]
    return sum(numbers) / 2 if len(numbers) == 2 else None


COLUMNS = ("item_id", "protocol", "annotator", "label")

# Different values that are compared with one another; where there are more, a column holds something else.
MAX_DISTINCT_VALUES = {"protocol": 100, "label": 1_000}


def read_annotations(path: Path) -> pd.DataFrame:
    """Return a CSV file of annotations: a label for each item, protocol and annotator; rows without one left out.

    Raises
    ------
    InputError
        The file cannot be read, a column is not there, a cell is empty, a row comes twice, or there is no label.
    """
    _, rows = read_annotation_rows(path, COLUMNS[:3])
    frame = pd.DataFrame([{name: row[name].strip() for name in COLUMNS} for row in rows])
    frame = frame[frame["label"] != ""]
    if frame.empty:
        raise InputError(f"`label` must be given at least once. Got none in {str(path)!r}.")
    for name, most in MAX_DISTINCT_VALUES.items():
        if (n := frame[name].nunique()) > most:
            raise InputError(f"`{name}` must have at most {most:,} different values. Got {n:,} in {str(path)!r}.")
    return frame


def agreement_tables(frame: pd.DataFrame, *, n_boot: int = 2000, random_state: int = 0) -> dict[str, pd.DataFrame]:
    """Return the agreement within each protocol, and between each two.

    Within: the share of pairs of annotators that give an item the same label, as Table 1 of the paper has it, and
    Krippendorff's alpha with its interval. Between: the same share of items, and Cohen's kappa, of the commonest
    label that each protocol gives; an item without a commonest one is left out.
    """
    codes = {label: code for code, label in enumerate(sorted(set(frame["label"])))}
    within, majority = [], {}
    for protocol, part in frame.groupby("protocol", sort=True):
        marks = zip(part["item_id"], part["annotator"], map(codes.__getitem__, part["label"]), strict=True)
        ratings = rating_table(marks, *(sorted(set(part[name])) for name in ("item_id", "annotator")))
        low, high = agreement_interval(krippendorff_alpha, ratings, n_boot=n_boot, random_state=random_state)
        within.append(
            {
                "protocol": protocol,
                "items": len(ratings),
                "annotators": ratings.shape[1],
                "agreement": pairwise_agreement(ratings),
                "alpha": krippendorff_alpha(ratings),
                "alpha low": low,
                "alpha high": high,
            }
        )
        majority[str(protocol)] = {
            str(item): _commonest(list(labels)) for item, labels in part.groupby("item_id")["label"]
        }
    between = [_between(a, b, majority[a], majority[b], codes) for a, b in combinations(majority, 2)]
    return {"within": pd.DataFrame(within), "between": pd.DataFrame(between)}


def _commonest(labels: Sequence[str]) -> str | None:
    (first, n), *others = Counter(labels).most_common(2)
    return None if others and others[0][1] == n else first


def _between(a: str, b: str, of_a: JsonObject, of_b: JsonObject, codes: dict[str, int]) -> JsonObject:
    items = [item for item in of_a if of_a[item] is not None and of_b.get(item) is not None]
    both = np.array([[codes[of_a[item]], codes[of_b[item]]] for item in items], dtype=np.int64).reshape(-1, 2)
    same = float((both[:, 0] == both[:, 1]).mean()) if items else float("nan")
    kappa = cohen_kappa(both) if items else float("nan")
    return {"protocols": f"{a} / {b}", "items": len(items), "agreement": same, "kappa": kappa}


TITLES = {
    "table2-statistics": "Table 2: the labeled turns",
    "table3-detection": "Table 3: F1 of the detection of hallucinated sentences, weighted by words, in percent",
    "table5-ablation": "Table 5: recall and precision of the tiered judge, weighted by words, in percent",
    "metrics": "All measures in percent, by words and by sentences, with their counts",
    "tiers": "Sentences by published verdict and the tiered judges' verdict",
    "rates-by-turn": "Statements and hallucinations by turn of the dialogue (Figures 5 and 7)",
    "rates-by-position": "Statements and hallucinations by position in the turn (Figure 7)",
    "shares-by-labels": "Types of statement and hallucinations, by origin of the labels",
    "figure8-models": "Figure 8: types of statement and hallucinations by the LLM that wrote the response",
}

# Equal parts of a turn, in sentences; the position of a sentence is the part that its middle lies in.
N_POSITIONS = 5

PUBLISHED = "published labels"

ScoredMethods = Sequence[tuple[Method, dict[str, Score]]]

# The scores by words, and those by sentences.
ByUnit = Mapping[str, ScoredMethods]


def scores_of(turns: Sequence[Turn], methods: Sequence[Method], level: str) -> ByUnit:
    """Return each method with its scores, by unit."""
    return {unit: [(method, score_turns(turns, method.found, level, unit)) for method in methods] for unit in UNITS}


def tables(turns: Sequence[Turn], by_unit: ByUnit, level: str) -> dict[str, pd.DataFrame]:
    """Return all tables by file name; those without a row are left out."""
    scored = by_unit["words"]
    methods = [method for method, _ in scored]
    result = {
        "table2-statistics": statistics(turns),
        "table3-detection": detection(scored),
        "table5-ablation": ablation(scored),
        "metrics": metrics(by_unit),
        "tiers": tier_table(turns, methods),
        "rates-by-turn": rates(turns, methods, "turn", level),
        "rates-by-position": rates(turns, methods, "position", level),
        "shares-by-labels": shares(_labels(turns, methods, level)),
        "figure8-models": shares(_by_generator(turns, methods, level)),
    }
    return {name: frame for name, frame in result.items() if not frame.empty}


@as_frame
def statistics(turns: Sequence[Turn]) -> Iterator[JsonObject]:
    """Table 2: the basic statistics of the labeled turns."""
    yield {
        "dataset": "CogniBench",
        "responses": len(turns),
        "conversations": len({turn.dialogue_id for turn in turns}),
        "labeled sentences": sum(s.kind != "irrelevant" for turn in turns for s in turn.sentences),
        "context words": _spread([len(turn.knowledge.split()) for turn in turns]),
        "words per response": _spread([len(turn.response.split()) for turn in turns]),
    }


def _spread(values: Sequence[int]) -> str:
    return f"{min(values)}-{max(values)} ({sum(values) / len(values):.2f})"


@as_frame
def detection(scored: ScoredMethods) -> Iterator[JsonObject]:
    """Table 3: F1 of every method, overall, for factual and for cognitive statements."""
    for method, scores in scored:
        f1 = {part: scores[part].f1 for part in PARTS}
        more = {"macro mean": macro(scores), "coverage": scores["overall"].coverage}
        yield {"group": method.group, "method": method.title, **f1, **more}


@as_frame
def ablation(scored: ScoredMethods) -> Iterator[JsonObject]:
    """Table 5: recall and precision of the tiered judge by threshold, and without parts of it."""
    for method, scores in scored:
        if method.ablation:
            cells = {f"{part} {m}": getattr(scores[part], m) for part in PARTS for m in ("recall", "precision")}
            yield {"method": f"{method.ablation} ({method.model})", **cells}


@as_frame
def metrics(by_unit: ByUnit) -> Iterator[JsonObject]:
    """All measures of every method, with the counts that they are made of."""
    for unit, scored in by_unit.items():
        for method, scores in scored:
            for part, score in scores.items():
                yield {"group": method.group, "method": method.title, "by": unit, "part": part, **_measures(score)}


def _measures(score: Score) -> JsonObject:
    return {**{name: getattr(score, name) for name in ("precision", "recall", "f1", "coverage")}, **asdict(score)}


def tier_table(turns: Sequence[Turn], methods: Sequence[Method]) -> pd.DataFrame:
    """Verdicts of the tiered judges by published verdict: a row for each pair that occurs, with its sentences."""
    rows = [
        {"method": method.title, "published": gold.verdict, "judged": label.verdict or "undecided"}
        for method in methods
        if method.verdicts is not None
        for turn, verdicts in zip(turns, method.verdicts, strict=True)
        for gold, label in zip(turn.sentences, verdicts, strict=True)
    ]
    if not rows:
        return pd.DataFrame()
    return pd.DataFrame(rows).value_counts(sort=False).rename("sentences").reset_index()


# Type of a statement, and whether it is hallucinated.
Labeled = tuple[str | None, bool | None]

# Whose labels they are, or of which LLM's responses, and those labels by turn.
Origin = tuple[str, list[list[Labeled]]]


def _labels(turns: Sequence[Turn], methods: Sequence[Method], level: str) -> Iterator[Origin]:
    """Yield the types and hallucinations that are published, and those that each tiered judge found."""
    yield PUBLISHED, [[(s.kind, s.hallucinated(level)) for s in turn.sentences] for turn in turns]
    for method in methods:
        if method.verdicts is not None:
            kinds = [[label.kind for label in verdicts] for verdicts in method.verdicts]
            pairs = zip(kinds, method.found, strict=True)
            yield method.title, [list(zip(kind, result, strict=True)) for kind, result in pairs]


@as_frame
def rates(turns: Sequence[Turn], methods: Sequence[Method], by: str, level: str) -> Iterator[JsonObject]:
    """Statements and hallucinations by turn of the dialogue, or by position in the turn.

    Parameters
    ----------
    turns : sequence of Turn
        With the published labels of their sentences.
    methods : sequence of Method
        Those with verdicts are shown beside the published labels; their findings are in the order of the turns.
    by : {'position', 'turn'}
        The number of the turn, from 0; or the part of the turn, of `N_POSITIONS`, from 0.
    level : str
        From which level on a cognitive statement is no hallucination, in the published labels.
    """
    for name, labeled in _labels(turns, methods, level):
        places: dict[int, list[Labeled]] = {}
        sizes: Counter[int] = Counter()
        for turn, in_turn in zip(turns, labeled, strict=True):
            sizes.update([turn.index] if by == "turn" else range(N_POSITIONS))
            for i, sentence in enumerate(in_turn):
                place = turn.index if by == "turn" else (2 * i + 1) * N_POSITIONS // (2 * len(in_turn))
                places.setdefault(place, []).append(sentence)
        for place in sorted(sizes):
            rate = _rate(places.get(place, []), sizes[place])
            yield {"labels": name, by: place, "turns": sizes[place], **rate}


def _rate(statements: Sequence[Labeled], n_turns: int) -> JsonObject:
    row: JsonObject = {}
    for kind in ("factual", "cognitive"):
        result = [bad for name, bad in statements if name == kind and bad is not None]
        row[kind] = sum(name == kind for name, _ in statements)
        row[f"{kind} per turn"] = row[kind] / n_turns
        row[f"{kind} hallucinated"] = sum(result)
        row[f"{kind} hallucination rate"] = sum(result) / len(result) if result else None
    return row


def _by_generator(turns: Sequence[Turn], methods: Sequence[Method], level: str) -> Iterator[Origin]:
    """Yield the labels of each origin by the LLM that wrote the responses; nothing where the data do not say it."""
    for generator in dict.fromkeys(turn.generator for turn in turns if turn.generator):
        for name, labeled in _labels(turns, methods, level):
            labels = [some for turn, some in zip(turns, labeled, strict=True) if turn.generator == generator]
            yield f"{generator}: {name}", labels


@as_frame
def shares(origins: Iterable[Origin]) -> Iterator[JsonObject]:
    """Share of factual and cognitive statements, and of hallucinations among them, by origin."""
    for name, labeled in origins:
        row = _rate([sentence for in_turn in labeled for sentence in in_turn], len(labeled))
        typed = row["factual"] + row["cognitive"]
        parts = {f"{kind} share": row[kind] / typed if typed else None for kind in ("factual", "cognitive")}
        yield {"labels": name, **row, **parts}


def sentences(turns: Sequence[Turn], methods: Sequence[Method], level: str) -> pd.DataFrame:
    """Every sentence with its published labels and what each method found: 1 hallucinated, 0 not, empty undecided."""
    fields = ("text", "words", "kind", "verdict")
    every = [(turn.turn_id, i, s) for turn in turns for i, s in enumerate(turn.sentences)]
    rows = [(name, i, *(getattr(s, of) for of in fields), int(bool(s.hallucinated(level)))) for name, i, s in every]
    frame = pd.DataFrame(rows, columns=["turn_id", "position", *fields, "hallucinated"])
    for method in methods:
        values = [value for result in method.found for value in result]
        frame[method.title] = pd.array([None if value is None else int(value) for value in values], dtype="Int8")
        if method.verdicts is not None:
            frame[f"{method.title}: verdict"] = [v.verdict for verdicts in method.verdicts for v in verdicts]
    return frame


def results_of(turns: Sequence[Turn], by_unit: ByUnit) -> JsonObject:
    """Return counts and scores as plain values; `parts` are by words, as the paper's are."""
    methods = [
        {
            "group": method.group,
            "method": method.title,
            "macro_f1": macro(scores),
            "unaligned": len(method.unaligned),
            "parts": {part: _measures(score) for part, score in scores.items()},
            "parts_by_sentences": {part: _measures(score) for part, score in by_sentences.items()},
        }
        for (method, scores), (_, by_sentences) in zip(by_unit["words"], by_unit["sentences"], strict=True)
    ]
    return {"counts": counts_of(turns), "methods": methods}


def summary_text(results: JsonObject, frames: Mapping[str, pd.DataFrame], out: Path) -> str:
    """Return the text that is printed at the end of a run."""
    counts = results["counts"]
    n_unaligned = sum(method["unaligned"] for method in results["methods"])
    lines = [
        ", ".join(f"{n:,} {name}" for name, n in counts.items()),
        "",
        *markdown(percentages(frames["table3-detection"])),
        "",
        "F1 in percent, weighted by words; coverage: words in sentences with a verdict.",
        "",
        *printed_text("cognibench", frames),
        f"{counts['untyped']:,} sentences without a type are left out.",
    ]
    lines += [f"{n_unaligned:,} labels point at text that is not a sentence of its turn."] if n_unaligned else []
    return "\n".join([*lines, f"tables, figures and sentences.csv: in {out}", ""])


def verdict_of(results: JsonObject, turns: Sequence[Turn]) -> DatasetVerdict:
    """Return the answer of a run: the best method beside calling every sentence hallucinated."""
    counts = results["counts"]
    f1 = [(100 * (m["parts"]["overall"]["f1"] or 0.0), m["method"], m["group"]) for m in results["methods"]]
    own, floor = [row for row in f1 if row[2] != "constant"], max(row[0] for row in f1 if row[2] == "constant")
    bad = sum(bool(sentence.hallucinated(results["level"])) for turn in turns for sentence in turn.sentences)
    result, trust = "no method was run", "These are verdicts without a P"
    then = "ask an LLM (--llm), or give what another method found (--spans)"
    if own:
        best, name, _ = max(own)
        result = f"{name} finds hallucinations best, F1 {best:.1f} %"
        word = "" if best > floor else "NOT "
        trust += f"; the best is {word}above calling every sentence hallucinated, F1 {floor:.1f} %"
        then = "score sentences of your own by the best method, and label 30 of them: they show whether it works there"
    suspect = f"{bad:,} of {counts['factual'] + counts['cognitive']:,} statements are hallucinated by label; {result}."
    says = f"{counts['turns']:,} turns, {len(own)} methods and two constant baselines.", suspect, f"{trust}.", then
    return DatasetVerdict(*says, picture="f1-by-method")


def draw_answer(frame: pd.DataFrame) -> "Figure":
    """Draw F1 of every method beside that of calling every sentence hallucinated."""
    ordered = frame.assign(f1=pd.to_numeric(frame["overall"]).fillna(0.0)).sort_values("f1", kind="stable")
    rows = [IntervalRow(str(name), 100 * f1) for name, f1 in zip(ordered["method"], ordered["f1"], strict=True)]
    floor = 100 * float(ordered.loc[ordered["group"] == "constant", "f1"].max())
    return draw_intervals(rows, xlabel="F1 on hallucinated sentences, %; line: all called hallucinated", at=floor)


# The verdicts of a statement, by its kind.
VERDICTS = {"factual": ("faithful", "invented"), "cognitive": TIERS}


def draw_figures(frames: Mapping[str, pd.DataFrame], counts: Mapping[str, int]) -> dict[str, "Figure"]:
    """Return the figures by file name; all but those of shares show the published labels.

    Parameters
    ----------
    frames : mapping of str to DataFrame
        The tables of the run by name, such as ``rates-by-turn``.
    counts : mapping of str to int
        As `counts_of` returns them.
    """
    turn, position = (
        frame[frame["labels"] == PUBLISHED] for frame in (frames["rates-by-turn"], frames["rates-by-position"])
    )
    turns = [f"turn {place} (n={n})" for place, n in zip(turn["turn"], turn["turns"], strict=True)]
    parts = [f"part {place} of {N_POSITIONS} of a turn" for place in position["position"]]
    rates = pd.concat([turn, position])
    verdicts = [(kind, verdict) for kind, several in VERDICTS.items() for verdict in several]
    return {
        "f1-by-method": draw_answer(frames["table3-detection"]),
        "figure5-statements-by-turn": draw_bars(
            turns, {"statements": _by_kind(turn, "per turn")}, "Statements per turn, by turn from 0", share=False
        ),
        "figure6-verdicts": draw_bars(
            [f"{kind}: {verdict} ({counts[verdict]})" for kind, verdict in verdicts],
            {
                "of the statements of that kind": {
                    "statements": [counts[v] / max(1, counts[kind]) for kind, v in verdicts]
                }
            },
            "Verdicts",
        ),
        "figure7-hallucinations": draw_bars(
            [*turns, *parts], {"hallucinated": _by_kind(rates, "hallucination rate")}, "Hallucinations, by place from 0"
        ),
        **{name: draw_shares(frames[name]) for name in ("shares-by-labels", "figure8-models") if name in frames},
    }


def draw_shares(frame: pd.DataFrame) -> "Figure":
    """Draw for each origin of labels the shares of factual and cognitive statements, and what of them is bad."""
    panels = {"of the statements": _by_kind(frame, "share"), "hallucinated": _by_kind(frame, "hallucination rate")}
    return draw_bars(list(frame["labels"]), panels, "Types of statement, and the hallucinated share of each")


def _by_kind(frame: pd.DataFrame, column: str) -> dict[str, Sequence[float]]:
    return {kind: list(frame[f"{kind} {column}"]) for kind in ("factual", "cognitive")}


def draw_curve(frame: pd.DataFrame, fits: Mapping[str, tuple[float, float]]) -> "Figure":
    """Draw F1 by the number of training chats, on a logarithmic axis, with the fitted line of each part."""
    figure = new_figure(6.4, 3.4, constrained=True)
    panel = figure.subplots()
    plain_grid(panel, "y")
    for part, color in zip(PARTS, (GRAY, BLUE, RED), strict=True):
        values = 100 * pd.to_numeric(frame[part])
        panel.plot(frame["training chats"], values, marker="o", linestyle="", color=color, label=part)
        if part in fits:
            low, slope = fits[part]
            line = [100 * (low + slope * math.log10(size)) for size in frame["training chats"]]
            panel.plot(frame["training chats"], line, color=color, linewidth=1)
    panel.set(xscale="log", xlabel="training chats", ylabel="F1, %", ylim=(0, 100))
    panel.set_title("F1 of the tuned detector by training size (Figure 12)", fontsize=11)
    panel.legend(fontsize=9)
    return figure
