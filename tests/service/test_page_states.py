"""The page says what is the matter when there is little to show, much to show, or nobody who answers."""

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe
from page_server import STATIC, FakeModel, PageServer, browsing, opened, serve_page
from patient import expect
from playwright.sync_api import Browser, Page, Route

from candor.data.panel import Edges, Panel, Sensor
from candor.data.times import TimeAxis

EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)><a href='javascript:alert(3)'>z</a>"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browsing() as found:
        yield found


def made(sensors: list[Sensor], edges: Edges | None = None, length: int = 120, name: str = "made") -> Panel:
    """Returns a panel of waves, one a little behind the other."""
    axis = TimeAxis(datetime(2024, 1, 1, tzinfo=UTC), timedelta(days=1), length, "UTC")
    waves = np.sin(np.arange(length)[:, None] / 9 + np.arange(len(sensors)) / 3).astype(np.float32)
    return Panel(10 + waves, axis, tuple(sensors), edges or Edges.none(), name=name)


def trio() -> Panel:
    sensors = [Sensor(letter, f"Station {letter}", 40 + place, 10 + place, "m") for place, letter in enumerate("abc")]
    return made(sensors, Edges(np.array([0, 1], np.int32), np.array([1, 2], np.int32)))


def test_a_wrong_token_is_told_and_the_right_one_opens_the_page(browser: Browser) -> None:
    server = PageServer([FakeModel("trio", trio())], token="sesame")
    with serve_page(server), opened(browser, server.address, complaint="401", has_charts=False) as page:
        field = page.get_by_label("Token", exact=True)
        expect(field).to_be_focused()
        expect(page.locator("#workspace")).to_be_hidden()
        found = Axe().run(page).response["violations"]
        assert [one["id"] for one in found if one["impact"] in ("serious", "critical")] == []
        field.fill("open barley")
        page.keyboard.press("Enter")
        expect(page.locator("#token-trouble")).to_have_text("That token was not accepted.")
        field.fill("sesame")
        page.keyboard.press("Enter")
        expect(page.locator("#sensors button")).to_have_count(3)
        expect(page.locator("#token-form")).to_be_hidden()
        page.reload()  # the tab remembers it
        expect(page.locator("#sensors button")).to_have_count(3)
        assert page.evaluate("Object.values(localStorage)") == []
    assert not [address for address in server.requests if "sesame" in address]


def test_a_service_that_cannot_be_reached_is_told_and_asked_again(browser: Browser) -> None:
    server = PageServer([FakeModel("trio", trio())])
    with serve_page(server), opened(browser, server.address, complaint="ERR_FAILED", has_charts=False) as page:
        expect(page.locator("#sensors button")).to_have_count(3)
        page.route("**/v1/**", lambda route: route.abort())
        page.reload()
        expect(page.get_by_role("alert")).to_contain_text("The service cannot be reached")
        expect(page.locator("#loading")).to_be_hidden()
        page.unroute("**/v1/**")
        page.get_by_role("button", name="Try again").click()
        expect(page.locator("#sensors button")).to_have_count(3)
        expect(page.get_by_role("alert")).to_be_hidden()


def test_a_lone_sensor_without_edges_coordinates_and_name_is_shown(browser: Browser) -> None:
    server = PageServer([FakeModel("alone", made([Sensor("only", unit="m")]))])
    with serve_page(server), opened(browser, server.address, has_charts=False) as page:
        expect(page.locator("#map-note")).to_contain_text("no edges")
        expect(page.locator("#summary")).to_contain_text("1 sensor, 0 edges")
        circle, frame = page.locator("#map .sensors circle"), page.locator("#map")
        inner, outer = circle.bounding_box(), frame.bounding_box()
        assert inner is not None and outer is not None
        for start, length in (("x", "width"), ("y", "height")):
            middle = outer[start] + outer[length] / 2  # type: ignore[literal-required]
            assert inner[start] + inner[length] / 2 == pytest.approx(middle, abs=2)  # type: ignore[literal-required]
        circle.click()
        expect(page.locator("#sensor-title")).to_have_text("only")
        expect(page.locator("#sensor")).to_contain_text("Nothing: no edge of the network leads to or from this sensor")


def test_what_can_be_told_without_charts_is_told_without_them(browser: Browser) -> None:
    lakes = replace(trio(), values=trio().values + 4130)  # above the sea: levels differ by little for their size
    model = FakeModel("lakes", lakes)
    server = PageServer([model])
    with serve_page(server), opened(browser, server.address, has_charts=False) as page:
        page.locator("[data-sensor=b]").first.click()
        for name in ("forecast", "components", "fusion"):
            expect(page.locator(f".chart.{name}")).to_contain_text("The chart cannot be drawn")
        page.locator("summary", has_text="The forecast in numbers").click()
        rows = page.get_by_role("group", name="The forecast in numbers").locator("tbody tr")
        expect(rows).to_have_count(14)
        shown = [float(cell.replace(",", "")) for cell in rows.first.locator("td").all_inner_texts()]
        forecast, half = (part[0, 1] for part in model.forecast(lakes.times.length))
        assert shown == pytest.approx([forecast, forecast - half, forecast + half], abs=0.01, rel=0)
        expect(page.locator(".figures")).to_contain_text(re.compile(r"\(4,1\d\d\.\d\d to 4,1\d\d\.\d\d\)"))
        expect(page.get_by_role("group", name="What arrived").locator("tbody tr")).to_have_count(2)


def test_a_network_without_coordinates_says_so(browser: Browser) -> None:
    server = PageServer([FakeModel("nowhere", made([Sensor(letter, unit="m") for letter in "abcde"]))])
    with serve_page(server), opened(browser, server.address, has_charts=False) as page:
        expect(page.locator("#map-note")).to_contain_text("No coordinates are known")
        expect(page.locator("#map text")).to_have_text(list("abcde"))
        circles = page.locator("#map .sensors circle")
        across = circles.evaluate_all("all => all.map(one => Number(one.getAttribute('cx')))")
        up = circles.evaluate_all("all => all.map(one => -Number(one.getAttribute('cy')))")
    # As the service placed them: on a circle, from the right over the top.
    angles = np.linspace(0, 2 * np.pi, 5, endpoint=False)
    for shown, wanted in ((across, np.cos(angles)), (up, np.sin(angles))):
        assert np.corrcoef(shown, wanted)[0, 1] > 0.999


def test_a_model_without_record_says_what_to_do(browser: Browser) -> None:
    server = PageServer([FakeModel("bare", made([Sensor("a", unit="m"), Sensor("b", unit="m")], length=0))])
    with serve_page(server), opened(browser, server.address, complaint="400", has_charts=False) as page:
        expect(page.get_by_role("alert")).to_contain_text(
            "There are no readings before this moment: send readings first."
        )
        expect(page.locator("#moments")).to_be_hidden()
        expect(page.locator("#map .sensors .unknown")).to_have_count(2)


def test_a_model_without_reasons_and_intervals_says_so_and_another_can_be_picked(browser: Browser) -> None:
    plain = FakeModel("plain", trio(), explains=False, has_intervals=False)
    server = PageServer([plain, FakeModel("rich", made([Sensor("z", "Rich", unit="cm")]))])
    with serve_page(server), opened(browser, server.address) as page:
        expect(page.locator("input[value=uncertainty]")).to_be_disabled()
        expect(page.locator("#map-note")).to_contain_text("This model gives no intervals")
        page.locator("[data-sensor=b]").first.click()
        expect(page.locator("#sensor")).to_contain_text("The model last-value gives no reasons")
        expect(page.locator(".chart.forecast .legendtext")).to_have_text(["readings", "forecast"])
        expect(page.locator("#map .flows .line")).to_have_count(2)  # its own edges instead of reasons
        page.get_by_label("Model", exact=True).select_option("rich")
        expect(page.locator("#sensors button")).to_have_count(1)
        expect(page.locator("#map-title")).to_contain_text("[cm]")
        expect(page.locator("#sensor")).to_be_hidden()
        expect(page.locator("input[value=uncertainty]")).to_be_enabled()
    assert not [address for address in server.requests if "/v1/explain" in address]


def test_the_answer_of_a_model_that_was_left_meanwhile_changes_nothing(browser: Browser) -> None:
    server = PageServer([FakeModel("first", trio()), FakeModel("slow", made([Sensor("z", "Slow", unit="cm")]))])
    with serve_page(server), opened(browser, server.address, has_charts=False) as page:
        held: list[Route] = []
        page.route("**/v1/sensors*model=slow*", lambda route: held.append(route))
        with page.expect_request("**/v1/sensors*model=slow*"):
            page.get_by_label("Model", exact=True).select_option("slow")
        with page.expect_response("**/v1/sensors*model=first*"):
            page.get_by_label("Model", exact=True).select_option("first")
        with page.expect_response("**/v1/sensors*model=slow*") as late:
            held[0].continue_()
        late.value.finished()
        page.evaluate("new Promise((done) => setTimeout(done, 300))")  # it would be drawn by now
        expect(page.locator("#sensors button")).to_have_count(3)
        expect(page.locator("#summary")).to_contain_text("3 sensors")


def test_a_map_that_is_shown_whole_again_lets_fingers_scroll(browser: Browser) -> None:
    server = PageServer([FakeModel("trio", trio())])
    with serve_page(server), opened(browser, server.address, has_charts=False) as page:
        page.get_by_label("Zoom in").click()
        expect(page.locator("#map")).to_have_css("touch-action", "none")
        page.get_by_label("Show the whole network").click()
        expect(page.locator("#map")).not_to_have_css("touch-action", "none")


def test_units_are_told_for_each_sensor_where_they_differ(browser: Browser) -> None:
    server = PageServer([FakeModel("mixed", made([Sensor("a", unit="m"), Sensor("b", unit="mg/L")]))])
    with serve_page(server), opened(browser, server.address, has_charts=False) as page:
        expect(page.locator("#map-title")).to_have_text("Expected change over the next 14 days")
        expect(page.locator("#sensors .value")).to_have_text([re.compile(r"\d\sm$"), re.compile(r"\d\smg/L$")])
        expect(page.locator("#legend")).to_contain_text("largest of its unit")
        numbers = "[2.53e-9, -4e-11, 0.0421, 71.25].map((value) => number(value))"
        written = page.evaluate(f"import('/static/words.js').then(({{ number }}) => {numbers})")
        assert written == ["0.00000000253", "−0.000000000040", "0.0421", "71.3"]


def test_what_computing_left_over_is_no_change(browser: Browser) -> None:
    panel = made([Sensor(letter, unit="m") for letter in "abcde"])
    still = np.full(panel.values.shape, 0.7, np.float32)
    still[::2] = np.nextafter(still[::2], np.float32(1))
    model = FakeModel("still", replace(panel, values=still))
    changes = [row["change"] for row in model.overview(None)["sensors"]]
    assert all(changes) and max(map(abs, changes)) < 1e-6
    server = PageServer([model])
    with serve_page(server), opened(browser, server.address, has_charts=False) as page:
        expect(page.locator("#sensors .value")).to_have_text(["0"] * 5)


def test_hundreds_of_sensors_are_drawn_with_few_elements_and_the_clicked_one_opens(browser: Browser) -> None:
    count = 449
    generator = np.random.default_rng(4)
    points = generator.uniform(0, 1, (count, 2))
    sensors = [Sensor(f"s{place}", "", 34 + y, -118 + x, "mph") for place, (x, y) in enumerate(points)]
    source, step = np.repeat(np.arange(count, dtype=np.int32), 6), np.tile(np.arange(1, 7, dtype=np.int32), count)
    server = PageServer([FakeModel("city", made(sensors, Edges(source, (source + step) % count)))])
    with serve_page(server), opened(browser, server.address, has_charts=False) as page:
        circles = page.locator("#map .sensors circle")
        expect(circles).to_have_count(count)
        expect(page.locator("#sensors button")).to_have_count(count)
        assert page.locator("#map *").count() < count + 30  # not one element for each of 2,694 edges
        drawn = page.locator("#map .edges .line").evaluate_all("all => all.map(one => one.getAttribute('d')).join('')")
        assert drawn.count("M") == 6 * count
        circles.nth(321).click(force=True)
        expect(page.locator("#sensor-title")).to_have_text("s321")
        expect(page.locator("#sensors [aria-current]")).to_be_in_viewport()
        raised = page.locator("#map .sensors ~ .raised circle")  # once more over its neighbours, which may cover it
        expect(raised).to_have_count(1)
        for name in ("cx", "cy", "r", "style"):
            expect(raised).to_have_attribute(name, circles.nth(321).get_attribute(name) or "")
        page.get_by_role("button", name="Zoom in").click()
        expect(circles.nth(321)).to_be_in_viewport()
        page.keyboard.press("Escape")
        expect(raised).to_have_count(0)
        page.locator("#search").fill("S44")
        expect(page.locator("#sensors li:visible")).to_have_count(10)  # s44 and s440 to s448


def test_markup_in_names_and_units_is_shown_as_text(browser: Browser) -> None:
    sensors = [Sensor(f"{EVIL}{place}", EVIL, 40 + place, 10 + place, EVIL) for place in range(3)]
    edges = Edges(np.array([0, 1], np.int32), np.array([1, 2], np.int32))
    server = PageServer([FakeModel(EVIL, made(sensors, edges, name=EVIL)), FakeModel("other", trio())])
    with serve_page(server), opened(browser, server.address) as page:
        page.locator("#sensors button").nth(1).click()
        expect(page.locator("#sensor-title")).to_have_text(EVIL)
        expect(page.locator(".chart.fusion .main-svg").first).to_be_visible()
        expect(page.locator(".chart.forecast .ytitle")).to_have_text(EVIL)
        expect(page.locator("#map-title")).to_contain_text(EVIL)
        expect(page.locator("#summary")).to_contain_text(EVIL)
        page.locator("#map .sensors circle").first.hover()
        expect(page.locator("#tip")).to_contain_text(EVIL)
        assert _foreign_elements(page) == 0


def _foreign_elements(page: Page) -> int:
    """Returns how many scripts, pictures and links there are beyond those of the page."""
    return page.locator("script:not([src^='/static/']), img, a:not(.skip)").count()


@pytest.mark.parametrize("module", sorted(STATIC.glob("*.js")), ids=lambda module: module.name)
def test_no_module_makes_markup_of_texts(module: Path) -> None:
    text = module.read_text(encoding="utf-8")
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function", text)
    assert len(text.splitlines()) < 400
