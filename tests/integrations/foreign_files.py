"""Files as other tools write them, made by hand in their published layouts: a name, a content, and what it holds."""

import json

RAIN, SNOW = "It rained for 3 days in May.", "Snow fell on 2 nights."
TEXTS = [
    (RAIN, "It rained for 3 days."),
    (RAIN, "It rained for 9 days."),
    (SNOW, "Snow fell."),
    (SNOW, "No snow fell."),
]
RIGHT = [1, 0, 1, 0]


def _json(value):
    return json.dumps(value)


def _lines(rows):
    return "".join(f"{json.dumps(row)}\n" for row in rows)


def _csv(header, rows):
    import csv
    import io

    out = io.StringIO()
    csv.writer(out).writerows([header, *rows])
    return out.getvalue()


def promptfoo():
    """Write `promptfoo eval --output results.json`."""
    rows = [
        {
            "promptIdx": 0,
            "testIdx": n,
            "provider": {"id": "openai:gpt-4o-mini", "label": ""},
            "prompt": {"raw": f"Summarise {source}", "label": "Summarise {{context}}"},
            "vars": {"context": source},
            "response": {"output": claim, "tokenUsage": {"total": 9}},
            "success": bool(right),
            "score": right,
            "failureReason": 0,
            "latencyMs": 12,
            "gradingResult": {
                "pass": bool(right),
                "score": right,
                "reason": "All assertions passed",
                "componentResults": [
                    {
                        "pass": bool(right),
                        "score": 0.9 if right else 0.2,
                        "reason": "as the source",
                        "assertion": {"type": "llm-rubric", "value": "true to the source"},
                    },
                    {
                        "pass": n != 1,
                        "score": int(n != 1),
                        "reason": "",
                        "assertion": {"type": "contains", "value": "a"},
                    },
                ],
            },
        }
        for n, ((source, claim), right) in enumerate(zip(TEXTS, RIGHT, strict=True))
    ]
    rows[3] |= {"gradingResult": None, "failureReason": 2, "response": {"error": "timeout"}}
    return _json(
        {"evalId": "eval-1", "results": {"version": 3, "prompts": [], "stats": {}, "results": rows}, "config": {}}
    )


def deepeval():
    """Write `.deepeval/.latest_test_run.json`."""
    cases = [
        {
            "name": f"test_case_{n}",
            "input": "How was the weather?",
            "actualOutput": claim,
            "retrievalContext": [source, "Another text."],
            "success": bool(right),
            "metricsData": [
                {
                    "name": "Faithfulness",
                    "threshold": 0.7,
                    "success": bool(right),
                    "score": 0.75 if right else 0.5,
                    "reason": "because",
                    "strictMode": False,
                    "evaluationModel": "gpt-4o",
                },
                {"name": "Hallucination", "threshold": 0.5, "strictMode": False}
                | ({"error": "rate limit"} if n == 2 else {"success": n < 2, "score": 0.0 if n < 2 else 1.0}),
            ],
            "order": n,
        }
        for n, ((source, claim), right) in enumerate(zip(TEXTS, RIGHT, strict=True))
    ]
    return _json(
        {"testFile": "test_weather.py", "testCases": cases, "conversationalTestCases": [], "metricsScores": []}
    )


def lm_eval():
    """Write what `lm_eval --log_samples` leaves: samples_TASK_TIME.jsonl, here with two filters."""
    return _lines(
        {
            "doc_id": n,
            "doc": {"passage": source, "question": claim},
            "target": "yes" if right else "no",
            "arguments": {"gen_args_0": {"arg_0": f"{source} {claim}", "arg_1": {}}},
            "resps": [["yes"]],
            "filtered_resps": ["yes"],
            "filter": name,
            "metrics": ["exact_match"],
            "doc_hash": "0",
            "prompt_hash": "1",
            "target_hash": "2",
            "exact_match": float(right if name == "strict" else n != 1),
        }
        for name in ("strict", "flexible")
        for n, ((source, claim), right) in enumerate(zip(TEXTS, RIGHT, strict=True))
    )


def ragas():
    """Write `result.to_pandas().to_csv()`: the contexts are the text of a Python list."""
    header = ["", "user_input", "retrieved_contexts", "response", "reference", "faithfulness", "answer_relevancy"]
    rows = [
        [n, "How was it?", f"['{source}', 'Another text.']", claim, "?", 1.0 if right else 0.25, 0.9 - n / 10]
        for n, ((source, claim), right) in enumerate(zip(TEXTS, RIGHT, strict=True))
    ]
    return _csv(["row", *header[1:]], rows)


def langfuse_traces():
    """Write traces of the public API, scores among them."""
    return _json(
        [
            {
                "id": f"trace-{n}",
                "timestamp": "2026-11-01T00:00:00Z",
                "name": "rag",
                "sessionId": f"s{n // 2}",
                "input": {"question": "How was it?", "context": source},
                "output": claim,
                "scores": [
                    {
                        "id": "x",
                        "name": "grounded",
                        "value": right,
                        "dataType": "BOOLEAN",
                        "source": "EVAL",
                        "comment": "ok",
                    }
                    | {"stringValue": str(bool(right))},
                    {"id": "y", "name": "quality", "value": 0.3 * n, "dataType": "NUMERIC", "source": "API"},
                ],
                "observations": [],
            }
            for n, ((source, claim), right) in enumerate(zip(TEXTS, RIGHT, strict=True))
        ]
    )


def langfuse_scores():
    """Write the table of scores, exported as CSV."""
    header = [
        "id",
        "timestamp",
        "source",
        "name",
        "dataType",
        "value",
        "stringValue",
        "comment",
        "traceId",
        "observationId",
    ]
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
        for n, ((source, claim), right) in enumerate(zip(TEXTS, RIGHT, strict=True))
    ]
    return _csv(header, rows)


def openai_batch():
    """Write the output of the Batch API: replies in words, one refused by the server."""
    replies = ["Yes", "The claim is not supported.\n\nVERDICT: inconsistent", '{"verdict": "consistent"}', None]
    return _lines(
        {
            "id": f"batch_req_{n}",
            "custom_id": f"item-{n}",
            "response": None
            if message is None
            else {
                "status_code": 200,
                "request_id": "r",
                "body": {
                    "id": "c",
                    "object": "chat.completion",
                    "model": "gpt-4o-mini-2024-07-18",
                    "choices": [
                        {"index": 0, "message": {"role": "assistant", "content": message}, "finish_reason": "stop"}
                    ],
                },
            },
            "error": {"code": "batch_expired", "message": "not in time"} if message is None else None,
        }
        for n, message in enumerate(replies)
    )


def prodigy():
    """Write `prodigy db-out`, of two people, one of whom skips an item."""
    return _lines(
        {
            "text": claim,
            "meta": {"source": source},
            "_input_hash": 100 + n,
            "_task_hash": 200 + n,
            "_is_binary": True,
            "_view_id": "classification",
            "answer": "ignore" if (who, n) == ("bob", 3) else "accept" if right else "reject",
            "_timestamp": 1700000000,
            "_annotator_id": f"weather-{who}",
            "_session_id": f"weather-{who}",
        }
        for who in ("ann", "bob")
        for n, ((source, claim), right) in enumerate(zip(TEXTS, RIGHT, strict=True))
    )


def doccano():
    """Write a project of text classification, the annotations of one person."""
    return _lines(
        {"id": 7 + n, "text": claim, "source": source, "label": ["yes" if right else "no"], "Comments": []}
        for n, ((source, claim), right) in enumerate(zip(TEXTS, RIGHT, strict=True))
    )


def label_studio():
    """Write a project exported as JSON: two people, one annotation cancelled."""
    return _json(
        [
            {
                "id": 50 + n,
                "data": {"source": source, "claim": claim},
                "annotations": [
                    {
                        "id": 1,
                        "completed_by": {"id": who, "email": f"p{who}@x.org"},
                        "was_cancelled": (who, n) == (2, 3),
                        "result": [
                            {
                                "from_name": "verdict",
                                "to_name": "claim",
                                "type": "choices",
                                "value": {"choices": ["holds" if right else "does not hold"]},
                            }
                        ],
                    }
                    for who in (1, 2)
                ],
                "predictions": [],
                "total_annotations": 2,
            }
            for n, ((source, claim), right) in enumerate(zip(TEXTS, RIGHT, strict=True))
        ]
    )


def argilla():
    """Write `dataset.records.to_json(...)` of Argilla 2."""
    return _json(
        [
            {
                "id": f"r{n}",
                "status": "completed",
                "_server_id": "0-1",
                "fields": {"source": source, "claim": claim},
                "metadata": {},
                "vectors": {},
                "suggestions": {},
                "responses": {"verdict": [{"value": "yes" if right else "no", "user_id": who} for who in ("u1", "u2")]},
            }
            for n, ((source, claim), right) in enumerate(zip(TEXTS, RIGHT, strict=True))
        ]
    )


def inspect_log():
    """Write a log of Inspect as JSON: two graders, one of them a person."""
    samples = [
        {
            "id": f"s{n}",
            "epoch": 1,
            "input": f"Summarise: {source}",
            "target": "",
            "metadata": {"source": source},
            "output": {
                "model": "m",
                "choices": [{"message": {"role": "assistant", "content": claim}}],
                "completion": claim,
            },
            "scores": {
                "strict": {"value": "C" if n != 1 else "P", "explanation": "seen", "metadata": {}},
                "human": {"value": "C" if right else "I"},
            },
        }
        for n, ((source, claim), right) in enumerate(zip(TEXTS, RIGHT, strict=True))
    ]
    return _json(
        {
            "version": 2,
            "status": "success",
            "eval": {"task": "weather", "model": "m", "eval_id": "e"},
            "samples": samples,
        }
    )


def mturk():
    """Write the results of a batch: a column for each choice; one assignment was rejected."""
    header = [
        "HITId",
        "HITTypeId",
        "Title",
        "AssignmentId",
        "WorkerId",
        "AssignmentStatus",
        "Input.source",
        "Input.claim",
    ]
    header += ["Answer.verdict.yes", "Answer.verdict.no", "Approve", "Reject"]
    rows = [
        [
            *(f"H{n}", "T", "Check", f"A{n}{who}", who, "Rejected" if (n, who) == (3, "W2") else "Approved"),
            *(source, claim, str(bool(right)).lower(), str(not right).lower(), "x", ""),
        ]
        for n, ((source, claim), right) in enumerate(zip(TEXTS, RIGHT, strict=True))
        for who in ("W1", "W2")
    ]
    return _csv(header, rows)


def table():
    """Write a CSV whose columns have names of its own."""
    rows = [
        [f"q{n}", source, claim, "pass" if right else "fail", right, 0.01 * n]
        for n, ((source, claim), right) in enumerate(zip(TEXTS, RIGHT, strict=True))
    ]
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
