"""The frame of pages: any text may be given, and none becomes a part of the page."""

from candor.render.html import frame_page

TEXT = '<script>alert("1 & 2")</script>'


def test_texts_are_escaped_and_html_is_not() -> None:
    page = frame_page(TEXT, TEXT, "<p>body</p>", TEXT, policy="default-src 'none'", style="p {}", sections={TEXT: TEXT})
    assert "<script>" not in page
    assert page.count("&lt;script&gt;") == 6  # title twice, subtitle, footer, and a link with its words
    assert "<main>\n<p>body</p>\n</main>" in page and "<style>\np {}\n</style>" in page


def test_a_page_has_links_and_scripts_only_if_they_are_given() -> None:
    plain = frame_page("a", "b", "c", "d", policy="", style="")
    assert "<nav" not in plain and "<script" not in plain
    page = frame_page("a", "b", "c", "d", policy="", style="", sections={"x": "Y"}, scripts="<script>1</script>\n")
    assert '<a href="#x">Y</a>' in page and "<script>1</script>\n</body>" in page
