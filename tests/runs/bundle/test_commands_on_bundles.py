"""Commands take a bundle as they take a run: checked first, and left as it was exported."""

import json
import shutil
from pathlib import Path

import pytest
from made_readings import made_run

from candor.cli import run as candor
from candor.core.errors import InputError
from candor.core.files import sha256_of_file
from candor.runs.bundle import results_folder, write_bundle
from candor.runs.run import Run

WRITTEN = {
    "report": "report.html",
    "evaluate": "evaluation.json",
    "backtest": "backtest.json",
    "explain": "explained/index.html",
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run of CANDOR, which every command takes, with its scores."""
    made = made_run(tmp_path_factory.mktemp("made") / "run")
    assert candor(["evaluate", str(made.folder)]) == 0
    return made


@pytest.fixture(scope="module")
def made(run: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a bundle of the whole record, and with its file."""
    folder = tmp_path_factory.mktemp("bundles")
    write_bundle(run, folder / "given.zip", "all")
    write_bundle(run, folder / "bundle", "all")
    return folder


@pytest.fixture(autouse=True)
def bundle(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a bundle where the commands are given, and its file beside it."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    return tmp_path / "bundle"


def contents(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): sha256_of_file(path) for path in folder.rglob("*") if path.is_file()}


def arguments(command: str) -> list[str]:
    return {"explain": ["--windows", "2"], "backtest": ["--every", "24"]}.get(command, [])


@pytest.mark.parametrize(
    "command",
    [pytest.param(name, marks=pytest.mark.slow if name == "explain" else ()) for name in WRITTEN],
)
def test_a_bundle_forecasts_after_every_command_that_writes(bundle: Path, command: str) -> None:
    before = contents(bundle)
    assert candor([command, "bundle", *arguments(command)]) == 0
    assert contents(bundle) == before
    assert (Path("bundle-results") / WRITTEN[command]).is_file()
    assert candor(["forecast", "bundle"]) == 0


def test_explanations_have_their_place_beside_a_bundle(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[Path] = []

    def write(found: None, folder: Path, *_: object) -> None:  # instead of half a minute of drawing
        written.append(folder)
        raise InputError("no ink")

    monkeypatch.setattr("candor.explain.run.explain_run", lambda *_: None)
    monkeypatch.setattr("candor.render.explanation_page.write_explanation", write)
    for source in ("bundle", "given.zip"):
        assert candor(["explain", source]) == 2
        assert written.pop() == Path(f"{source}-results") / "explained"


def test_what_is_made_of_a_file_lies_beside_it_too(run: Run) -> None:
    assert candor(["evaluate", "given.zip"]) == 0
    assert candor(["report", "given.zip", "--out", "mine.html"]) == 0
    assert Path("mine.html").is_file()
    results = Path("given.zip-results")
    assert [path.name for path in results.iterdir()] == ["evaluation.json"]
    scores = [json.loads((folder / "evaluation.json").read_text()) for folder in (run.folder, results)]
    assert scores[0] == scores[1]


def test_a_run_keeps_its_results_inside(run: Run) -> None:
    assert candor(["backtest", str(run.folder), "--every", "24"]) == 0
    assert (run.folder / "backtest.json").is_file()
    assert not run.folder.with_name("run-results").exists()


def test_the_folder_of_results_is_named_after_the_bundle_however_that_is_named(
    bundle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path in (bundle, Path("bundle"), Path("bundle") / "model" / ".."):
        assert results_folder(path).resolve() == bundle.with_name("bundle-results")
    shutil.copytree(bundle, "model.v2")
    assert results_folder(Path("model.v2")) == Path("model.v2-results")
    shutil.copytree(bundle, "given")  # beside given.zip, which may hold another model
    assert results_folder(Path("given")) == Path("given-results")
    assert results_folder(Path("given.zip")) == Path("given.zip-results")
    monkeypatch.chdir(bundle)
    assert results_folder(Path()) == bundle.with_name("bundle-results")


@pytest.mark.parametrize("command", [*WRITTEN, "forecast", "export"])
def test_a_damaged_bundle_is_refused_by_every_command(
    bundle: Path, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    weights = bundle / "model" / "state.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1  # one bit of one weight, which forecasts would not show
    weights.write_bytes(content)
    more = ["--out", "model.onnx"] if command == "export" else []
    assert candor([command, "bundle", *more]) == 2
    told = " ".join(capsys.readouterr().err.split())
    assert "the bundle is damaged" in told and "state.safetensors" in told
    assert not Path("bundle-results").exists()


def test_a_bundle_is_shown_as_the_run_it_was_made_from(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    shown = []
    for path in (run.folder, Path("bundle"), Path("given.zip")):
        assert candor(["runs", "show", str(path), "--json"]) == 0
        shown.append(json.loads(capsys.readouterr().out))
        assert shown[-1].pop("run") == str(path)
    assert shown[0] == shown[1] == shown[2] and shown[0]["test_mae"] is not None and shown[0]["settings"]
    Path("notes.txt").write_text("no bundle")
    assert candor(["runs", "show", "notes.txt"]) == 2
    assert "notes.txt" in capsys.readouterr().err


def test_scripts_are_told_the_bundle_they_named(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("bundle", "given.zip"):
        assert candor(["forecast", name, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["run"] == name
