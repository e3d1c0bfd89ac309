"""A page says what it is given and nothing else: no name becomes markup, nothing is fetched, nothing runs."""

import re
from base64 import b64decode

from read_report import Reader

from candor.explain.explanation import Explanation, ModelFinding, Table
from candor.explain.pictures import RolePicture, Spread
from candor.render.explanation_page import make_page

EVIL = "<script>alert('x')</script>&\"' <img src=http://evil.example/x onerror=alert(1)>"


def page_of(text: str) -> str:
    kinds = ("before", "after", "after_apart", "deviations_before", "deviations_after")
    picture = RolePicture({"release": dict.fromkeys(kinds, Spread(0.1, 0.0, 0.2))}, 3)
    table = Table(text, [text, "number"], [[text, "1"]])
    findings = (
        ModelFinding("roles", text, (text, "second"), {}, {"roles": picture}, table),
        ModelFinding("forecast", "One sentence", (text,)),
    )
    return make_page(Explanation(text, text, findings), {"roles": b"\x89PNG picture"})


def test_what_is_written_is_text_wherever_it_stands() -> None:
    seen = Reader(page_of(EVIL))
    assert (
        seen.words().count(EVIL) == 10
    )  # title, heading and subtitle of the page, a link, and six places in its sections
    allowed = {
        "html", "head", "meta", "title", "style", "body", "header", "h1", "p", "nav", "main", "section", "h2", "ul",
        "li", "img", "a", "details", "summary", "div", "table", "thead", "tbody", "tr", "th", "td", "footer",
    }  # fmt: skip
    assert set(seen.tags()) == allowed
    assert not any(name.startswith("on") for _, attributes in seen.elements for name in attributes)


def test_nothing_is_fetched_and_nothing_may_run() -> None:
    seen = Reader(page_of(EVIL))
    policy = next(a["content"] for tag, a in seen.elements if a.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None and "default-src 'none'" in policy and "script-src" not in policy
    sources = [attributes["src"] for tag, attributes in seen.elements if tag == "img"]
    assert len(sources) == 1 and sources[0] is not None and sources[0].startswith("data:image/png;base64,")
    assert b64decode(sources[0].partition(",")[2]) == b"\x89PNG picture"
    links = {attributes["href"] for tag, attributes in seen.elements if tag == "a"}
    assert links == {"roles.png", "roles.svg", "roles.csv", "forecast.html", "#roles", "#forecast"}
    style = re.search(r"<style>(.*?)</style>", page_of("x"), re.DOTALL)
    assert style is not None and "url(" not in style[1] and "@import" not in style[1]


def test_pictures_have_a_text_and_tables_a_head() -> None:
    seen = Reader(page_of("Words"))
    assert all(attributes["alt"] for tag, attributes in seen.elements if tag == "img")
    assert [a.get("class") for tag, a in seen.elements if tag == "th"] == [None, "number"]
    assert seen.elements[0] == ("html", {"lang": "en"})
