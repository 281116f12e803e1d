"""The contract of the routes as OpenAPI says it, with examples."""

from typing import Any

JsonSchema = dict[str, Any]

TEXT: JsonSchema = {"type": "string"}
NUMBER: JsonSchema = {"type": "number"}
SHARE: JsonSchema = {"type": "number", "minimum": 0, "maximum": 1}


def _or_null(schema: JsonSchema) -> JsonSchema:
    return {"anyOf": [schema, {"type": "null"}]}


def _object(required: JsonSchema, optional: JsonSchema | None = None) -> JsonSchema:
    return {"type": "object", "properties": {**required, **(optional or {})}, "required": list(required)}


PAIR = {
    **_object({"source": TEXT, "claim": TEXT}, {"id": {"type": "string", "maxLength": 200}}),
    "additionalProperties": False,
}
PLACE = _object(
    {
        "text": TEXT,
        "where": _or_null({"enum": ["source", "claim"]}),
        "start": _or_null({"type": "integer"}),
        "end": _or_null({"type": "integer"}),
        "verdict": _or_null(TEXT),
        "about": _or_null(TEXT),
    }
)
REASONS = ["abstained", "failed", "refused", "truncated", "unparsable"]
JUDGMENT = _object(
    {
        "judge": TEXT,
        "vote": _or_null({"enum": [0, 1]}),
        "reason": _or_null({"enum": REASONS}),
        "score": _or_null(NUMBER),
        "rationale": _or_null(TEXT),
        "evidence": {"type": "array", "items": PLACE},
        "model": _or_null(TEXT),
        "cost": _or_null(NUMBER),
        "seconds": _or_null(NUMBER),
        "samples": {"type": "array", "items": {"enum": [-1, 0, 1]}},
    }
)
RESULT = _object(
    {
        "id": _or_null(TEXT),
        "p_consistent": SHARE,
        "p_low": _or_null(SHARE),
        "p_high": _or_null(SHARE),
        "p_uniform": SHARE,
        "p_uncalibrated": SHARE,
        "n_votes": {"type": "integer"},
        "decision": {"enum": [0, 1]},
        "judges": {"type": "array", "items": JUDGMENT},
        "cost": _or_null(NUMBER),
    }
)
RESULTS = _object({"results": {"type": "array", "items": RESULT}})
ERROR = _object({"error": _object({"code": TEXT, "message": TEXT})})

ASKED = {"source": "Rain fell on Monday. The river rose by 14 cm.", "claim": "The river rose by 41 cm.", "id": "a1"}
ANSWERED = {
    "id": "a1",
    "p_consistent": 0.21,
    "p_low": 0.08,
    "p_high": 0.44,
    "p_uniform": 0.19,
    "p_uncalibrated": 0.19,
    "n_votes": 1,
    "decision": 0,
    "judges": [
        {
            "judge": "lexical-numbers@8f14e45f",
            "vote": 0,
            "reason": None,
            "score": 0.0,
            "rationale": "The source lacks numbers of the claim: 41.",
            "evidence": [{"text": "41", "where": "claim", "start": 18, "end": 20, "verdict": None, "about": None}],
            "model": None,
            "cost": 0.0,
            "seconds": None,
            "samples": [],
        }
    ],
    "cost": 0.0,
}


def _json(schema: JsonSchema, **examples: object) -> JsonSchema:
    shown = {name: {"value": value} for name, value in examples.items()}
    return {"application/json": {"schema": schema, **({"examples": shown} if shown else {})}}


def _refusals(**said: str) -> dict[int | str, JsonSchema]:
    return {int(code[1:]): {"description": text, "content": _json(ERROR)} for code, text in said.items()}


EVERYWHERE = _refusals(
    _401="no token", _403="asked by a page of another site", _421="another Host", _429="too often", _503="too busy"
)

CHECK: JsonSchema = {
    "summary": "P(consistent) of one pair, or of a list of them",
    "openapi_extra": {
        "requestBody": {
            "required": True,
            "content": _json({"anyOf": [PAIR, {"type": "array", "items": PAIR}]}, one=ASKED, several=[ASKED]),
        }
    },
    "responses": {
        200: {
            "description": "one result, or a list of them in `results`",
            "content": _json({"anyOf": [RESULT, RESULTS]}, one=ANSWERED, several={"results": [ANSWERED]}),
        },
        **_refusals(_400="no JSON", _402="the budget is reached; `results` holds what there is", _408="too slow"),
        **_refusals(_413="too large", _415="no application/json", _422="no pair"),
        **EVERYWHERE,
    },
}
MODEL: JsonSchema = {
    "summary": "The judges, how the model was fitted and on what, its prior and its threshold",
    "responses": {200: {"description": "the model", "content": _json({"type": "object"})}, **EVERYWHERE},
}
HEALTH: JsonSchema = {"summary": "Whether the server is up; needs no token"}
