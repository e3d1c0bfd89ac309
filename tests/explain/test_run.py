"""What a run says of itself: every question is answered, and it is written whole or not at all."""

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from made_readings import HISTORY, HORIZON, daily, made_run, river_panel
from made_runs import make_run

from candor.core.errors import InputError
from candor.data.panel import Edges, Panel, Sensor
from candor.explain.run import RunExplanation, explain_run
from candor.explain.run_pictures import run_pictures
from candor.render.explanation_page import FORECAST_PAGE, INDEX, SUMMARY, write_explanation
from candor.render.figures.style import Drawing
from candor.runs.run import load_run

NAMES = ["reconstruction", "embedding", "propagation", "roles", "operator", "relations", "fusion", "forecast"]
EVIL = "<script>alert('x')</script>"


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures are made but not drawn to files, which takes most of the time."""

    def write(drawing: Drawing, folder: Path, name: str) -> list[Path]:
        paths = [folder / f"{name}.{ending}" for ending in ("png", "svg", "csv")]
        for path in paths:
            path.write_text(name)
        return paths

    monkeypatch.setattr(Drawing, "write", write)


def no_edges() -> Panel:
    return replace(river_panel(), edges=Edges.none())


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(
    ("panel", "sizes", "absent"),
    [
        (river_panel(), {}, set()),
        (river_panel(), {"decomposition": False}, {"reconstruction", "embedding", "roles"}),
        (river_panel(), {"branches": ("functional",)}, {"propagation", "roles", "operator", "fusion"}),
        (river_panel(), {"branches": ("forward", "reverse")}, {"relations"}),
        (no_edges(), {}, {"operator"}),
        (daily(river_panel()), {"season": True, "learned_fusion": False}, {"fusion"}),
    ],
    ids=["whole", "without decomposition", "without physical", "without functional", "without edges", "daily"],
)
def test_every_question_is_answered_or_said_to_have_no_answer(
    tmp_path: Path, panel: Panel, sizes: dict, absent: set[str]
) -> None:
    found = explain_run(made_run(tmp_path / "run", panel, **sizes), windows=8)
    findings = found.run.findings
    assert [finding.name for finding in findings] == NAMES
    assert all(finding.sentences for finding in (*findings, *found.forecast.findings))
    drawn = {finding.name for finding in findings if finding.pictures}
    assert drawn == set(NAMES) - absent - {"forecast"}
    write_explanation(found, tmp_path / "out")
    files = {path.name for path in (tmp_path / "out").iterdir()}
    endings = ("png", "svg", "csv")
    assert files == {INDEX, FORECAST_PAGE, SUMMARY} | {f"{name}.{end}" for name in found.pictures for end in endings}
    assert drawn | {"forecast-readings", "forecast-next"} <= set(found.pictures)
    summary = json.loads((tmp_path / "out" / SUMMARY).read_text())
    assert summary == json.loads(json.dumps(found.summary, allow_nan=False))
    assert summary["windows"] == 8 and list(summary["findings"]) == NAMES


def test_what_a_protocol_filled_counts_as_missing(tmp_path: Path) -> None:
    run = made_run(tmp_path / "run", river_panel().select(["g1", "g0"]))  # of which the first has gaps
    protocol = run.record.protocol.model_copy(update={"fill": "forward-backward", "targets": "filled"})
    filled = replace(run, record=run.record.model_copy(update={"protocol": protocol}))
    assert filled.task().panel.mask.all()
    found = explain_run(filled, windows=2)
    assert found.summary["sensor"] == "g0"
    forecast = explain_run(filled, sensor="g1", windows=2).forecast
    story = " ".join(sentence for finding in forecast.findings for sentence in finding.sentences)
    gone = ~run.task().panel.mask[-HISTORY - HORIZON : -HORIZON, 0]
    assert gone.any() and f"{gone.sum()} of {HISTORY} readings were missing and filled" in story
    left = run.task().panel.mask[-HORIZON:, 0].sum()
    assert f"What happened is known for {left} of {HORIZON} steps" in story


@pytest.fixture
def found(tmp_path: Path) -> RunExplanation:
    return explain_run(made_run(tmp_path / "run"), windows=2)


def test_an_explanation_takes_the_place_of_the_last_one_only(
    tmp_path: Path, found: RunExplanation, monkeypatch: pytest.MonkeyPatch
) -> None:
    def leave_empty(pictures: Mapping[str, object], folder: Path, _: object) -> None:
        for name in pictures:
            (folder / f"{name}.png").touch()

    monkeypatch.setattr("candor.render.explanation_page.write_figures", leave_empty)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    with pytest.raises(InputError, match="other things"):
        write_explanation(found, tmp_path / "mine")
    with pytest.raises(InputError, match="this is a file"):
        write_explanation(found, tmp_path / "mine" / "thesis.txt")
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["thesis.txt"]
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / SUMMARY).write_text('{"of": "another program"}')
    with pytest.raises(InputError, match="other things"):
        write_explanation(found, tmp_path / "other")
    write_explanation(found, tmp_path / "out")
    (tmp_path / "out" / "stale.png").write_text("old")
    write_explanation(found, tmp_path / "out")
    assert not (tmp_path / "out" / "stale.png").exists() and (tmp_path / "out" / INDEX).is_file()


def test_a_failure_leaves_the_last_explanation_as_it_was(
    tmp_path: Path, found: RunExplanation, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    earlier = '{"format": "candor-explained"}'
    (folder / SUMMARY).write_text(earlier)

    def fail(drawing: Drawing, place: Path, name: str) -> list[Path]:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Drawing, "write", fail)
    with pytest.raises(InputError, match="No space left"):
        write_explanation(found, folder)
    assert [path.name for path in tmp_path.iterdir() if path.name not in ("run", "out")] == []
    assert (folder / SUMMARY).read_text() == earlier


def test_wrong_questions_are_refused(tmp_path: Path) -> None:
    run = made_run(tmp_path / "run")
    for wrong, words in (
        ({"sensor": "g9"}, "no sensor called g9"),
        ({"time": "1999-01-01"}, "12 steps before it"),
        ({"time": "yesterday"}, "is not a time"),
    ):
        with pytest.raises(InputError, match=words):
            explain_run(run, windows=2, **wrong)
    with pytest.raises(InputError, match="a run of linear"):
        explain_run(load_run(make_run(tmp_path / "linear")))
    with pytest.raises(InputError, match="a run of linear"):
        run_pictures(load_run(tmp_path / "linear"))


@pytest.mark.usefixtures("quick")
def test_names_never_become_a_part_of_a_page(tmp_path: Path) -> None:
    panel = river_panel()
    sensors = tuple(Sensor(f"g{i}{EVIL}", f"{EVIL}{i}", unit=EVIL) for i in range(5))
    found = explain_run(made_run(tmp_path / "run", replace(panel, sensors=sensors, name=EVIL)), windows=2)
    write_explanation(found, tmp_path / "out")
    for name in (INDEX, FORECAST_PAGE):
        page = (tmp_path / "out" / name).read_text()
        assert "&lt;script&gt;" in page and not re.search(r"<\s*script", page)


def test_progress_has_one_name_and_never_goes_back(tmp_path: Path) -> None:
    heard: list[tuple[str, float]] = []
    explain_run(made_run(tmp_path / "run"), windows=20, report=lambda what, share: heard.append((what, share)))
    assert {what.partition(" | ")[0] for what, _ in heard} == {"explaining"}
    shares = [share for _, share in heard]
    assert shares == sorted(shares) and shares[0] == 0 and 0.9 < shares[-1] <= 1
