"""The service that the tests of the page talk to answers as the real one does."""

import shutil
from pathlib import Path
from typing import Any

import httpx
import pytest
from made_runs import PROTOCOL, river
from page_server import FakeModel, PageServer, browsing, serve_page

from candor.data.panel import Panel
from candor.service import schemas

KINDS = {
    "/v1/models": schemas.ModelList,
    "/v1/sensors": schemas.SensorList,
    "/v1/overview": schemas.OverviewResponse,
    "/v1/forecast/at": schemas.PastForecast,
    "/v1/forecast/latest": schemas.ForecastResponse,
    "/v1/history": schemas.History,
    "/v1/explain": schemas.ExplanationResponse,
}
REFUSED: dict[str, tuple[str, str, dict[str, Any]]] = {
    "a model that is not there": ("GET", "/v1/overview", {"params": {"model": "danube"}}),
    "a sensor that is not there": ("GET", "/v1/history", {"params": {"sensor": "g9", "steps": "4"}}),
    "a time before the record": ("GET", "/v1/overview", {"params": {"time": "1999-01-01T00:00:00+01:00"}}),
    "reasons of a model without": ("POST", "/v1/explain", {"json": {"sensor": "g0"}}),
    "an address that is not there": ("GET", "/v1/nothing", {}),
}
TOKEN = "8f2c-is-secret"


def test_without_chromium_tests_are_skipped_with_a_reason_and_the_checks_of_a_clone_install_it(monkeypatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(pytest.skip.Exception, match="chromium is not installed"), browsing():
        pass
    assert "apt-get install -qq -y chromium" in (Path(__file__).parents[2] / ".ci" / "run").read_text(encoding="utf-8")


@pytest.mark.parametrize("has_intervals", [True, False])
def test_every_answer_has_the_fields_of_the_real_one(panel: Panel, has_intervals: bool) -> None:
    model = FakeModel("river", panel, has_intervals=has_intervals)
    server, query = PageServer([model]), {"sensor": "g0", "steps": "40"}
    for path, kind in KINDS.items():
        found = server.answer(path, query, {"sensor": "g0"})
        assert kind.model_validate(found).model_dump(by_alias=True, exclude_unset=True) == found, path


def test_a_model_without_a_record_is_described_as_the_real_one(panel: Panel) -> None:
    found = PageServer([FakeModel("empty", panel.slice(0, 0))]).answer("/v1/models", {}, {})
    schemas.ModelList.model_validate(found)
    assert found["models"][0]["last_reading"] is None


def test_what_the_real_service_refuses_is_refused_alike(start, linear_run: Path) -> None:
    real = start(linear_run, token=TOKEN)
    sizes = {"history": PROTOCOL.history, "horizon": PROTOCOL.horizon}
    fake = PageServer([FakeModel("plain", river(), explains=False, **sizes)], token=TOKEN)
    known = {"authorization": f"Bearer {TOKEN}"}
    with serve_page(fake), httpx.Client(base_url=fake.address, timeout=120, trust_env=False) as client:
        asked = [("without a token", real.client.get("/v1/models"), client.get("/v1/models"))]
        for words, (method, path, rest) in REFUSED.items():
            both = (one.request(method, path, headers=known, **rest) for one in (real.client, client))
            asked.append((words, *both))
    for words, expected, found in asked:
        error = schemas.ErrorResponse.model_validate(found.json()).error
        assert (found.status_code, error.code) == (expected.status_code, expected.json()["error"]["code"]), words
        assert found.status_code >= 400, words
