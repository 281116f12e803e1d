"""Three graders of one model vote on the weather of examples/claims.csv, and a committee measures what they are worth.

    inspect eval examples/inspect/committee.py --model openai-api/local/NAME --model-base-url http://127.0.0.1:8000/v1

The claims are given, so that nothing is generated: the model is asked by the graders alone. Each of the three prompts
looks at something else; the committee's effective size says how far their errors are independent.
"""

import csv
from pathlib import Path

from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput
from inspect_ai.scorer import Scorer, model_graded_qa
from inspect_ai.solver import Generate, Solver, TaskState, solver

from deep.integrations.inspect import committee

CLAIMS = Path(__file__).resolve().parents[1] / "claims.csv"
ASKED = "Source: {question}\n\nClaim: {answer}\n\n%s End with GRADE: C if so, with GRADE: I if not."
CRITERIA = [
    "Does the source say what the claim says?",
    "Does the source hold every number of the claim?",
    "Would a careful reader of the source agree with the claim?",
]


@solver
def given_claim() -> Solver:
    """Take the claim that is given as the model's output."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:  # noqa: ARG001  nothing is generated
        state.output = ModelOutput.from_content("given", state.metadata["claim"])
        return state

    return solve


def grader(criterion: str) -> Scorer:
    """Return a grader that asks the model under evaluation one question."""
    return model_graded_qa(template=ASKED % criterion)


@task
def weather() -> Task:
    """Grade each claim three times, and put the grades beside its label."""
    with CLAIMS.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["dataset"] == "weather"]
    samples = [
        Sample(row["source"], id=row["example_id"], metadata={"claim": row["claim"], "label": int(row["label"])})
        for row in rows
    ]
    return Task(samples, solver=given_claim(), scorer=[*map(grader, CRITERIA), committee()])
