"""What the README shows is what happens."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer

import candor.runs.fit
from candor.cli import run
from candor.cli.app import app
from candor.presets import merge

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
# A small network that hardly learns: all that is printed of it but its scores is as in the README.
QUICK: dict[str, Any] = {
    "model": {"hidden": 8, "heads": 2, "forecast_width": 16, "head_width": 16},
    "training": {"epochs": 1, "epoch_windows": 64, "validation_windows": 16, "milestones": (), "curriculum": 0},
}
QUICK_SHARED: dict[str, Any] = {
    "sizes": {"width": 8, "mixed": 4, "rank": 2, "identity": 3, "clock": 4},
    "training": {"epochs": 1, "epoch_windows": 64, "validation_windows": 16},
    "networks": 2,
}
SCORE = re.compile(r"(< )?[\d,]*\.\d+")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```", README, flags=re.MULTILINE | re.DOTALL)


def blocks(kind: str) -> list[str]:
    return [text for language, text in BLOCKS if language == kind]


def sessions() -> list[dict[str, list[str]]]:
    """Returns for every block of commands what is shown after each of them."""
    found = []
    for block in blocks("console"):
        parts = re.split(r"^\$ (.*)\n", block, flags=re.MULTILINE)
        assert not parts[0]
        found.append({command: text.splitlines() for command, text in zip(parts[1::2], parts[2::2], strict=True)})
    return found


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Networks are trained in a second, whatever was chosen for them and said."""
    train = candor.runs.fit.train_model

    def train_quickly(panel: Any, protocol: Any, model: str, settings: dict[str, Any], *rest: Any, **more: Any) -> Any:
        if "recipe" in settings:
            settings = {**settings, "recipe": merge(settings["recipe"], QUICK)}
        if "shared" in settings:
            settings = {**settings, "shared": merge(settings["shared"], QUICK_SHARED)}
        return train(panel, protocol, model, settings, *rest, **more)

    monkeypatch.setattr(candor.runs.fit, "train_model", train_quickly)


@pytest.mark.usefixtures("unpainted")
def test_the_commands_run_and_print_what_is_shown(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, quick: None
) -> None:
    monkeypatch.chdir(tmp_path)
    demo = {"candor demo": "".join(blocks("")).splitlines()}
    assert [len(session) for session in sessions()] == [5]
    for command, shown in [pair for session in (demo, *sessions()) for pair in session.items()]:
        name, *arguments = shlex.split(command)
        assert name == "candor"
        code, streams = run(arguments), capsys.readouterr()
        assert code == 0, f"{command}\n{streams.err}"
        printed = streams.out + streams.err
        assert [line for line in shown if line != "..." and alike(line) not in alike(printed)] == [], command
        simple = [line for line in shown if line.startswith(("│ last", "│ seasonal", "│ historical", "│ linear"))]
        assert len(simple) == (4 if "demo" in command else 0)
        assert {errors_of(line) for line in simple} <= {errors_of(line) for line in printed.splitlines()}
    assert Path("runs/demo/report.html").is_file()


def indented_commands() -> list[str]:
    """Returns the commands that are listed, each with what it is for, and not shown with what they print."""
    return re.findall(r"^    (candor .*)$", README, flags=re.MULTILINE)


def test_commands_that_are_listed_are_understood() -> None:
    understood = set()
    for line in indented_commands():
        here: Any = typer.main.get_command(app)
        _, *rest = shlex.split(line, comments=True)
        while rest[0] in getattr(here, "commands", {}):
            here = here.commands[rest.pop(0)]
        with here.make_context("candor", rest) as context:
            understood.add(context.command.name)
    assert understood == {"explain", "report", "serve", "export"}


@pytest.mark.slow
def test_commands_that_are_listed_run_on_what_the_demo_leaves(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, quick: None
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["demo"]) == 0
    commands = [shlex.split(line, comments=True)[1:] for line in indented_commands()]
    done = [words for words in commands if words[1:2] == ["runs/demo/candor"] and words[0] != "serve"]  # would not end
    for words in done:
        assert run(words) == 0, words
    assert Path("klamath.zip").is_file()
    assert Path("runs/demo/candor/explained/index.html").is_file()
    assert Path("runs/demo/candor/report.html").is_file()


def alike(text: str) -> str:
    """Returns a text with its scores left out, and what only aligns them or breaks lines."""
    text = SCORE.sub("#", text).replace("-#", "#").replace("+#", "#").replace("# % above", "# % below")
    return re.sub(r"\s+", " ", re.sub(r"([━─])+", r"\1", text)).strip()


def errors_of(line: str) -> tuple[str, ...]:
    """Returns name, MAE and RMSE of a row: what does not depend on CANDOR."""
    return tuple(cell.strip() for cell in line.split("│")[1:4])


@pytest.mark.slow
def test_the_demo_reaches_what_is_shown_of_candor(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert run(["demo", "--out", str(tmp_path)]) == 0
    shown, reached = (scores_of("│ candor ", text) for text in (README, capsys.readouterr().out))
    for one, other, leeway in zip(shown, reached, (0.03, 0.05, 3.0, 4.0), strict=True):
        assert one == pytest.approx(other, abs=leeway)  # machines feed the network differently


def scores_of(beginning: str, text: str) -> list[float]:
    """Returns the numbers of the first row that begins so."""
    row = next(line for line in text.splitlines() if line.startswith(beginning))
    return [float(cell.strip(" %")) for cell in row.split("│")[2:-1] if cell.strip()]


def test_the_python_examples_print_what_their_comments_say(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    code = "".join(blocks("python"))
    asked = "Candor(history=28, horizon=14)"
    assert asked in code
    quick = f"Candor(history=28, horizon=14, shared={QUICK_SHARED})"
    exec(code.replace(asked, quick), {"__name__": "__main__"})
    expected = re.findall(r"^print\(.*?  # (.*)$", code, flags=re.MULTILINE)
    assert len(expected) == 3
    for said, printed in zip(expected, capsys.readouterr().out.splitlines(), strict=True):
        assert said.startswith(printed)


def test_pictures_and_pages_that_are_linked_are_there() -> None:
    linked = [target for target in re.findall(r"\]\(([^)\s]+)\)", README) if not re.match(r"[a-z]+:", target)]
    assert "docs/images/page.png" in linked
    for target in linked:
        assert (Path(__file__).parents[1] / target.partition("#")[0]).is_file(), target


def test_every_make_target_named_is_there() -> None:
    makefile = (Path(__file__).parents[1] / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"make ([a-z-]+)", README):
        assert f"\n{target}:" in makefile, target
