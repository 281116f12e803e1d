"""The `deep` command: one line that names a sub-command, whose own module does the rest."""

import sys
from collections.abc import Sequence
from importlib import import_module

__all__ = ["COMMANDS", "main"]

COMMANDS = {
    "annotate": ("deep.commands.annotate", "a worksheet for people who judge claims, and how far they agree"),
    "calibrate": ("deep.commands.calibrate", "correct a model by a few labels of the dataset it is used on"),
    "cognibench": ("deep.experiments.cognibench", "CogniBench: who finds hallucinated sentences; tables and figures"),
    "data": ("deep.commands.data", "benchmarks and files of examples: list, describe, fetch, check, find leakage"),
    "drift": ("deep.commands.drift", "are new votes like those a model was fitted on? which judge has moved"),
    "explain": ("deep.commands.explain", "what each vote adds to the probability that a model gives"),
    "export": ("deep.commands.export", "a model as a table (SQL, CSV, Parquet): every pattern and its probability"),
    "fect": ("deep.experiments.fect", "FECT: judges of interpretive claims, four prompts, repeated runs"),
    "finetune": ("deep.experiments.finetune", "teach a small model to judge from chat JSONL: full or LoRA"),
    "fit": ("deep.commands.fit", "learn a chain from labeled votes, and write its model file"),
    "label-next": ("deep.commands.label_next", "which items to label first, and what error to expect then"),
    "loo": ("deep.experiments.loo", "hold one dataset out; P(consistent) for each of its items, beside every baseline"),
    "panel": ("deep.commands.panel", "does the panel earn its cost? what each judge adds, which to drop"),
    "paper": ("deep.experiments.paper", "the DEEP paper's tables and figures, its printed ones beside this run's"),
    "probe": ("deep.experiments.probe", "PROBE: build the benchmark, measure every step of a detector, training data"),
    "prompts": ("deep.commands.prompts", "list, show, render and check the prompts that judge"),
    "score": ("deep.commands.score", "P(consistent) by a model, of votes or of text that its judges read first"),
    "select": ("deep.commands.select", "decide only where confident enough to be right as often as wanted"),
    "sequential": ("deep.commands.sequential", "questions saved where judges are asked one by one"),
    "transfer": ("deep.experiments.transfer", "how well P(consistent) holds on datasets never seen"),
    "votes": ("deep.commands.votes", "ask LLMs; a vote or a reason for every example, prompt and model"),
}
"""Sub-command to the module whose ``main(argv)`` runs it, and what it is for."""

USAGE_ERROR = 2
INTERRUPTED = 130


def help_text() -> str:
    """Return what `deep --help` prints."""
    width = max(map(len, COMMANDS))
    lines = [f"  {name:<{width}}  {purpose}" for name, (_, purpose) in sorted(COMMANDS.items())]
    return "\n".join(
        [
            "usage: deep COMMAND [options]",
            "",
            "One calibrated P(consistent) from the votes of several weak judges.",
            "",
            "commands:",
            *lines,
            "",
            "deep COMMAND --help shows its options and examples, for instance:",
            "  deep loo --test aggrefact",
            "",
        ]
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run a sub-command; its module is imported only then, so that help is instant."""
    words = list(sys.argv[1:] if argv is None else argv)
    if not words or words[0] in ("-h", "--help"):
        sys.stdout.write(help_text())
        return 0
    if words[0] == "--version":
        from deep import __version__

        sys.stdout.write(f"deep {__version__}\n")
        return 0
    if words[0] not in COMMANDS:
        known = ", ".join(sorted(COMMANDS))
        sys.stderr.write(f"error: `COMMAND` must be one of {known}. Got {words[0]!r}.\n")
        return USAGE_ERROR
    try:
        status: int = import_module(COMMANDS[words[0]][0]).main(words[1:])
    except KeyboardInterrupt:  # while libraries were loading; a running command answers for itself
        sys.stderr.write("interrupted; nothing was written\n")
        return INTERRUPTED
    return status


if __name__ == "__main__":
    sys.exit(main())
