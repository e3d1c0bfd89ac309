"""Progress: the time left is shown however slow the work is, and a log gets a line now and then."""

import re

import pytest

from candor.cli.screen import progress, say, tell


class FakeClock:
    """A clock that is put forward by hand."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def work(clock: FakeClock, steps: int, of: int, seconds: float, name: str = "fetching") -> None:
    """Reports steps of a work that take equally long."""
    with progress(clock) as report:
        for step in range(steps + 1):
            report(f"{name} | {name}: {step} of {of} answers", step / of)
            clock.now += seconds if step < steps else 0.0


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal that is wide enough for everything."""
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "160")


@pytest.mark.usefixtures("terminal")
@pytest.mark.parametrize(
    ("seconds", "left"),
    [(1.0, "0:00:15"), (60.0, "0:15:00"), (600.0, "2:30:00")],
)
def test_the_bar_shows_the_time_left_also_where_steps_are_minutes_apart(capsys, seconds: float, left: str) -> None:
    work(FakeClock(), steps=5, of=20, seconds=seconds)
    last_drawing = capsys.readouterr().err.split("fetching: 5 of 20 answers")[-1]
    spent = "0:" + f"{int(5 * seconds) // 60:02d}:{int(5 * seconds) % 60:02d}"
    assert re.findall(r"\d:\d\d:\d\d", last_drawing)[:2] == [spent, left]
    assert "25%" in last_drawing


@pytest.mark.usefixtures("terminal")
def test_the_bar_shows_the_share_also_where_it_becomes_known_later(capsys) -> None:
    with progress(FakeClock()) as report:
        report("growing [trees]", None)
        report("growing [trees]", 0.4)
    last_drawing = capsys.readouterr().err.split("growing [trees]")[-1]
    assert "40%" in last_drawing


def work_again(clock: FakeClock) -> None:
    """Does the same work twice, with other work between, and begins with it once more."""
    with progress(clock) as report:
        for _ in range(2):
            for step in range(5):
                report("asking", step / 4)
                clock.now += 60
            report("reading", 1.0)
        report("asking", 0.0)
        for share in (0.25, 0.5):
            clock.now += 120
            report("asking", share)


@pytest.mark.usefixtures("terminal")
def test_a_bar_that_is_used_again_is_seen_and_counts_its_time_anew(capsys) -> None:
    work_again(FakeClock())
    last_drawing = capsys.readouterr().err.split("asking")[-1]
    assert "50%" in last_drawing and re.findall(r"\d:\d\d:\d\d", last_drawing)[:2] == ["0:04:00", "0:04:00"]


def test_lines_about_work_that_begins_again_count_its_time_anew(capsys) -> None:
    work_again(FakeClock())
    lines = capsys.readouterr().err.splitlines()
    once = ["asking, 25 %, about 0:03:00 left", "asking, 50 %, about 0:02:00 left", "asking, 75 %, about 0:01:00 left"]
    once += ["asking, 100 %"]
    slower = ["asking, 25 %, about 0:06:00 left", "asking, 50 %, about 0:04:00 left"]
    assert [line for line in lines if "asking" in line] == [*once, *once, *slower]


def test_lines_say_names_letter_by_letter(capsys) -> None:
    say(" flow[daily].csv: [/red] not done", label="failed", colour="red")
    tell("candor evaluate runs/flow[daily]-candor")
    streams = capsys.readouterr()
    assert streams.err == "failed flow[daily].csv: [/red] not done\n"
    assert streams.out == "candor evaluate runs/flow[daily]-candor\n"


def test_quick_work_leaves_no_line_in_a_log(capsys) -> None:
    work(FakeClock(), steps=99, of=99, seconds=0.1)
    assert capsys.readouterr().err == ""


def test_long_work_leaves_a_line_for_every_tenth_with_the_time_left(capsys) -> None:
    work(FakeClock(), steps=1000, of=1000, seconds=3.0)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "fetching: 100 of 1000 answers, 10 %, about 0:45:00 left"
    assert lines[-1] == "fetching: 1000 of 1000 answers, 100 %"
    assert len(lines) == 10


def test_lines_are_ten_seconds_apart_at_least_and_ten_minutes_at_most(capsys) -> None:
    work(FakeClock(), steps=40, of=40, seconds=0.5)
    assert len(capsys.readouterr().err.splitlines()) == 2
    work(FakeClock(), steps=100, of=100_000, seconds=60.0)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 10 and lines[0] == "fetching: 10 of 100000 answers, 0 %, about 69 days, 10:30:00 left"


def test_work_that_goes_on_where_it_was_is_judged_by_what_it_does_now(capsys) -> None:
    clock = FakeClock()
    with progress(clock) as report:
        report("fetching", 0.8)
        clock.now += 100
        report("fetching", 0.9)
    assert capsys.readouterr().err == "fetching, 90 %, about 0:01:40 left\n"


def test_work_of_unknown_length_is_told_of_by_name_and_markup_is_left_alone(capsys) -> None:
    clock = FakeClock()
    with progress(clock) as report:
        for _ in range(3):
            report("reading [data] | reading [data]: a pause of 780 s", None)
            clock.now += 700
    assert capsys.readouterr().err == "reading [data]: a pause of 780 s\n" * 2
