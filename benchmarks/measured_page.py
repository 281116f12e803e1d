"""Fill the marked tables of README.md, docs/results.md and docs/results-tables.md from the JSON of `measured.py`."""

import re
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

Found = Mapping[str, Any]

MARK = re.compile(r"(<!-- results:(\S+) -->\n).*?(<!-- /results -->)", re.DOTALL)
WIDTH = 112
"""Columns of a line of a command."""
PANELS = {
    "alttest": "six LLMs, ten annotation tasks",
    "umass_triviaqa": "nine LLMs: is the answer correct?",
    "llmbar": "60 LLM judges: which answer follows the instruction?",
    "css_binary": "11 to 13 LLM judges, social science",
    "summeval_llm": "nine LLM judges of summaries",
    "llm_aggrefact": "23 encoder fact-checkers",
}
"""Panels of judges, and what they judge."""
SUMMARY = "summary"
"""The mark of the table of all panels."""
SHOWN_RIVALS = ("the paper's recipe", "ridge", "best judge, its context")
"""Rivals of the table of panels, each with balanced accuracy and log loss."""


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a table in Markdown."""
    return [f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows)]


def percent(value: float | None, form: str = ".1f") -> str:
    """Return a share in percent, nothing for None."""
    return "" if value is None else f"{100 * value:{form}}"


def loss(value: float | None) -> str:
    """Return a log loss with three digits, nothing for None."""
    return "" if value is None else f"{value:.3f}"


def three(row: Found) -> str:
    """Return balanced accuracy, ECE and log loss."""
    return f"{percent(row['balanced_accuracy'])} / {percent(row['ece'])} / {loss(row['log_loss'])}"


def accuracy(row: Found) -> str:
    """Return balanced accuracy with its 95 % interval."""
    low, high = row["balanced_accuracy_ci"]
    return f"{percent(row['balanced_accuracy'])} ({percent(low)}-{percent(high)})"


def error(row: Found) -> str:
    """Return the ECE beside its noise floor."""
    return f"{percent(row['ece'])} ({percent(row['ece_floor'])})"


def held_out(found: Found) -> list[str]:
    """Return the table of a leave-one-out run, a row a dataset and the mean."""
    head = ["held out", "n", "consistent", "recommended: balanced accuracy", "best single judge", "majority"]
    head += ["ECE (floor)", "log loss", "best single chain", "its balanced accuracy / ECE / log loss", "oracle"]

    def row(run: Found) -> list[str]:
        best, chain, rivals = run["recommended"], run["recommended_chain"], run["rivals"]
        named = f"{chain['ensembler']} ({chain['n_prompts']}), {chain['calibrator'] or 'none'}"
        return [
            run["test"],
            f"{run['n_test']:,}",
            f"{percent(run['prior_test'])} %",
            accuracy(best),
            *(percent(rivals[kind]["balanced_accuracy"]) for kind in ("best_prompt", "majority")),
            error(best),
            loss(best["log_loss"]),
            named,
            three(chain),
            percent(run["oracle"]["balanced_accuracy"]),
        ]

    mean = found["mean"]
    rivals = [percent(mean[kind]["balanced_accuracy"]) for kind in ("best_prompt", "majority")]
    best = mean["recommended"]
    last = [
        "**mean**",
        "",
        "",
        f"**{percent(best['balanced_accuracy'])}**",
        *rivals,
        error(best),
        loss(best["log_loss"]),
    ]
    last += ["", three(mean["recommended_chain"]), percent(mean["oracle"]["balanced_accuracy"])]
    return table(head, [*map(row, found["runs"]), last])


RECIPES = {"recommended": "stack", "recommended_chain": "single chain", "recommended_paper": "paper"}
"""What each recipe chooses."""


def recipes(found: Found) -> list[str]:
    """Return the table of both recipes."""
    metrics = {"balanced_accuracy": percent, "ece": percent, "log_loss": loss}
    titles = ("balanced accuracy", "ECE", "log loss")
    head = [f"{title}: {name}" for title in titles for name in RECIPES.values()]

    def figures(run: Found) -> list[str]:
        return [shown(run[name][metric]) for metric, shown in metrics.items() for name in RECIPES]

    def chain(run: Found) -> str:
        return f"{run['recommended_paper']['ensembler']} ({run['recommended_paper']['n_prompts']})"

    rows = [[run["test"], *figures(run), chain(run)] for run in found["runs"]]
    return table(["held out", *head, "the paper's chain"], [*rows, ["**mean**", *figures(found["mean"]), ""]])


METHODS = {
    "paper": "paper's recipe",
    "platt": "Platt on the pooled data (logistic regression on all votes)",
    "best_judge": "best single judge, chosen on training data",
    "best_judge_learned_threshold": "the same with the threshold learned there",
    "best_judge_context": "best single judge, its score and its dataset mean",
    "deep": "**deep**",
}


def methods(found: Found) -> list[str]:
    """Return the means over held-out datasets, and deep's with intervals, less each rival."""
    summary = found["summary"]
    means = summary["methods"]
    floor = percent(means["deep"]["ece_floor"])

    def shown(row: Found) -> list[str]:
        return [percent(row["balanced_accuracy"]), percent(row.get("ece")), loss(row.get("log_loss"))]

    rows = [[title, *shown(means[name])] for name, title in METHODS.items() if name in means]
    lines = table(["mean over datasets", "balanced accuracy", f"ECE (8 bins; floor {floor})", "log loss"], rows)
    less = [["deep", *with_intervals(summary["deep"], "")]]
    less += [
        [f"deep less {METHODS[name]}", *with_intervals(summary["deep_minus"][name], "+")]
        for name in METHODS
        if name in summary["deep_minus"]
    ]
    head = ["95 % intervals for datasets like these; differences paired", "balanced accuracy", "ECE", "log loss"]
    return [*lines, "", *table(head, less)]


LABELS = ("20", "50", "100")
"""Numbers of labels in the table of the README."""


def headline(found: Found) -> list[str]:
    """Return the table of the README: the closest rivals, deep, and deep with labels."""
    summary = found["summary"]
    means, labeled = summary["methods"], summary["labeled"]
    rows = [
        [METHODS[name].strip("*"), percent(row["balanced_accuracy"]), percent(row["ece"]), loss(row["log_loss"])]
        for name in ("paper", "best_judge", "best_judge_context", "deep")
        for row in [means[name]]
    ]
    accuracies = " / ".join(percent(labeled[n]["balanced_accuracy"]) for n in LABELS)
    errors = " / ".join(percent(summary["few_labels"][n]) for n in LABELS)
    rows.append([f"deep with {' / '.join(LABELS)} labels of the new dataset", accuracies, errors, ""])
    floor = percent(means["deep"]["ece_floor"])
    return table(["mean over datasets", "balanced accuracy", f"ECE (noise floor {floor})", "log loss"], rows)


def with_intervals(row: Found, sign: str) -> list[str]:
    """Return mean and interval of each metric, nothing where it is not defined."""
    forms = {"balanced_accuracy": (100, ".1f"), "ece": (100, ".1f"), "log_loss": (1, ".3f")}

    def shown(values: Sequence[float], factor: int, form: str) -> str:
        mean, low, high = (f"{factor * value:{sign}{form}}" for value in values)
        return f"{mean} ({low} to {high})"

    return ["" if row[metric] is None else shown(row[metric], *way) for metric, way in forms.items()]


def targets(found: Found) -> list[str]:
    """Return the table of held-out datasets: deep beside its closest rival, the prior, and a few labels."""
    head = ["held out", "balanced accuracy: deep", "best judge, its context", "ECE: deep (floor)", "log loss: deep"]
    head += [
        "Platt, pooled",
        "prior: true",
        "estimated (90 %)",
        "ECE with 10 / 20 / 100 labels",
        "canary, 10 / 20 labels",
    ]

    def row(target: Found) -> list[str]:
        by, prior = target["methods"], target["prior"]
        low, high = prior["interval"]
        few = " / ".join(percent(target["few_labels"].get(n)) for n in ("10", "20", "100"))
        flagged = " / ".join(percent((target["labeled"].get(n) or {}).get("flagged")) for n in ("10", "20"))
        return [
            target["dataset"],
            *(percent(by[name]["balanced_accuracy"]) if name in by else "" for name in ("deep", "best_judge_context")),
            error(by["deep"]),
            *(loss(by[name]["log_loss"]) for name in ("deep", "platt")),
            percent(target["consistent"]),
            f"{percent(prior['estimate'])} ({percent(low, '.0f')}-{percent(high, '.0f')})"
            + ("" if prior["covered"] else " *missed*"),
            few,
            flagged,
        ]

    return table(head, map(row, found["targets"]))


WORLDS = {
    "pooled_logistic_regression": "logistic regression, pooled",
    "label_model_platt": "LabelModel + Platt",
    "deep": "deep",
    "bayes": "the truth",
}


def worlds(found: Found) -> list[str]:
    """Return the table of simulated worlds: balanced accuracy, ECE and log loss."""
    rows = [[world, *(three(by[name]) for name in WORLDS)] for world, by in found["summary"].items()]
    return table(["simulated world", *WORLDS.values()], rows)


def panel(found: Found) -> list[str]:
    """Return the table of a panel, a row a number of training datasets."""
    head = ["training datasets", "deep: balanced accuracy / ECE / log loss", "best judge", "deep less it", "majority"]
    head += [*SHOWN_RIVALS, "log loss of the training prior", "prior covered, %"]

    def row(cell: Found) -> list[str]:
        by = cell["rivals"]
        mean, spread = by["best judge"]["deep_less"]["balanced_accuracy"]
        return [
            str(cell["training_datasets"]),
            three(by["deep"]),
            percent(by["best judge"]["balanced_accuracy"]),
            f"{percent(mean, '+.1f')} ± {percent(spread)}",
            percent(by["majority"]["balanced_accuracy"]),
            *(_two(by[rival]) if rival in by else "" for rival in SHOWN_RIVALS),
            loss(by["training prior"]["log_loss"]),
            percent(cell["prior_covered"], ".0f"),
        ]

    return table(head, map(row, found["cells"]))


def overview(panels: Mapping[str, Found], before: Sequence[str] = ()) -> list[str] | None:
    """Return the table of all panels, each dataset held out once; the row that was there before where a run is not."""
    rows_before = {name: line for line in before for name in PANELS if line.startswith(f"| {name}: ")}
    if panels.keys() | rows_before.keys() != PANELS.keys():
        return None
    head = ["panel", "held out", "balanced accuracy: deep", "best single judge", "deep less it", "majority"]
    head += ["the paper's recipe", "ECE: deep", "prior covered, %"]

    def row(name: str) -> list[str]:
        (cell,) = (cell for cell in panels[name]["cells"] if cell["training_datasets"] == "all")
        by = cell["rivals"]
        mean, spread = by["best judge"]["deep_less"]["balanced_accuracy"]
        return [
            f"{name}: {PANELS[name]}",
            str(cell["targets"]),
            percent(by["deep"]["balanced_accuracy"]),
            percent(by["best judge"]["balanced_accuracy"]),
            f"{percent(mean, '+.1f')} ± {percent(spread)}",
            *(percent(by[rival]["balanced_accuracy"]) for rival in ("majority", "the paper's recipe")),
            percent(by["deep"]["ece"]),
            percent(cell["prior_covered"], ".0f"),
        ]

    measured = dict(zip(panels, table(head, map(row, panels))[2:], strict=True))
    return [*table(head, []), *(measured.get(name) or rows_before[name] for name in PANELS)]


def few_labels(found: Found) -> list[str]:
    """Return the table of what random labels of the held-out dataset bring."""
    summary = found["summary"]
    without, numbers = summary["methods"]["deep"], list(summary["few_labels"])
    accuracies = [summary["labeled"].get(n, {}).get("balanced_accuracy") for n in numbers]
    rows = [
        ["ECE", percent(without["ece"]), *(percent(summary["few_labels"][n]) for n in numbers)],
        ["balanced accuracy", percent(without["balanced_accuracy"]), *map(percent, accuracies)],
    ]
    return table(["labels", "0", *numbers], rows)


def _two(row: Found) -> str:
    return f"{percent(row['balanced_accuracy'])} / {loss(row['log_loss'])}"


SECTIONS: Mapping[str, tuple[str, Callable[[Found], list[str]]]] = {
    "loo-simulated": ("loo-simulated", held_out),
    "loo-llm_aggrefact": ("loo-llm_aggrefact", held_out),
    "loo-recipes": ("loo-recipes", recipes),
    "loo-summedits": ("loo-summedits", held_out),
    "transfer-llm_aggrefact": ("transfer-llm_aggrefact", methods),
    "transfer-llm_aggrefact-datasets": ("transfer-llm_aggrefact", targets),
    "transfer-llm_aggrefact-labels": ("transfer-llm_aggrefact", few_labels),
    "transfer-llm_aggrefact-headline": ("transfer-llm_aggrefact", headline),
    "transfer-simulated": ("transfer-simulated", worlds),
    "transfer-summeval_llm": ("transfer-summeval_llm", methods),
    **{f"panel-{name}": (f"panel-{name}", panel) for name in PANELS},
}
"""By mark on a page: the run, and what renders it."""


def about(run: Found) -> list[str]:
    """Return the commands as a block, and by what they were run."""
    wrapped = [textwrap.wrap(words, WIDTH, break_on_hyphens=False, break_long_words=False) for words in run["commands"]]
    versions = ", ".join(f"{name} {number}" for name, number in run["versions"].items())
    took = f"{run['processor_seconds']:,.0f} s of processor time, {run['seconds']:,.0f} s passed"
    return [
        "```console",
        "# Needs the data of the tables.",
        *("$ " + " \\\n    ".join(lines) for lines in wrapped),
        "```",
        "",
        f"Commit {run['commit']}, {run['date']}; {took}; Python {run['machine']['python']}, {versions}.",
    ]


def section(mark: str, runs: Mapping[str, Found], before: Sequence[str] = ()) -> list[str] | None:
    """Return the lines between the marks of a name, None where its run is not there."""
    if mark == SUMMARY:
        return overview({name: runs[f"panel-{name}"]["found"] for name in PANELS if f"panel-{name}" in runs}, before)
    name, render = SECTIONS[mark]
    if name not in runs:
        return None
    shown = render(runs[name]["found"])
    return shown if mark != name else [*about(runs[name]), "", *shown]


def filled(page: str, runs: Mapping[str, Found]) -> str:
    """Return the page with every marked table rendered whose run is there."""

    def one(match: re.Match[str]) -> str:
        begin, mark, end = match.groups()
        lines = section(mark, runs, match[0].splitlines())
        return match[0] if lines is None else "\n".join([begin, *lines, "", end])

    return MARK.sub(one, page)
