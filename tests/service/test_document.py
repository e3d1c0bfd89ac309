"""The service keeps what its OpenAPI document promises, also to clients that send nonsense."""

from dataclasses import fields
from pathlib import Path

import pytest
import schemathesis
from hypothesis import given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis.specs.openapi.checks import positive_data_acceptance

from candor.forecasting.explanation import Gates
from candor.runs.bundle import demo_bundle
from candor.service import schemas
from candor.service.answers import describe_model, describe_network
from candor.service.metrics import PATHS, Metrics
from candor.service.models import open_models
from candor.service.schemas import EXAMPLES
from candor.service.settings import ServiceSettings


@pytest.fixture(scope="module")
def document(attacked) -> schemathesis.BaseSchema:
    return schemathesis.openapi.from_url(f"{attacked.url}/v1/openapi.json")


def attack(document: schemathesis.BaseSchema, most: int) -> None:
    """Sends good and bad requests to every address; raises if one breaks the service, or a promise of the document."""
    for found in document.get_all_operations():
        operation = found.ok()
        for mode in schemathesis.GenerationMode:

            @settings(max_examples=most)
            @given(case=operation.as_strategy(generation_mode=mode))
            def send(case: schemathesis.Case) -> None:
                # A good shape is not all: a time may lie outside the record, and a sensor may be unknown.
                case.call_and_validate(excluded_checks=[positive_data_acceptance])

            try:
                send()
            except Unsatisfiable:  # there is nothing that could be wrong with a request without any part
                assert mode is schemathesis.GenerationMode.NEGATIVE and operation.method == "get"


def test_no_request_leads_out_of_the_document(document: schemathesis.BaseSchema) -> None:
    attack(document, most=5)


@pytest.mark.slow
def test_no_request_of_many_leads_out_of_the_document(document: schemathesis.BaseSchema) -> None:
    attack(document, most=300)


def test_every_address_is_described_and_counted(live) -> None:
    described = live.get("/v1/openapi.json")["paths"]
    assert set(described) | {"/", "/v1/openapi.json"} == set(PATHS)
    for path, methods in described.items():
        for method, operation in methods.items():
            assert operation["summary"] and operation["responses"]["200"], (method, path)
            for status, answer in operation["responses"].items():
                if int(status) >= 400:
                    assert answer["content"]["application/json"]["schema"]["$ref"].endswith("/ErrorResponse")


def test_every_body_and_answer_comes_with_an_example_that_is_one(live) -> None:
    document = live.get("/v1/openapi.json")
    parts, seen = document["components"]["schemas"], set()
    for path, methods in document["paths"].items():
        for operation in methods.values():
            bodies = [operation["requestBody"]] if "requestBody" in operation else []
            for content in (*bodies, *operation["responses"].values()):
                if path == "/metrics" and "application/json" not in content.get("content", {}):
                    continue  # counters are plain text
                name = content["content"]["application/json"]["schema"]["$ref"].split("/")[-1]
                kind = getattr(schemas, name)
                (example,) = parts[name]["examples"]
                assert kind.model_validate(example).model_dump(by_alias=True, exclude_unset=True) == example
                seen.add(name)
    assert {"ForecastRequest", "ReadingsRequest", "ExplainRequest", "ErrorResponse", "ExplanationResponse"} <= seen
    assert len(seen) == 3 + 11


def test_the_examples_are_of_the_model_that_comes_with_candor(tmp_path: Path) -> None:
    limits = ServiceSettings()
    models = open_models([demo_bundle()], limits, Metrics(), lambda _: tmp_path / "store.sqlite")
    (served,) = models.served.values()
    described, drawn = describe_model(served, limits), describe_network(served)
    models.close()
    (example,) = EXAMPLES["ModelList"]["models"]
    # The examples are of some days later, when readings had been sent.
    later = {"made", "version", "readings_changed", "last_reading", "last_origin"}
    assert {name for name in described if described[name] != example[name]} <= later
    assert described.keys() == example.keys()
    for part in ("sensors", "edges"):
        assert all(one in drawn[part] for one in EXAMPLES["SensorList"][part])
    assert list(EXAMPLES["ExplanationResponse"]["gates"]) == [field.name for field in fields(Gates)]


def test_parts_of_bodies_come_with_examples(live) -> None:
    parts = live.get("/v1/openapi.json")["components"]["schemas"]
    assert parts["ForecastRequest"]["properties"]["readings"]["examples"]
    for part in ("time", "sensor"):
        assert parts["SentReading"]["properties"][part]["examples"]
    assert parts["ExplainRequest"]["properties"]["sensor"]["examples"]
    for name in ("ForecastRequest", "ReadingsRequest", "ExplainRequest", "SentReading"):
        assert parts[name]["additionalProperties"] is False
