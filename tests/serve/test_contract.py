"""The contract that `deep serve` publishes: it is valid, and what the server answers is what it says."""

import pytest

import deep
from deep.integrations.serve import CheckOptions, create_app, serving
from tests.serve.serving_case import PAIR, ask

KINDS = {"array": list, "boolean": bool, "integer": int, "null": type(None), "number": (int, float)}
KINDS |= {"object": dict, "string": str}
"""The types of JSON Schema."""

WORDS = {"additionalProperties", "anyOf", "enum", "items", "maxLength", "maximum", "minimum", "properties", "required"}
WORDS |= {"description"}
"""The other keywords that the contract uses."""


def faults(schema, value, at="answer"):
    """Yield where a value is not what a JSON Schema says."""
    if "type" in schema:
        fits = isinstance(value, KINDS[schema["type"]]) and (schema["type"] == "boolean" or not isinstance(value, bool))
        if not fits:
            yield f"{at}: {value!r} is no {schema['type']}"
            return
    if "anyOf" in schema and all(list(faults(one, value, at)) for one in schema["anyOf"]):
        yield f"{at}: {value!r} is none of {schema['anyOf']}"
    if "enum" in schema and value not in schema["enum"]:
        yield f"{at}: {value!r} is not among {schema['enum']}"
    if isinstance(value, (int, float)) and not schema.get("minimum", value) <= value <= schema.get("maximum", value):
        yield f"{at}: {value!r} is out of range"
    if isinstance(value, str) and len(value) > schema.get("maxLength", len(value)):
        yield f"{at}: too long"
    yield from faults_within(schema, value, at)


def faults_within(schema, value, at):
    """Yield where what a list or an object holds is not what a JSON Schema says."""
    if isinstance(value, list):
        for number, one in enumerate(value):
            yield from faults(schema.get("items", {}), one, f"{at}[{number}]")
    if isinstance(value, dict):
        known = schema.get("properties", {})
        yield from (f"{at}: no {name}" for name in schema.get("required", ()) if name not in value)
        if schema.get("additionalProperties") is False:
            yield from (f"{at}: {name} besides" for name in value.keys() - known.keys())
        for name in value.keys() & known.keys():
            yield from faults(known[name], value[name], f"{at}.{name}")


def schemas(value):
    """Yield every schema of a description, with those within it."""
    if isinstance(value, dict):
        for name, one in value.items():
            if name == "schema":
                yield from within(one)
            else:
                yield from schemas(one)
    elif isinstance(value, list):
        for one in value:
            yield from schemas(one)


def within(schema):
    """Yield a schema and those that it is made of."""
    yield schema
    parts = [*schema.get("anyOf", ()), *schema.get("properties", {}).values()]
    for one in [*parts, schema["items"]] if "items" in schema else parts:
        yield from within(one)


@pytest.fixture(scope="module")
def served(lexical_file):
    """Return the address of a server, and its contract for pairs."""
    with serving(create_app(deep.load(lexical_file), CheckOptions(most_pairs=3))) as address:
        yield address, ask(address, "/openapi.json")[1]


def schema_of(contract, path, method, status):
    """Return the schema of an answer."""
    return contract["paths"][path][method]["responses"][str(status)]["content"]["application/json"]["schema"]


def test_every_schema_is_one(served):
    """Its types are those of JSON Schema, its keywords are known, and every route is named."""
    routes = served[1]["paths"]
    assert set(routes) >= {"/v1/check", "/v1/model", "/healthz", "/readyz", "/metrics"}
    result = [schema for path in ("/v1/check", "/v1/model") for schema in schemas(routes[path])]
    assert len(result) > 50
    for schema in result:
        assert schema.get("type", "null") in KINDS
        assert schema.keys() <= WORDS | {"type"}


def test_examples_are_what_the_contract_says(served):
    """Those of the request and of the answer."""
    post = served[1]["paths"]["/v1/check"]["post"]
    for content in (post["requestBody"]["content"], post["responses"]["200"]["content"]):
        shown = content["application/json"]
        assert len(shown["examples"]) == 2
        for example in shown["examples"].values():
            assert not list(faults(shown["schema"], example["value"]))


def test_answers_are_what_the_contract_says(served):
    """With votes, without, from memory, one and several; refusals too, in one shape."""
    address, contract = served
    several = [PAIR, {"source": "It rained.", "claim": "x", "id": "b"}]
    for body in (PAIR, PAIR, {**PAIR, "id": "a"}, several, {"source": "It rained.", "claim": "It rained. " * 5000}):
        status, result, _ = ask(address, body=body)
        assert status == 200
        assert not list(faults(schema_of(contract, "/v1/check", "post", 200), result))
    for body, headers, status in (
        (b"{", {}, 400),
        ([PAIR] * 4, {}, 422),
        ({"source": "a"}, {}, 422),
        (PAIR, {"Content_Type": "text/plain"}, 415),
        (PAIR, {"Origin": "http://evil.example"}, 403),
        (PAIR, {"Host": "evil.example"}, 421),
    ):
        result = ask(address, body=body, **headers)
        assert result[0] == status
        assert not list(faults(schema_of(contract, "/v1/check", "post", status), result[1]))
