"""The heat map and the sweep say what they are given."""

import pytest
from pictures import drawn_texts

from candor.render.figures.benchmark import draw_ablations, draw_changes, draw_sweep
from candor.research.ablations import Change, split_changes


def change(relative: float, is_beyond_chance: bool = False, parameters: int | None = None) -> Change:
    return Change("any", "mae", relative, 2, is_beyond_chance, parameters)


def test_every_change_is_written_with_its_dot() -> None:
    rows = {"w/o Physical": {"mae": change(0.123, True)}, "avg Fusion": {"mae": change(-0.004, False)}}
    drawing = draw_changes(rows, "title", "note")
    (axes,) = drawing.figure.axes
    assert [text.get_text() for text in axes.texts] == ["+12.3 % •", "-0.4 %"]
    assert drawing.table["relative_change"].tolist() == [0.123, -0.004]
    assert [label.get_text() for label in axes.get_yticklabels()] == list(rows)


def test_sizes_stand_beside_their_rows_and_in_the_table() -> None:
    rows = {"w/o Physical": {"mae": change(0.1, False, 7_000)}, "avg Fusion": {"mae": change(0.2, False, 8_000)}}
    drawing = draw_changes(rows, "title", "note")
    (beside,) = drawing.figure.axes[0].child_axes
    assert [label.get_text() for label in beside.get_yticklabels()] == ["7,000", "8,000"]
    assert drawing.table["parameters"].tolist() == [7_000, 8_000]


def test_tasks_stand_above_metrics_and_what_a_variant_lacks_stays_empty() -> None:
    rows = {
        "w/o Physical": {"metr-la, mae": change(0.1, False), "river, mape": change(-0.2, False)},
        "avg Fusion": {"river, mape": change(0.3, True)},
    }
    drawing = draw_changes(rows, "title", "note")
    (axes,) = drawing.figure.axes
    assert [label.get_text() for label in axes.get_xticklabels()] == ["MAE", "MAPE"]
    (above,) = axes.child_axes
    assert [label.get_text() for label in above.get_xticklabels()] == ["metr-la", "river"]
    assert [text.get_text() for text in axes.texts] == ["+10.0 %", "-20.0 %", "+30.0 % •"]
    shown = axes.images[0].get_array()
    assert shown.mask.tolist() == [[False, False], [True, False]]


@pytest.mark.parametrize(("variant", "title"), [("rain-added", "given rain"), ("mean-fusion", "without its parts")])
def test_what_is_given_and_what_is_taken_away_have_titles_of_their_own(variant: str, title: str) -> None:
    found = [Change(variant, "mae", 0.1, 2, is_beyond_chance=False, parameters=5)]
    for drawing in (draw_ablations({"river": found}), draw_ablations({"one": found, "two": found})):
        assert title in drawing.figure.get_suptitle()
    given, taken = Change("rain-alone", "mae", 0.1, 2, False), Change("mean-fusion", "mae", 0.1, 2, False)
    assert split_changes([given, taken]) == {"interventions": [given], "ablations": [taken]}


def test_a_sweep_has_a_point_per_seed_and_a_line_through_the_means() -> None:
    drawing = draw_sweep({"4": [1.0, 3.0], "8": [2.0, 2.5]}, "pairs", "title", "mph")
    line, *points = drawing.figure.axes[0].lines
    assert list(line.get_ydata()) == [2.0, 2.25]
    assert [list(seeds.get_ydata()) for seeds in points] == [[1.0, 3.0], [2.0, 2.5]]
    assert len(drawing.table) == 4


def test_values_with_fewer_seeds_are_not_said_to_have_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    for errors, words in (
        ({"4": [1.0, 3.0, 2.0], "8": [2.0]}, "1 to 3 seeds of each value"),
        ({"4": [1.0], "8": [2.0]}, "1 seed of each value"),
    ):
        texts = drawn_texts(draw_sweep(errors, "pairs", "title", "mph").figure, monkeypatch)
        assert any(words in text for text, _ in texts)
