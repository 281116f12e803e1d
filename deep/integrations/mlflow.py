"""MLflow: a scorer that gives P(consistent) with the judges' words, and an evaluator that measures a committee.

Needs ``deep-judges[mlflow]``; docs/integrations/mlflow.md has examples. An entry point makes the evaluator known to
``mlflow.models.evaluate`` as ``deep``.
"""

import json
import math
from typing import Any

from deep import __version__
from deep.exceptions import needs_extra
from deep.integrations.committee import AnyModel, Verdict, measure, text_of, text_scorer
from deep.records import VoteMatrix

with needs_extra("mlflow"):
    import mlflow
    from mlflow.entities import AssessmentError, AssessmentSource, Feedback, Trace
    from mlflow.genai.scorers import Scorer
    from mlflow.models import EvaluationResult
    from mlflow.models.evaluation import ModelEvaluator
    from pydantic import PrivateAttr

# The error codes of feedback without a value: ask again; no judge gave a vote.
CODES = {"error": "NOT_JUDGED", "skipped": "NO_VOTE"}


class ConsistencyScorer(Scorer):
    """Scores whether `outputs` are consistent with a source, by a model file of deep.

    Feedback has P(consistent) as its value, the judges' votes and words as its rationale, and interval, decision and
    votes as metadata. Where no judge gave a vote, or one failed, there is an error in place of a value.

    Parameters
    ----------
    model : path, Model or TextScorer
        A model or its file; a scorer where limits, prior or prompts of one's own are wanted.
    ledger : str, optional
        The file of answers, where judges ask an LLM.
    name : str, default='consistency'
        Of the feedback.
    source : str, default='source'
        The key of `inputs`, else of `expectations`, that holds the source: text, or a list of passages.
    claim : str, default='claim'
        The key of the claim, where `outputs` is a mapping; a text is the claim itself.

    Raises
    ------
    InputError
        The model cannot be read or its judges cannot be run.
    """

    name: str = "consistency"
    source: str = "source"
    claim: str = "claim"
    _texts: Any = PrivateAttr()

    def __init__(self, model: AnyModel, *, ledger: str | None = None, **fields: Any) -> None:
        super().__init__(**fields)
        self._texts = text_scorer(model, ledger)

    def __call__(
        self,
        *,
        inputs: Any = None,
        outputs: Any = None,
        expectations: dict[str, Any] | None = None,
        trace: Trace | None = None,  # noqa: ARG002  MLflow hands over what it has
    ) -> Feedback:
        """Return the feedback on one row."""
        places = [place for place in (inputs, expectations) if isinstance(place, dict) and self.source in place]
        source = text_of(places[0][self.source]) if places else ""
        claim = text_of(outputs.get(self.claim) if isinstance(outputs, dict) else outputs)
        return self._feedback(Verdict.on(self._texts, source, claim))

    def _feedback(self, verdict: Verdict) -> Feedback:
        """Return a verdict as MLflow keeps it: metadata are text."""
        scored = verdict.status == "scored"
        value = {"value": verdict.p} if scored else {"error": AssessmentError(CODES[verdict.status], verdict.rationale)}
        values = {key: value for key, value in verdict.metadata().items() if value is not None}
        return Feedback(
            name=self.name,
            rationale=verdict.rationale,
            source=AssessmentSource("LLM_JUDGE" if self._texts.asks else "CODE", f"deep {__version__}"),
            metadata={key: value if isinstance(value, str) else json.dumps(value) for key, value in values.items()},
            **value,
        )


class CommitteeEvaluator(ModelEvaluator):
    """Measures the committee whose votes are the columns of a table, with the figures that `deep panel` prints.

    Called by ``mlflow.models.evaluate(data=table, targets="label", model_type="committee", evaluators="deep")``. The
    table has a column a judge: 1, 0 or nothing, also true and false, yes and no. Columns `item_id`, `document_id` and
    `dataset` may stand beside them. Metrics are `effective_size`, `agreement` and `calibrated_accuracy`; one that
    cannot be measured is left out.
    """

    def can_evaluate(self, *, model_type: str, evaluator_config: Any, **_: Any) -> bool:  # noqa: ARG002  MLflow's names
        """Tell whether this is asked for by its model type."""
        return model_type == "committee"

    def evaluate(self, *, dataset: Any, **_: Any) -> EvaluationResult:
        """Log the figures of a committee to the run, and return them.

        Raises
        ------
        InputError
            A cell of the table is neither a vote nor empty.
        """
        table = dataset.features_data.copy()
        if dataset.has_targets:
            table["label"] = dataset.labels_data
        if "item_id" not in table:
            table["item_id"] = [str(number) for number in range(len(table))]
        votes = VoteMatrix.from_frame(table, dataset=None if "dataset" in table else "table")
        result = {name: value for name, value in measure(votes).items() if not math.isnan(value)}
        mlflow.log_metrics(result)
        return EvaluationResult(metrics=result, artifacts={})
