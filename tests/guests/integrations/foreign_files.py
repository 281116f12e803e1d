"""Files as other tools write them, made by hand in their published layouts: a name, a content, and what it holds."""

import csv
import io
import json

RAIN, SNOW = "It rained for 3 days in May.", "Snow fell on 2 nights."
TEXTS = [
    (RAIN, "It rained for 3 days."),
    (RAIN, "It rained for 9 days."),
    (SNOW, "Snow fell."),
    (SNOW, "No snow fell."),
]
RIGHT = [1, 0, 1, 0]
ITEMS = [(n, source, claim, right) for n, ((source, claim), right) in enumerate(zip(TEXTS, RIGHT, strict=True))]


def _lines(rows):
    return "".join(f"{json.dumps(row)}\n" for row in rows)


def _csv(header, rows):
    out = io.StringIO()
    csv.writer(out).writerows([header, *rows])
    return out.getvalue()


def promptfoo():
    """Write `promptfoo eval --output results.json`."""
    rows = []
    for n, source, claim, right in ITEMS:
        rubric = {"type": "llm-rubric", "value": "true to the source"}
        parts = [
            {"pass": bool(right), "score": 0.9 if right else 0.2, "reason": "as the source", "assertion": rubric},
            {"pass": n != 1, "score": int(n != 1), "reason": "", "assertion": {"type": "contains", "value": "a"}},
        ]
        graded = {"pass": bool(right), "score": right, "reason": "All assertions passed", "componentResults": parts}
        asked = {"raw": f"Summarise {source}", "label": "Summarise {{context}}"}
        row = {"promptIdx": 0, "testIdx": n, "provider": {"id": "openai:gpt-4o-mini", "label": ""}, "prompt": asked}
        row |= {"vars": {"context": source}, "response": {"output": claim, "tokenUsage": {"total": 9}}}
        row |= {"success": bool(right), "score": right, "failureReason": 0, "latencyMs": 12, "gradingResult": graded}
        rows.append(row)
    rows[3] |= {"gradingResult": None, "failureReason": 2, "response": {"error": "timeout"}}
    results = {"version": 3, "prompts": [], "stats": {}, "results": rows}
    return json.dumps({"evalId": "eval-1", "results": results, "config": {}})


def deepeval():
    """Write `.deepeval/.latest_test_run.json`."""
    cases = []
    for n, source, claim, right in ITEMS:
        faithful = {"name": "Faithfulness", "threshold": 0.7, "success": bool(right), "score": 0.75 if right else 0.5}
        faithful |= {"reason": "because", "strictMode": False, "evaluationModel": "gpt-4o"}
        ended = {"error": "rate limit"} if n == 2 else {"success": n < 2, "score": 0.0 if n < 2 else 1.0}
        metrics = [faithful, {"name": "Hallucination", "threshold": 0.5, "strictMode": False} | ended]
        case = {"name": f"test_case_{n}", "input": "How was the weather?", "actualOutput": claim, "order": n}
        case |= {"retrievalContext": [source, "Another text."], "success": bool(right), "metricsData": metrics}
        cases.append(case)
    run = {"testFile": "test_weather.py", "testCases": cases, "conversationalTestCases": [], "metricsScores": []}
    return json.dumps(run)


def lm_eval():
    """Write what `lm_eval --log_samples` leaves: samples_TASK_TIME.jsonl, here with two filters."""
    rows = []
    for name in ("strict", "flexible"):
        for n, source, claim, right in ITEMS:
            asked = {"gen_args_0": {"arg_0": f"{source} {claim}", "arg_1": {}}}
            row = {"doc_id": n, "doc": {"passage": source, "question": claim}, "target": "yes" if right else "no"}
            row |= {"arguments": asked, "resps": [["yes"]], "filtered_resps": ["yes"], "filter": name}
            row |= {"metrics": ["exact_match"], "doc_hash": "0", "prompt_hash": "1", "target_hash": "2"}
            rows.append(row | {"exact_match": float(right if name == "strict" else n != 1)})
    return _lines(rows)


def ragas():
    """Write `result.to_pandas().to_csv()`: the contexts are the text of a Python list."""
    header = ["row", "user_input", "retrieved_contexts", "response", "reference", "faithfulness", "answer_relevancy"]
    rows = [
        [n, "How was it?", f"['{source}', 'Another text.']", claim, "?", 1.0 if right else 0.25, 0.9 - n / 10]
        for n, source, claim, right in ITEMS
    ]
    return _csv(header, rows)


def langfuse_traces():
    """Write traces of the public API, scores among them."""
    rows = []
    for n, source, claim, right in ITEMS:
        grounded = {"id": "x", "name": "grounded", "value": right, "dataType": "BOOLEAN", "source": "EVAL"}
        grounded |= {"comment": "ok", "stringValue": str(bool(right))}
        quality = {"id": "y", "name": "quality", "value": 0.3 * n, "dataType": "NUMERIC", "source": "API"}
        row = {"id": f"trace-{n}", "timestamp": "2026-11-01T00:00:00Z", "name": "rag", "sessionId": f"s{n // 2}"}
        row |= {"input": {"question": "How was it?", "context": source}, "output": claim}
        rows.append(row | {"scores": [grounded, quality], "observations": []})
    return json.dumps(rows)


def langfuse_scores():
    """Write the table of scores, exported as CSV."""
    header = ["id", "timestamp", "source", "name", "dataType", "value", "stringValue", "comment"]
    header += ["traceId", "observationId"]
    rows = [
        [f"{name}-{n}", "2026-11-01", source, name, "BOOLEAN", value, str(bool(value)), "", f"trace-{n}", ""]
        for n, right in enumerate(RIGHT)
        for name, source, value in (("grounded", "EVAL", right), ("human", "ANNOTATION", int(n != 1)))
    ]
    return _csv(header, rows)


def langsmith():
    """Write `evaluate(...).to_pandas().to_csv()`."""
    header = ["inputs.question", "inputs.context", "outputs.answer", "error", "reference.answer"]
    header += ["feedback.correct", "feedback.concise", "execution_time", "example_id", "id"]
    rows = [
        ["How was it?", source, claim, "", "?", right, 0.5 * (n % 3), 1.2, f"ex-{n}", f"run-{n}"]
        for n, source, claim, right in ITEMS
    ]
    return _csv(header, rows)


def openai_batch():
    """Write the output of the Batch API: replies in words, one refused by the server."""
    replies = ["Yes", "The claim is not supported.\n\nVERDICT: inconsistent", '{"verdict": "consistent"}', None]
    rows = []
    for n, message in enumerate(replies):
        row = {"id": f"batch_req_{n}", "custom_id": f"item-{n}", "response": None, "error": None}
        if message is None:
            row["error"] = {"code": "batch_expired", "message": "not in time"}
        else:
            said = {"index": 0, "message": {"role": "assistant", "content": message}, "finish_reason": "stop"}
            body = {"id": "c", "object": "chat.completion", "model": "gpt-4o-mini-2024-07-18", "choices": [said]}
            row["response"] = {"status_code": 200, "request_id": "r", "body": body}
        rows.append(row)
    return _lines(rows)


def prodigy():
    """Write `prodigy db-out`, of two people, one of whom skips an item."""
    rows = []
    for who in ("ann", "bob"):
        for n, source, claim, right in ITEMS:
            answer = "ignore" if (who, n) == ("bob", 3) else "accept" if right else "reject"
            row = {"text": claim, "meta": {"source": source}, "_input_hash": 100 + n, "_task_hash": 200 + n}
            row |= {"_is_binary": True, "_view_id": "classification", "answer": answer, "_timestamp": 1700000000}
            rows.append(row | {"_annotator_id": f"weather-{who}", "_session_id": f"weather-{who}"})
    return _lines(rows)


def doccano():
    """Write a project of text classification, the annotations of one person."""
    return _lines(
        {"id": 7 + n, "text": claim, "source": source, "label": ["yes" if right else "no"], "Comments": []}
        for n, source, claim, right in ITEMS
    )


def label_studio():
    """Write a project exported as JSON: two people, one annotation cancelled."""
    tasks = []
    for n, source, claim, right in ITEMS:
        chosen = {"from_name": "verdict", "to_name": "claim", "type": "choices"}
        chosen["value"] = {"choices": ["holds" if right else "does not hold"]}
        given = [
            {"id": 1, "completed_by": {"id": who, "email": f"p{who}@x.org"}, "result": [chosen]}
            | {"was_cancelled": (who, n) == (2, 3)}
            for who in (1, 2)
        ]
        task = {"id": 50 + n, "data": {"source": source, "claim": claim}, "annotations": given}
        tasks.append(task | {"predictions": [], "total_annotations": 2})
    return json.dumps(tasks)


def argilla():
    """Write `dataset.records.to_json(...)` of Argilla 2."""
    records = []
    for n, source, claim, right in ITEMS:
        said = [{"value": "yes" if right else "no", "user_id": who} for who in ("u1", "u2")]
        record = {"id": f"r{n}", "status": "completed", "_server_id": "0-1", "metadata": {}, "vectors": {}}
        record |= {"fields": {"source": source, "claim": claim}, "suggestions": {}, "responses": {"verdict": said}}
        records.append(record)
    return json.dumps(records)


def inspect_log():
    """Write a log of Inspect as JSON: two graders, one of them a person."""
    samples = []
    for n, source, claim, right in ITEMS:
        said = {"model": "m", "choices": [{"message": {"role": "assistant", "content": claim}}], "completion": claim}
        strict = {"value": "C" if n != 1 else "P", "explanation": "seen", "metadata": {}}
        sample = {"id": f"s{n}", "epoch": 1, "input": f"Summarise: {source}", "target": "", "output": said}
        sample |= {"metadata": {"source": source}, "scores": {"strict": strict, "human": {"value": "IC"[right]}}}
        samples.append(sample)
    about = {"task": "weather", "model": "m", "eval_id": "e"}
    return json.dumps({"version": 2, "status": "success", "eval": about, "samples": samples})


def mturk():
    """Write the results of a batch: a column for each choice; one assignment was rejected."""
    header = ["HITId", "HITTypeId", "Title", "AssignmentId", "WorkerId", "AssignmentStatus"]
    header += ["Input.source", "Input.claim", "Answer.verdict.yes", "Answer.verdict.no", "Approve", "Reject"]
    rows = [
        [
            *(f"H{n}", "T", "Check", f"A{n}{who}", who, "Rejected" if (n, who) == (3, "W2") else "Approved"),
            *(source, claim, str(bool(right)).lower(), str(not right).lower(), "x", ""),
        ]
        for n, source, claim, right in ITEMS
        for who in ("W1", "W2")
    ]
    return _csv(header, rows)


def table():
    """Write a CSV whose columns have names of its own."""
    rows = [[f"q{n}", source, claim, "pass" if r else "fail", r, 0.01 * n] for n, source, claim, r in ITEMS]
    return _csv(["id", "article", "summary", "judge_passed", "human_passed", "cost"], rows)


FILES = {
    "results.json": (promptfoo, "promptfoo", {"contains": [1, 0, 1, -1], "llm-rubric": [1, 0, 1, -1]}),
    ".latest_test_run.json": (deepeval, "DeepEval", {"Faithfulness": [1, 0, 1, 0], "Hallucination": [1, 1, -1, 0]}),
    "samples_rain_2026-11-01T00-00-00.1.jsonl": (
        lm_eval,
        "lm-evaluation-harness",
        {"exact_match, flexible": [1, 0, 1, 1], "exact_match, strict": [1, 0, 1, 0]},
    ),
    "ragas.csv": (ragas, "Ragas", {"answer_relevancy": [1, 1, 1, 1], "faithfulness": [1, 0, 1, 0]}),
    "traces.json": (langfuse_traces, "Langfuse traces", {"grounded": [1, 0, 1, 0], "quality": [0, 0, 1, 1]}),
    "scores.csv": (langfuse_scores, "Langfuse scores", {"grounded": [1, 0, 1, 0], "human": [1, 0, 1, 1]}),
    "experiment.csv": (langsmith, "LangSmith", {"concise": [0, 1, 1, 0], "correct": [1, 0, 1, 0]}),
    "batch_output.jsonl": (openai_batch, "Batch API", {"gpt-4o-mini-2024-07-18": [1, 0, 1, -1]}),
    "prodigy.jsonl": (prodigy, "Prodigy", {"weather-ann": [1, 0, 1, 0], "weather-bob": [1, 0, 1, -1]}),
    "admin.jsonl": (doccano, "doccano", {"admin": [1, 0, 1, 0]}),
    "project.json": (label_studio, "Label Studio", {"p1@x.org": [1, 0, 1, 0], "p2@x.org": [1, 0, 1, -1]}),
    "records.json": (argilla, "Argilla", {"u1": [1, 0, 1, 0], "u2": [1, 0, 1, 0]}),
    "log.json": (inspect_log, "Inspect", {"human": [1, 0, 1, 0], "strict": [1, -1, 1, 1]}),
    "Batch_1.csv": (mturk, "Mechanical Turk", {"W1": [1, 0, 1, 0], "W2": [1, 0, 1, -1]}),
    "mine.csv": (table, "a table", {"judge_passed": [1, 0, 1, 0]}),
}
"""By file name: who writes it, its kind, and the votes of each judge on the four items."""

OPTIONS = {"project.json": ["--yes", "holds", "--no", "does not hold"]}
"""What must be said besides: words have no meaning by themselves."""


def write(folder, name):
    """Write one of the files, and return its path."""
    path = folder / name
    path.write_text(FILES[name][0](), encoding="utf-8")
    return path
