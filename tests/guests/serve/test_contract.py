"""The contract that `deep serve` publishes: it is valid, and what the server answers is what it says."""

import pytest

import deep
from deep.integrations.serve import CheckOptions, create_app, serving
from tests.guests.serve.serving_case import PAIR, ask

jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed; it comes with deep-judges[mcp]")

WORDS = {"additionalProperties", "anyOf", "enum", "items", "maxLength", "maximum", "minimum", "properties", "required"}
WORDS |= {"description", "type"}
"""The keywords that the contract uses: of others JSON Schema would say nothing."""


def faults(schema, value):
    """Return where a value is not what a JSON Schema says."""
    return [error.message for error in jsonschema.Draft202012Validator(schema).iter_errors(value)]


def schemas(value):
    """Yield every schema of a description, with those within it."""
    for name, one in value.items() if isinstance(value, dict) else enumerate(value if isinstance(value, list) else ()):
        yield from within(one) if name == "schema" else schemas(one)


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
    """By JSON Schema itself; its keywords are known, and every route is named."""
    routes = served[1]["paths"]
    assert set(routes) >= {"/v1/check", "/v1/model", "/healthz", "/readyz", "/metrics"}
    result = [schema for path in ("/v1/check", "/v1/model") for schema in schemas(routes[path])]
    assert len(result) > 50
    for schema in result:
        jsonschema.Draft202012Validator.check_schema(schema)
        assert schema.keys() <= WORDS


def test_examples_are_what_the_contract_says(served):
    """Those of the request and of the answer."""
    post = served[1]["paths"]["/v1/check"]["post"]
    for content in (post["requestBody"]["content"], post["responses"]["200"]["content"]):
        shown = content["application/json"]
        assert len(shown["examples"]) == 2
        for example in shown["examples"].values():
            assert faults(shown["schema"], example["value"]) == []


def test_answers_are_what_the_contract_says(served):
    """With votes, without, from memory, one and several; refusals too, in one shape."""
    address, contract = served
    several = [PAIR, {"source": "It rained.", "claim": "x", "id": "b"}]
    for body in (PAIR, PAIR, {**PAIR, "id": "a"}, several, {"source": "It rained.", "claim": "It rained. " * 5000}):
        status, result, _ = ask(address, body=body)
        assert status == 200
        assert faults(schema_of(contract, "/v1/check", "post", 200), result) == []
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
        assert faults(schema_of(contract, "/v1/check", "post", status), result[1]) == []
