"""The heat map and the sweep say what they are given."""

from candor.figures.heat import HeatCell, draw_changes
from candor.figures.sweeps import draw_sweep


def test_every_change_is_written_with_its_dot() -> None:
    rows = {"w/o Physical": {"mae": HeatCell(0.123, True)}, "avg Fusion": {"mae": HeatCell(-0.004, False)}}
    drawing = draw_changes(rows, "title", "note")
    (axes,) = drawing.figure.axes
    assert [text.get_text() for text in axes.texts] == ["+12.3 % •", "-0.4 %"]
    assert drawing.table["relative_change"].tolist() == [0.123, -0.004]
    assert [label.get_text() for label in axes.get_yticklabels()] == list(rows)


def test_a_sweep_has_a_point_per_seed_and_a_line_through_the_means() -> None:
    drawing = draw_sweep({"4": [1.0, 3.0], "8": [2.0, 2.5]}, "pairs", "title", "mph")
    line, *points = drawing.figure.axes[0].lines
    assert list(line.get_ydata()) == [2.0, 2.25]
    assert [list(seeds.get_ydata()) for seeds in points] == [[1.0, 3.0], [2.0, 2.5]]
    assert len(drawing.table) == 4
