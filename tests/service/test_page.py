"""The page shows what the service answers: checked by reading it as people do, with eyes, keys and a screen reader."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Literal
from urllib.parse import quote

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe
from page_server import FakeModel, PageServer, browsing, opened, serve_page, slide
from patient import expect
from playwright.sync_api import Browser, Page

import candor
from candor.core.text import format_time
from candor.data.panel import Panel, Sensor
from candor.data.times import TimeAxis

KENO = "11509500"
DRAWN = """({ layout, data }) => ({
  barmode: layout.barmode ?? "",
  marks: data.map((trace) => trace.mode ?? trace.type),
  heights: Object.fromEntries(data.map((trace) => [trace.name, Array.from(trace.y)])),
})"""
TRACES = """({ data }) => Object.fromEntries(data.map(({ name, x, y, fill }) => (
  [name, { x: Array.from(x), y: Array.from(y), fill }]
)))"""
FILLS = "all => all.map(one => getComputedStyle(one).fill)"
AXIS = """([times, model]) => import("/static/clock.js").then(({ clockOf, timeAxis }) => {
  const axis = timeAxis([...times.slice(0, 2), ...times.slice(3)], clockOf(model)); // of one moment nothing is known
  const { categoryarray: order, tickvals, ticktext } = axis.layout;
  const ticks = tickvals.map((tick, index) => [Math.round(tick), ...ticktext[index].split("<br>").slice(1)]);
  return { names: axis.names(times), places: times.map(axis.place), title: axis.title, order, ticks };
})"""
TICKS: dict[tuple[datetime, int], dict[int, list[str]]] = {  # by first moment and seconds from one to the next
    (datetime(2024, 11, 3, 7, tzinfo=UTC), 1800): {
        0: ["00:00"], 2: ["01:00", "UTC−07:00"], 4: ["01:00", "UTC−08:00"], 6: ["02:00"],
    },
    (datetime(2024, 3, 10, 8, tzinfo=UTC), 1800): {0: ["00:00"], 2: ["01:00"], 4: ["03:00"], 6: ["04:00"]},
    (datetime(2024, 6, 1, tzinfo=UTC), 10): {0: ["17:00:00"], 3: ["17:00:30"], 6: ["17:01:00"]},
}  # fmt: skip
UNDER_BARS = """(one) => {
  const bar = document.getElementById("moments").getBoundingClientRect();
  const isAbove = bar.top < innerHeight / 2;
  const before = one.getBoundingClientRect();
  scrollBy(0, isAbove ? before.top - 4 : before.bottom - innerHeight + 4);
  const there = one.getBoundingClientRect();
  one.focus();
  const after = one.getBoundingClientRect();
  const covered = (box) => (isAbove ? bar.bottom - box.top : box.bottom - bar.top);
  return [covered(there), covered(after)];
}"""
OVERHANG = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
INNER_OVERHANG = "one.scrollWidth - one.clientWidth"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browsing() as found:
        yield found


@pytest.fixture(scope="module")
def model() -> FakeModel:
    return FakeModel("klamath", candor.load_dataset("klamath-daily"))


@pytest.fixture(scope="module")
def shared(browser: Browser, model: FakeModel) -> Iterator[Page]:
    """The page without motion; loading it anew for each test would take most of the time."""
    with serve_page(PageServer([model])) as server, opened(browser, server.address, reduced_motion="reduce") as page:
        expect(page.locator("#sensors .value").last).not_to_be_empty()
        yield page


@pytest.fixture
def page(shared: Page) -> Iterator[Page]:
    """The page as it is after loading."""
    yield shared
    shared.emulate_media(color_scheme="light")
    shared.set_viewport_size({"width": 1440, "height": 900})
    shared.keyboard.press("Escape")
    expect(shared.locator("#sensor")).to_be_hidden()
    shared.locator("#search").fill("")
    if "(latest)" not in shared.locator("#moment").inner_text():
        shared.locator("#latest").click()
        expect(shared.locator("#moment")).to_contain_text("(latest)")
    shared.get_by_text("Change", exact=True).click()


def choose(page: Page, sensor: str) -> None:
    """Opens a sensor from the list, and waits until all of its charts are drawn."""
    page.locator(f'[data-sensor="{sensor}"]').first.click()
    for name in ("forecast", "components", "fusion"):
        expect(page.locator(f".chart.{name} .main-svg").first).to_be_visible()


def unfold(page: Page, words: str) -> None:
    page.locator("summary", has_text=words).click()


def table(page: Page, label: str) -> list[list[str]]:
    """Returns the texts of a table, row by row."""
    rows = page.get_by_role("group", name=label).locator("tbody tr")
    found: list[list[str]] = rows.evaluate_all("all => all.map(row => Array.from(row.cells, cell => cell.innerText))")
    return found


def in_days(time: str) -> str:
    """Returns a time as the page writes it where readings are daily."""
    return f"{datetime.fromisoformat(time):%-d\u00a0%b %Y}"


def as_number(text: str) -> float:
    return float(re.split(r"\s", text.strip())[0].replace("−", "-").replace(",", ""))


def test_the_network_is_drawn_and_falls_and_rises_differ_in_colour(page: Page, model: FakeModel) -> None:
    expect(page.locator("#map .sensors circle")).to_have_count(len(model.panel.sensors))
    expect(page.locator("#map-title")).to_have_text("Expected change over the next 14 days [mg/L]")
    expect(page.locator("#summary")).to_contain_text("11 sensors, 41 edges")
    fills = page.locator("#map .sensors circle").evaluate_all(FILLS)
    values = page.locator("#sensors .value").all_inner_texts()
    changes = [row["change"] for row in model.overview(None)["sensors"]]
    assert 3 < sum(change is not None for change in changes) < len(changes)
    for change, fill, value in zip(changes, fills, values, strict=True):
        if change is None:
            assert value == "–"
            continue
        red, _, blue = (int(part) for part in re.findall(r"\d+", fill)[:3])
        assert (red > blue) == (change > 0)
        assert as_number(value) == pytest.approx(change, rel=5e-3)


def test_the_switch_colours_the_map_by_uncertainty(page: Page, model: FakeModel) -> None:
    page.get_by_text("Uncertainty", exact=True).click()
    expect(page.locator("#map-title")).to_have_text("Uncertainty over the next 14 days [mg/L]")
    values = [as_number(text) for text in page.locator("#sensors .value").all_inner_texts()]
    fills = page.locator("#map .sensors circle").evaluate_all(FILLS)
    widths = [row["width"] for row in model.overview(None)["sensors"]]
    assert values == pytest.approx(widths, rel=5e-3)
    light = [sum(int(part) for part in re.findall(r"\d+", fill)[:3]) for fill in fills]
    assert light[int(np.argmax(widths))] == min(light) < max(light) == light[int(np.argmin(widths))]


def test_a_click_on_the_map_opens_the_sensor_with_all_its_panels(page: Page, model: FakeModel) -> None:
    place = model.panel.sensor_ids.index(KENO)
    page.locator("#map .sensors circle").nth(place).click()
    panel = page.locator("#sensor")
    expect(panel.get_by_role("heading", level=2)).to_have_text("Klamath River at Keno, or")
    for title in (
        "Readings and forecast", "What its recent past is made of", "What the forecast rests on",
        "What arrived along which edge", "Sensors it listens to",
    ):  # fmt: skip
        expect(panel.get_by_role("heading", name=title)).to_be_visible()
    for name, unit in (("forecast", "mg/L"), ("components", "strength, without unit"), ("fusion", "[%]")):
        expect(panel.locator(f".chart.{name} .ytitle")).to_contain_text(unit)
        expect(panel.locator(f".chart.{name} .xtitle")).to_contain_text("local time")
    components = ["background", "accumulation", "release", "shock"]
    expect(panel.locator(".chart.components .legendtext")).to_have_text(components)
    drawn = panel.locator(".chart.components").evaluate(DRAWN)
    strengths = model.explain(KENO, None)["components"]
    assert drawn["barmode"] == "" and drawn["marks"] == ["lines+markers"] * 4  # sizes do not add up to a stack
    assert list(drawn["heights"]) == components
    for name in components:
        assert drawn["heights"][name] == pytest.approx(strengths[name])
    unfold(page, "How far the gates were open")
    expect(panel.locator(".chart.gates .main-svg").first).to_be_visible()
    arrived = table(page, "What arrived")
    edges = model.panel.edges
    assert len(arrived) == (edges.target == place).sum() + (edges.source == place).sum()
    assert {row[0].split("\n")[1] for row in arrived} == {"→ along the edge", "← against the edge"}
    peers = table(page, "Sensors it listens to")
    assert sum(as_number(row[2]) for row in peers) == pytest.approx(100, abs=0.6)
    assert [row[3] for row in peers[:6]] == ["0.90", "0.70", "0.50", "0.30", "0.10", "−0.10"]
    # The edges that brought something are drawn on the map, and the sensors that it listens to are ringed.
    expect(page.locator("#map .flows .line")).to_have_count(len(arrived))
    expect(page.locator("#map .peers circle")).to_have_count(5)


def test_the_chart_of_a_forecast_holds_readings_forecast_and_interval(page: Page, model: FakeModel) -> None:
    choose(page, KENO)
    drawn = page.locator(".chart.forecast").evaluate(TRACES)
    asked = model.at(None)
    steps, series = [in_days(time) for time in asked["steps"]], asked["sensors"][KENO]
    assert list(drawn) == ["at least", "90\u00a0% interval", "readings", "forecast"]
    for name, part in (("at least", "lower"), ("90\u00a0% interval", "upper"), ("forecast", "forecast")):
        assert drawn[name]["x"] == steps
        assert drawn[name]["y"] == pytest.approx(series[part])
    assert drawn["90\u00a0% interval"]["fill"] == "tonexty"  # down to the trace before, its lower end
    past = model.past(KENO, None, 4 * model.horizon)
    assert drawn["readings"]["x"] == [in_days(time) for time in past["times"]]
    order = page.locator(".chart.forecast").evaluate("({ layout }) => layout.xaxis.categoryarray")
    assert order == drawn["readings"]["x"] + steps
    assert drawn["readings"]["y"] == past["values"]
    assert sum(value is not None for value in past["values"]) > 10


def test_the_chart_of_the_branches_holds_their_shares_by_part_of_the_forecast(page: Page, model: FakeModel) -> None:
    choose(page, KENO)
    drawn = page.locator(".chart.fusion").evaluate(DRAWN)
    fusion = model.explain(KENO, None)["fusion"]
    words = {"own past and sensors alike": "functional", "along the edges": "forward", "against the edges": "reverse"}
    assert drawn["barmode"] == "stack" and set(drawn["marks"]) == {"bar"} and list(drawn["heights"]) == list(words)
    for name, branch in words.items():
        shares = [100 * part[branch] for part in fusion]
        assert drawn["heights"][name] == pytest.approx(shares) and len(set(shares)) == len(shares) > 1
    (names,) = {tuple(trace["x"]) for trace in page.locator(".chart.fusion").evaluate(TRACES).values()}
    assert len(set(names)) == len(fusion)


def test_the_table_of_a_forecast_is_the_forecast(page: Page, model: FakeModel) -> None:
    place = model.panel.sensor_ids.index(KENO)
    choose(page, KENO)
    unfold(page, "The forecast in numbers")
    shown = np.array([[as_number(cell) for cell in row[1:]] for row in table(page, "The forecast in numbers")])
    forecast, half = model.forecast(model.panel.times.length)
    expected = np.stack([forecast, forecast - half, forecast + half], axis=2)[:, place]
    assert shown == pytest.approx(expected, rel=5e-3)


def test_what_a_mouse_finds_in_charts_stands_in_tables_too(page: Page, model: FakeModel) -> None:
    choose(page, KENO)
    why, past = model.explain(KENO, None), model.past(KENO, None, 4 * model.horizon)
    for words, parts, factor in (("components", why["components"], 1), ("shares", _shares(why["fusion"]), 100)):
        unfold(page, f"The {words} in numbers")
        shown = [[as_number(cell) for cell in row[1:]] for row in table(page, f"The {words} in numbers")]
        expected = factor * np.array(list(parts.values())).T
        assert np.array(shown) == pytest.approx(expected, rel=5e-3, abs=0.06 if factor == 100 else 0)
    unfold(page, "The readings in numbers")
    readings = page.get_by_role("group", name="The readings in numbers")
    readings.get_by_role("button", name="Show all 56").click()
    expect(readings).to_be_focused()  # what was pressed is gone
    newest = [(in_days(time), value) for time, value in zip(past["times"], past["values"], strict=True)][::-1]
    rows = table(page, "The readings in numbers")
    assert [day for day, _ in rows] == [day for day, _ in newest]
    for (_, cell), (_, value) in zip(rows, newest, strict=True):
        assert cell == "–" if value is None else as_number(cell) == pytest.approx(value, rel=5e-3)
    arrived = page.get_by_role("group", name="What arrived").locator("td.heat span").all_inner_texts()
    weights = {f"{round(100 * one['weight'], 1):g}\u00a0%" for one in why["contributions"]}
    assert set(arrived) == weights and len(arrived) == len(why["contributions"])


def _shares(fusion: list[dict[str, Any]]) -> dict[str, list[float]]:
    return {branch: [part[branch] for part in fusion] for branch in ("functional", "forward", "reverse")}


@pytest.mark.parametrize("width", [1440, 390])
def test_what_keys_lead_to_is_not_hidden_by_the_bars(page: Page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 700})
    choose(page, KENO)
    for words in ("The components in numbers", "The shares in numbers"):
        before, after = page.locator("summary", has_text=words).evaluate(UNDER_BARS)
        assert before > 0 >= after


def test_the_slider_compares_a_past_forecast_with_what_happened(page: Page, browser: Browser, model: FakeModel) -> None:
    origin, place = model.panel.times.length - 5 * model.horizon, model.panel.sensor_ids.index(KENO)
    local = model.panel.times.local[origin]
    choose(page, KENO)
    expect(page.locator(".verdict")).to_contain_text("not known yet")
    before = page.locator("#sensors .value").all_inner_texts()
    page.locator("#slider").focus()
    for _ in range(5):
        page.keyboard.press("PageDown")
    expect(page.locator("#moment")).to_have_text(f"{local.day}\u00a0{local:%b %Y}")
    expect(page).to_have_url(re.compile(re.escape(quote(local.isoformat()))))
    for part in ("workspace", "sensor"):
        expect(page.locator(f"#{part}")).to_have_attribute("aria-busy", "false")
    expect(page.locator(".verdict")).to_contain_text("missed what happened")
    expect(page.locator(".chart.forecast .legendtext").last).to_have_text("what happened")
    verdict, after = page.locator(".verdict").inner_text(), page.locator("#sensors .value").all_inner_texts()
    with opened(browser, page.url, has_charts=False) as another:  # the address leads to the same sensor and moment
        expect(another.locator(".verdict")).to_have_text(verdict)
    page.get_by_role("button", name="Latest").click()
    expect(page.locator(".verdict")).to_contain_text("not known yet")
    expect(page.locator("#sensors .value")).to_have_text(before)
    assert after != before
    forecast, half = (part[:, place] for part in model.forecast(origin))
    happened = model.panel.values[origin : origin + model.horizon, place]
    known = ~np.isnan(happened)
    error, held = np.abs(forecast - happened)[known], (np.abs(forecast - happened) <= half)[known]
    missed, steps, total, _, inside, bounded = map(float, re.findall(r"\d+(?:\.\d+)?", verdict))
    assert missed == pytest.approx(error.mean(), rel=5e-3)
    assert (steps, total, inside, bounded) == (known.sum(), model.horizon, held.sum(), known.sum())


def test_a_sender_in_the_table_leads_to_that_sensor(page: Page) -> None:
    choose(page, KENO)
    page.get_by_role("group", name="What arrived").get_by_role("button").first.click()
    expect(page.locator("#sensor-title")).to_have_text("Link River Dam")
    expect(page.locator("#sensors [aria-current]")).to_have_attribute("data-sensor", "421401121480900")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_serious_by_day_and_by_night(page: Page, theme: Literal["light", "dark"]) -> None:
    page.emulate_media(color_scheme=theme)
    choose(page, KENO)
    unfold(page, "The forecast in numbers")
    unfold(page, "How far the gates were open")
    expect(page.locator(".chart.gates .main-svg").first).to_be_visible()
    found = Axe().run(page).response["violations"]
    assert [(one["id"], one["nodes"][0]["html"]) for one in found if one["impact"] in ("serious", "critical")] == []
    ink = page.locator(".chart.forecast .xtick text").first.evaluate("one => getComputedStyle(one).fill")
    assert (sum(map(int, re.findall(r"\d+", ink))) > 3 * 128) == (theme == "dark")


def test_a_phone_needs_no_sideways_scrolling(page: Page) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate(OVERHANG) == 0
    choose(page, KENO)
    # The panel has come into sight, and the slider is at hand.
    expect(page.locator("#sensor-title")).to_be_in_viewport()
    expect(page.locator("#slider")).to_be_in_viewport()
    page.locator("#slider").focus()
    page.keyboard.press("PageDown")
    expect(page.locator(".verdict")).to_contain_text("missed what happened")
    unfold(page, "The forecast in numbers")
    numbers = page.get_by_role("group", name="The forecast in numbers")
    expect(numbers.locator("thead th").last).to_have_text("what happened")
    assert page.evaluate(OVERHANG) == 0
    assert numbers.evaluate(f"one => {INNER_OVERHANG}") == 0  # the outcome stands in the last column
    names = page.locator("#map text").all_text_contents()
    assert len(names) > 5 and len(set(names)) == len(names)  # cut as they are, none could be of two sensors


def test_everything_can_be_done_with_keys_alone(browser: Browser, model: FakeModel) -> None:
    with serve_page(PageServer([model])) as server, opened(browser, server.address, has_charts=False) as page:
        expect(page.locator("#sensors button")).to_have_count(11)
        focused = page.locator(":focus")
        page.keyboard.press("Tab")
        expect(focused).to_have_text("Skip to the list of sensors")
        page.keyboard.press("Enter")
        expect(focused).to_have_id("search")
        page.keyboard.type("straits")
        expect(page.locator("#sensors li:visible")).to_have_count(2)
        for key in ("ArrowDown", "ArrowDown", "Enter"):
            page.keyboard.press(key)
        expect(focused).to_have_text("Klamath Straits Drain Near Highway 97, or")
        expect(focused).to_have_id("sensor-title")
        page.keyboard.press("Escape")
        expect(page.locator("#sensor")).to_be_hidden()
        expect(focused).to_have_attribute("data-sensor", "420451121510000")
        for key in ("ArrowUp", "ArrowUp"):
            page.keyboard.press(key)
        expect(focused).to_have_id("search")
        page.keyboard.press("Escape")
        expect(page.locator("#sensors li:visible")).to_have_count(11)
        reached: list[str | None] = []
        while len(reached) < 12 and "slider" not in reached:
            page.keyboard.press("Shift+Tab")
            reached.append(focused.get_attribute("id"))
        assert reached[-1] == "slider"
        page.keyboard.press("Home")
        expect(page.locator("#moment")).to_have_text("29\u00a0Jan 2014")
        expect(page.locator("#earlier")).to_be_disabled()


def test_moments_are_told_on_the_clock_of_the_run_when_the_clocks_change(browser: Browser) -> None:
    length = 24 * 60
    axis = TimeAxis(datetime(2024, 2, 1, tzinfo=UTC), timedelta(hours=1), length, "America/Los_Angeles")
    values = np.sin(np.arange(length, dtype=np.float32))[:, None]
    model = FakeModel("clock", Panel(values, axis, (Sensor("a", unit="m"),)), history=24, horizon=12)
    server = PageServer([model])
    with serve_page(server), opened(browser, server.address, has_charts=False) as page:
        slider = page.locator("#slider")
        expect(slider).to_have_attribute("max", str(length - 24))
        for row in (24, 24 * 30, 24 * 42):
            slide(slider, row - 24)
            local = axis.local[row]
            expect(page.locator("#moment")).to_have_text(f"{local.day}\u00a0{local:%b %Y, %H:%M}")
            expect(page).to_have_url(re.compile(re.escape(quote(local.isoformat()))))
        for (start, seconds), ticks in TICKS.items():
            times = TimeAxis(start, timedelta(seconds=seconds), 8, axis.zone).local
            asked = [[moment.isoformat() for moment in times], {"zone": axis.zone, "interval_seconds": seconds}]
            found = page.evaluate(AXIS, asked)
            clock = f"%-d\u00a0%b %Y, {'%H:%M:%S' if seconds == 10 else '%H:%M'}"
            assert found["names"] == found["order"] == [format_time(moment, clock) for moment in times.to_pydatetime()]
            assert found["places"] == list(range(8))  # as far apart as the moments, whatever the clock does
            assert found["ticks"] == [[place, *text] for place, text in ticks.items()]
            assert found["title"] == "local time (America/Los_Angeles), 2024"


def test_the_switch_of_the_theme_is_remembered(browser: Browser, model: FakeModel) -> None:
    background = "getComputedStyle(document.body).backgroundColor"
    server = PageServer([model])
    with serve_page(server), opened(browser, server.address, has_charts=False) as page:
        day = page.evaluate(background)
        page.get_by_role("button", name="Dark colours").click()
        night = page.evaluate(background)
        page.reload()
        expect(page.get_by_role("button", name="Light colours")).to_be_visible()
        assert page.evaluate(background) == night != day
