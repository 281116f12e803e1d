"""Logs of Inspect, made by its own `eval` with a mocked model."""

from deep.records import Example


def run_task(pairs, folder, *, graders=(), epochs=1, task="weather", outputs=None, wrong=()):
    """Run a task whose model says the claims of pairs, and return the log's path.

    Parameters
    ----------
    pairs : sequence of Example
        The sample's metadata have the source; its input asks for a summary of it.
    folder : Path
    graders : sequence of Scorer
    outputs : sequence of str, optional
        In place of the claims.
    wrong : collection of str
        Samples whose solver breaks.
    """
    import inspect_ai
    from inspect_ai.dataset import Sample
    from inspect_ai.model import ModelOutput, ModelUsage, get_model
    from inspect_ai.solver import generate, solver

    @solver
    def fragile():
        async def solve(state, generate):
            if state.sample_id in wrong:
                raise ValueError("broken")
            return state

        return solve

    def said(text):
        output = ModelOutput.from_content("mockllm/model", text)
        output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)  # or it fetches a tokenizer to count
        return output

    samples = [
        Sample(id=pair.example_id, input=f"Summarise: {pair.source}", target="", metadata={"source": pair.source})
        for pair in pairs
    ]
    texts = [pair.claim for pair in pairs] if outputs is None else outputs
    model = get_model("mockllm/model", custom_outputs=[said(text) for text in texts] * epochs, memoize=False)
    work = inspect_ai.Task(
        name=task, dataset=samples, solver=[generate(), fragile()], scorer=list(graders), epochs=epochs
    )
    (log,) = inspect_ai.eval(work, model=model, log_dir=str(folder), display="none", max_samples=1, fail_on_error=False)
    return log.location


def grader_of(name, values):
    """Return a grader that gives each sample the score, or the value, that stands under its id."""
    from inspect_ai.scorer import Score, accuracy, scorer

    @scorer(metrics=[accuracy()], name=name)
    def grader():
        async def score(state, target):
            value = values.get(state.sample_id)
            return value if value is None or isinstance(value, Score) else Score(value=value)

        return score

    return grader()


def pairs_named(*names):
    """Return pairs of short texts, with these ids."""
    return [Example("It rained for 3 days.", f"It rained for {n} days.", name) for n, name in enumerate(names, 1)]
