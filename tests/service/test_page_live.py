"""The page and the real service understand one another."""

import math
import re
from collections.abc import Iterator
from typing import Any

import pytest
from page_server import STATIC, browsing, opened
from patient import expect
from playwright.sync_api import Browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browsing() as found:
        yield found


def as_number(cell: str) -> float:
    return math.nan if cell == "–" else float(cell.replace("−", "-"))


def test_every_file_that_the_page_names_is_served(live: Any) -> None:
    texts = {
        path.name: path.read_text(encoding="utf-8") for path in STATIC.iterdir() if path.suffix in (".html", ".js")
    }
    named = {name for text in texts.values() for name in re.findall(r'"(?:/static/|\./)([\w.]+)"', text)}
    assert {"main.js", "api.js", "base.css", "icon.svg", "plotly.min.js"} <= named
    for name in named:
        answer = live.client.get(f"/static/{name}")
        kinds = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
        kind = answer.headers["content-type"].split(";")[0]
        assert (answer.status_code, kind) == (200, kinds[name.split(".")[-1]])


def test_a_trained_model_is_shown_with_its_reasons_and_its_past(live: Any, browser: Browser) -> None:
    model = live.get("/v1/models")["models"][0]
    network = live.get("/v1/sensors", model=model["name"])
    sensor = network["sensors"][1]["id"]
    with opened(browser, live.url) as page:
        expect(page.locator("#model option")).to_have_count(2)
        expect(page.locator("#map .sensors circle:not(.unknown)").first).to_be_visible()
        expect(page.locator("#sensors button")).to_have_count(len(network["sensors"]))
        page.locator(f'[data-sensor="{sensor}"]').first.click()
        for name in ("forecast", "components", "fusion"):
            expect(page.locator(f".chart.{name} .main-svg").first).to_be_visible()
        page.locator("#slider").focus()
        page.keyboard.press("PageDown")  # by a horizon
        expect(page.locator(".verdict")).to_contain_text("missed what happened")
        page.locator("summary", has_text="The forecast in numbers").click()
        rows = page.get_by_role("group", name="The forecast in numbers").locator("tbody tr").all()
        shown = [[as_number(cell) for cell in row.locator("td").all_inner_texts()] for row in rows]
        time = re.search(r"time=([^&]+)", page.url)
    assert time is not None and any(row[3] == row[3] for row in shown)  # something happened
    found = live.client.get(f"/v1/forecast/at?model={model['name']}&time={time[1]}").json()["sensors"][sensor]
    expected = zip(*(found[name] for name in ("forecast", "lower", "upper", "observed")), strict=True)
    for row, wanted in zip(shown, expected, strict=True):
        plain = [math.nan if value is None else value for value in wanted]
        assert row == pytest.approx(plain, rel=5e-3, nan_ok=True)
