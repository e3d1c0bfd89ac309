"""The frame of pages: any text may be given, and none becomes a part of the page; only known scripts may run."""

import re
from base64 import b64encode
from hashlib import sha256

from candor.render.html import Html, Section, frame_page, table

TEXT = '<script>alert("1 & 2")</script>'


def test_texts_are_escaped_and_html_is_not() -> None:
    page = frame_page(TEXT, TEXT, [Section(TEXT, TEXT, "<p>body</p>")], before="<p>first</p>", footer=TEXT)
    assert "<script>" not in page
    assert page.count("&lt;script&gt;") == 8  # title twice, subtitle, footer, a link and a section with their names
    assert "<main>\n<p>first</p>\n<section" in page and "<p>body</p>\n</section>\n</main>" in page


def test_scripts_run_by_their_checksums_alone() -> None:
    page = frame_page("a", "b", [Section("x", "Y", "")], scripts=["1 + 1", "2"])
    (policy,) = re.findall('http-equiv="Content-Security-Policy" content="(.*?)"', page)
    sums = [f"'sha256-{b64encode(sha256(text).digest()).decode()}'" for text in (b"1 + 1", b"2")]
    assert f"script-src {' '.join(sums)};" in policy and '<a href="#x">Y</a>' in page
    assert page.endswith("<script>1 + 1</script>\n<script>2</script>\n</body>\n</html>\n")
    assert "<script" not in frame_page("a", "b", [])


def test_cells_of_tables_are_escaped_unless_they_are_html() -> None:
    made = table(("name", "a", "b"), [("<i>", Html("<b>1</b>"), ("<", ">"))], groups=(("<g>", 2),))
    assert '<td>&lt;i&gt;</td><td class="number"><b>1</b></td><td class="number">&lt;<small>&gt;</small></td>' in made
    assert '<tr><th></th><th class="group" colspan="2">&lt;g&gt;</th></tr>' in made
