"""The calls of `call_layer.py` made by Inspect, in an environment that has it; started by that script.

    python benchmarks/inspect_calls.py --url http://127.0.0.1:8000/v1 --calls 3000 --workers 64 --document "A text."

Evaluates a task of as many samples with Inspect's `generate` and without a scorer, and writes Inspect's log into the
current folder. Timed is `eval` alone, after an evaluation of as many samples as there are workers in the same process.
"""

import argparse
import json
import os
import sys
import time
from importlib.metadata import version


def rate(calls: int, workers: int, document: str) -> float:
    """Return the calls a second of an evaluation."""
    from inspect_ai import Task, eval  # noqa: A004  its name
    from inspect_ai.dataset import Sample
    from inspect_ai.solver import generate, system_message

    samples = [Sample(id=i, input=f"{i} {document}") for i in range(1, calls + 1)]
    task = Task(dataset=samples, solver=[system_message("Check the claim against the source."), generate()])
    limits = {"max_connections": workers, "max_samples": workers, "temperature": 0}
    started = time.perf_counter()
    (log,) = eval(
        task,
        model="openai/tiny",
        model_args={"responses_api": False},
        display="none",
        log_level="error",
        log_dir=".",
        **limits,
    )
    seconds = time.perf_counter() - started
    if log.status != "success" or log.results.completed_samples != calls:
        sys.exit(f"Inspect: {log.status}, {log.error}")
    return calls / seconds


def main() -> None:
    """Measure, and print JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--url", required=True)
    parser.add_argument("--calls", type=int, required=True)
    parser.add_argument("--workers", type=int, required=True)
    parser.add_argument("--document", required=True)
    args = parser.parse_args()
    os.environ |= {"OPENAI_API_KEY": "none", "OPENAI_BASE_URL": args.url}
    rate(args.workers, args.workers, args.document)
    result = {"version": version("inspect-ai"), "per_s": rate(args.calls, args.workers, args.document)}
    sys.stdout.write(f"{json.dumps(result)}\n")


if __name__ == "__main__":
    main()
