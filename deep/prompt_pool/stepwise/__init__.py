"""Process-based detection after PROBE: claims, evidence, verdicts and spans, each step usable alone."""

from deep.prompt_pool.stepwise._judge import (
    CheckedClaim,
    DirectJudge,
    StepwiseJudge,
    check_claims,
    unsupported_spans,
)
from deep.prompt_pool.stepwise._locate import Span, Text, around, covered, merge_spans
from deep.prompt_pool.stepwise._replies import read_list, read_verdict
from deep.prompt_pool.stepwise._steps import (
    Claim,
    Excerpt,
    decompose,
    decomposition_question,
    evaluate_evidence,
    evaluation_question,
    fence_code,
    fenced_messages,
    find_evidence,
    find_unsupported,
    finding_question,
    read_claims,
    read_evidence,
)

__all__ = [
    "CheckedClaim",
    "Claim",
    "DirectJudge",
    "Excerpt",
    "Span",
    "StepwiseJudge",
    "Text",
    "around",
    "check_claims",
    "covered",
    "decompose",
    "decomposition_question",
    "evaluate_evidence",
    "evaluation_question",
    "fence_code",
    "fenced_messages",
    "find_evidence",
    "find_unsupported",
    "finding_question",
    "merge_spans",
    "read_claims",
    "read_evidence",
    "read_list",
    "read_verdict",
    "unsupported_spans",
]
