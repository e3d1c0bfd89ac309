"""While the page is open, readings arrive and newer models take their place: it keeps up with both."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest
from page_server import FakeModel, PageServer, browsing, opened, serve_page, slide
from patient import expect
from playwright.sync_api import Browser, Page

from candor.data.panel import Panel, Sensor
from candor.data.times import TimeAxis

LENGTH, HISTORY = 200, 28


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browsing() as found:
        yield found


@dataclass(frozen=True, eq=False)
class ChangingModel(FakeModel):
    """A model that says which version of it answers, and when its readings were last changed."""

    version: str = "first"
    changed: str = "2026-01-01T00:00:00+00:00"

    def describe(self) -> dict[str, Any]:
        """Returns the entry of /v1/models."""
        return super().describe() | {"version": self.version, "readings_changed": self.changed}


def readings(length: int) -> Panel:
    axis = TimeAxis(datetime(2024, 1, 1, tzinfo=UTC), timedelta(days=1), length, "UTC")
    values = np.cumsum(np.random.default_rng(1).standard_normal((length, 2)), axis=0)
    return Panel(values.astype(np.float32), axis, (Sensor("a", "Upper", unit="m"), Sensor("b", "Lower", unit="m")))


def shown_changes(page: Page) -> list[float]:
    expect(page.locator("#workspace")).to_have_attribute("aria-busy", "false")
    return [float(text.split()[0].replace("−", "-")) for text in page.locator("#sensors .value").all_inner_texts()]


def changes(model: FakeModel, row: int) -> list[float]:
    return [sensor["change"] for sensor in model.overview(model.times(row, row + 1)[0])["sensors"]]


def day(model: FakeModel, row: int) -> str:
    """Returns the day of a row as the page writes it."""
    return f"{model.panel.times.slice(row, row + 1).local[0]:%-d\u00a0%b %Y}"


def go_to(page: Page, model: FakeModel, row: int) -> None:
    """Moves the slider to a row, and waits until the page has begun to ask for it."""
    slider = page.locator("#slider")
    slide(slider, row - HISTORY)
    expect(page).to_have_url(re.compile(re.escape(quote(model.times(row, row + 1)[0]))))
    expect(page.locator("#moment")).to_have_text(day(model, row))


def test_every_step_that_arrived_gets_a_place_on_the_slider(browser: Browser) -> None:
    model = ChangingModel("river", readings(LENGTH))
    server = PageServer([model])
    with serve_page(server), opened(browser, server.address, has_charts=False) as page:
        slider = page.locator("#slider")
        expect(slider).to_have_attribute("max", str(LENGTH - HISTORY))
        server.models = [replace(model, panel=readings(LENGTH + 2))]
        page.get_by_role("button", name="Latest").click()  # which is where the slider stands already
        expect(page.locator("#moment")).to_have_text(f"{day(model, LENGTH + 2)} (latest)")
        server.models = [replace(model, panel=readings(LENGTH + 5))]
        page.get_by_role("button", name="Earlier").click()
        expect(slider).to_have_attribute("max", str(LENGTH + 5 - HISTORY))
        expect(page.locator("#moment")).to_have_text(day(model, LENGTH + 1))
        page.get_by_role("button", name="Latest").click()
        expect(page.locator("#moment")).to_have_text(f"{day(model, LENGTH + 5)} (latest)")
        for step in range(1, 6):
            page.get_by_role("button", name="Earlier").click()
            expect(slider).to_have_js_property("value", str(LENGTH + 5 - HISTORY - step))
        go_to(page, model, 100)
        server.models = [replace(model, panel=readings(LENGTH - 3))]  # some were withdrawn
        go_to(page, model, 99)
        expect(slider).to_have_attribute("max", str(LENGTH - 3 - HISTORY))


@pytest.mark.parametrize("field", ["changed", "version"])
def test_answers_about_the_past_are_not_remembered_beyond_what_they_rest_on(browser: Browser, field: str) -> None:
    model = ChangingModel("river", readings(LENGTH))
    server = PageServer([model])
    with serve_page(server), opened(browser, server.address, has_charts=False) as page:
        expect(page.locator("#sensors .value").last).not_to_be_empty()
        page.locator("[data-sensor=a]").first.click()
        for row in (100, 120, 100):
            go_to(page, model, row)
            assert shown_changes(page) == pytest.approx(changes(model, row), rel=1e-2)
        asked = [address for address in server.requests if "/v1/overview" in address and "time=" in address]
        assert len(asked) == 2  # the second look at the same moment came from memory
        upside_down = replace(model.panel, values=-model.panel.values)
        other = replace(model, panel=upside_down, **{field: "2026-02-02T00:00:00+00:00"})
        server.models = [other]
        go_to(page, other, 120)
        assert shown_changes(page) == pytest.approx(changes(other, 120), rel=1e-2)
        expect(page.locator("#sensor-title")).to_have_text("Upper")
        if field == "version":
            expect(page.locator("#foot")).to_contain_text("2026-02-02")
