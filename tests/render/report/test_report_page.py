"""A report opens in a browser without a complaint: on every screen, by night, on paper, and for the chosen sensor."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from page_server import browsing, opened
from patient import expect
from playwright.sync_api import Browser, Page
from read_report import EVIL, Reader

from candor.explain.overview import Overview

OVERHANG = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
BEYOND = "all => all.filter(one => one.getBoundingClientRect().right > innerWidth).length"
HIDDEN = "all => all.filter(one => one.scrollWidth > one.clientWidth).length"
TRACE = "([chart, name]) => document.getElementById(`chart-${chart}`).data.find(trace => trace.name === name)"
FOLDED = "details:not([open])"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browsing() as found:
        yield found


@pytest.fixture(scope="module")
def shared(browser: Browser, page: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """The report in a browser that must not complain; opening it for each test would take most of the time."""
    path: Path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(page, encoding="utf-8")
    with opened(browser, path.as_uri(), color_scheme="light", reduced_motion="reduce") as found:
        yield found


@pytest.fixture
def report(shared: Page, overview: Overview) -> Iterator[Page]:
    """The report as it is after loading."""
    yield shared
    shared.emulate_media(media="screen", color_scheme="light")
    shared.set_viewport_size({"width": 1440, "height": 900})
    shared.locator(".sensor-choice").first.select_option(str(overview.shown))


def trace(report: Page, chart: str, name: str) -> dict[str, Any]:
    """Returns the trace of a chart as plotly draws it."""
    found: dict[str, Any] = report.evaluate(TRACE, [chart, name])
    return found


def forecast_line(report: Page) -> str | None:
    """Returns the last line but the readings' in the chart of the forecast, as a path on the screen."""
    return report.locator("#chart-forecast .scatterlayer .js-line").nth(-2).get_attribute("d")


def test_every_chart_is_drawn_and_names_stay_names(report: Page, page: str) -> None:
    charts = Reader(page).data()["charts"]
    expect(report.locator(".chart")).to_have_count(len(charts))
    for name in charts:
        expect(report.locator(f"#chart-{name} .main-svg").first).to_be_visible()
    expect(report.locator("#chart-forecast .ytitle")).to_have_text(EVIL)  # the unit, letter by letter


def test_a_phone_shows_all_of_it_without_scrolling_sideways(report: Page) -> None:
    report.set_viewport_size({"width": 390, "height": 844})
    expect(report.locator("#chart-forecast .main-svg").first).to_have_css("width", "358px")
    report.wait_for_function(f"({OVERHANG}) === 0")  # charts follow the screen one after the other
    assert report.locator(".main-svg").evaluate_all(BEYOND) == 0
    assert report.locator("#configuration > .wide").evaluate_all(HIDDEN) == 0  # a checksum is broken into lines


def test_another_sensor_shows_its_own_forecast_everywhere(report: Page, overview: Overview) -> None:
    other = 1 if overview.shown != 1 else 0
    ahead, before = overview.outlook.ahead.forecast, forecast_line(report)
    np.testing.assert_allclose(trace(report, "forecast", "next forecast")["y"], ahead[:, overview.shown], rtol=1e-6)
    report.locator(".sensor-choice").first.select_option(str(other))
    np.testing.assert_allclose(trace(report, "forecast", "next forecast")["y"], ahead[:, other], rtol=1e-6)
    assert before is not None and forecast_line(report) != before
    choices = report.locator(".sensor-choice")
    assert choices.count() == 3
    assert choices.evaluate_all("all => all.map(one => one.value)") == [str(other)] * 3
    chosen = report.locator(".chosen-name").all_text_contents()
    assert chosen == [f"{other + 1} · {EVIL} ({EVIL}{other})"] * 3


def test_by_night_lines_and_veils_are_lighter(report: Page) -> None:
    names = ("readings", "next forecast", "at most")
    by_day = [trace(report, "forecast", name) for name in names]
    report.emulate_media(color_scheme="dark")
    expect(report.locator("body")).to_have_css("background-color", "rgb(20, 24, 29)")
    report.wait_for_function(f"({TRACE})(['forecast', 'readings']).line.color === '#e6e9ec'")  # charts follow the page
    readings, ahead, _ = (trace(report, "forecast", name) for name in names)
    assert [one["line"]["color"] for one in by_day[:2]] == ["#1f2328", "#0072b2"]
    assert (readings["line"]["color"], ahead["line"]["color"]) == ("#e6e9ec", "#56b4e9")
    fills = report.evaluate("document.getElementById('chart-forecast').data.map(one => one.fillcolor).filter(Boolean)")
    assert fills == ["rgba(230,159,0,0.2)", "rgba(86,180,233,0.2)"]


def test_on_paper_everything_is_unfolded_and_on_the_screen_as_before(report: Page) -> None:
    folded = report.locator(FOLDED).count()
    assert folded > 0
    count = f"document.querySelectorAll('{FOLDED}').length"
    report.evaluate(f"window.addEventListener('beforeprint', () => {{ window.foldedOnPaper = {count}; }})")
    printed = report.pdf(format="A4")
    assert printed.startswith(b"%PDF") and printed.count(b"/Type /Page\n") > 1
    assert report.evaluate("window.foldedOnPaper") == 0
    expect(report.locator(FOLDED)).to_have_count(folded)


def test_on_paper_lines_run_under_all_columns_and_what_was_folded_keeps_its_title(report: Page) -> None:
    report.emulate_media(media="print")
    first = report.locator("td:first-child").evaluate_all("all => all.map(one => getComputedStyle(one).position)")
    assert set(first) == {"static"}  # one that sticks covers the lines between rows
    titles = report.locator("summary")
    assert titles.count() > 3
    for title in titles.all():
        expect(title).to_be_visible()
