"""DeepEval: a metric for ``deepeval.evaluate`` that keeps a skipped test case and a failed judge apart from a score.

Needs ``deep-judges[deepeval]``; docs/integrations/deepeval.md has an example.
"""

import asyncio
from collections.abc import Sequence
from typing import ClassVar

from deep.exceptions import DeepError, needs_extra
from deep.integrations.committee import AnyModel, Verdict, text_of, text_scorer

with needs_extra("deepeval"):
    from deepeval.metrics import BaseMetric
    from deepeval.metrics.utils import check_llm_test_case_params
    from deepeval.test_case import LLMTestCase, SingleTurnParams


class ConsistencyMetric(BaseMetric):
    """Scores whether `actual_output` is consistent with `retrieval_context`, by a model file of deep.

    The score is P(consistent), the reason the judges' votes and words. Where no judge gave a vote, `skipped` is set
    and there is no score. Where a judge failed, `error` is set and a :class:`deep.DeepError` raised, which
    ``ErrorConfig(ignore_errors=True)`` turns into an error of that test case alone. A test case without a
    `retrieval_context` is DeepEval's own ``MissingTestCaseParamsError``.

    Parameters
    ----------
    model : path, Model or TextScorer
        A model or its file; a scorer where limits, prior or prompts of one's own are wanted.
    threshold : float, optional
        The P from which on a test case passes. Default: the model's own decision at the prior of its training
        datasets, in which both kinds of error count the same.
    ledger : str, optional
        The file of answers, where judges ask an LLM.
    name : str, default='Consistency'
        In DeepEval's tables.
    flaky : bool, default=False
        Whether DeepEval leaves this metric out where it says whether a test case passes.

    Raises
    ------
    InputError
        The model cannot be read or its judges cannot be run.
    """

    _required_params: ClassVar[Sequence[SingleTurnParams]] = [
        SingleTurnParams.ACTUAL_OUTPUT,
        SingleTurnParams.RETRIEVAL_CONTEXT,
    ]

    score: float | None
    reason: str | None
    error: str | None
    success: bool | None
    skipped: bool

    def __init__(
        self,
        model: AnyModel,
        threshold: float | None = None,
        *,
        ledger: str | None = None,
        name: str = "Consistency",
        flaky: bool = False,
    ) -> None:
        # DeepEval copies a metric for each test case, from the attributes named like these parameters.
        self.model = text_scorer(model, ledger)
        self.threshold = self.model.threshold if threshold is None else threshold
        self.name, self.flaky = name, flaky
        self.evaluation_model = f"deep {self.model.digest}"  # by which DeepEval's cache tells models apart
        self.verdict: Verdict | None = None

    def measure(
        self, test_case: LLMTestCase, _show_indicator: bool = True, _in_component: bool = False
    ) -> float | None:
        """Return P(consistent); None where the test case is skipped."""
        return self._take(Verdict.on(self.model, *self._pair(test_case)))

    async def a_measure(
        self, test_case: LLMTestCase, _show_indicator: bool = True, _in_component: bool = False
    ) -> float | None:
        """Return P(consistent), found in a thread; None where the test case is skipped."""
        return self._take(await asyncio.to_thread(Verdict.on, self.model, *self._pair(test_case)))

    def is_successful(self) -> bool | None:
        """Return whether the last test case passed; None where it was skipped."""
        if self.error is not None:
            self.success = False
        else:
            self.success = None if self.score is None else self.score >= self.threshold
        return self.success

    @property
    def __name__(self) -> str:
        """The name in DeepEval's tables."""
        return self.name

    def _pair(self, test_case: LLMTestCase) -> tuple[str, str]:
        """Return source and claim, and forget the last test case."""
        self.score = self.reason = self.success = self.error = self.verdict = None
        self.skipped = False
        check_llm_test_case_params(test_case, self._required_params, None, None, self, None, test_case.multimodal)
        return text_of(test_case.retrieval_context), text_of(test_case.actual_output)

    def _take(self, verdict: Verdict) -> float | None:
        """Keep a verdict as DeepEval reads it."""
        self.verdict, self.evaluation_cost = verdict, verdict.cost
        if verdict.status == "error":
            self.error, self.success = verdict.rationale, False
            raise DeepError(verdict.rationale)
        self.score, self.reason, self.skipped = verdict.p, verdict.rationale, verdict.status == "skipped"
        self.is_successful()
        return self.score
