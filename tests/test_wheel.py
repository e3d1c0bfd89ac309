"""The wheel holds everything: installed away from the repository, the main job runs."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from candor.presets import preset_names

REPOSITORY = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel installed into it."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder / "dist")]
    subprocess.run(build, cwd=REPOSITORY, check=True, capture_output=True)
    (wheel,) = (folder / "dist").glob("candor_forecast-*.whl")
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--no-compile", "--target"]
    subprocess.run([*install, str(folder / "site"), str(wheel)], check=True, capture_output=True)
    return folder / "site"


def run_outside(site: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(site)}
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_presets_bundled_data_and_types_are_in_the_wheel(site: Path, tmp_path: Path) -> None:
    code = (
        "import candor, candor.presets as presets\n"
        "from pathlib import Path\n"
        "print(Path(candor.__file__).parent)\n"
        "print(len(presets.preset_names()), presets.load_preset('metr-la').protocol.horizon)\n"
        "print(*(candor.load_dataset(name).values.shape for name in ('klamath-daily', 'klamath-daily-min')))\n"
        "print((Path(candor.__file__).parent / 'py.typed').is_file())\n"
    )
    done = run_outside(site, tmp_path, "-c", code)
    assert done.returncode == 0, done.stderr
    place, presets, shapes, typed = done.stdout.splitlines()
    assert Path(place) == site / "candor"
    assert presets == f"{len(preset_names())} 12"
    assert shapes == "(4086, 11) (4086, 11)"
    assert typed == "True"


def test_page_report_and_the_shipped_model_are_in_the_wheel(site: Path) -> None:
    package = REPOSITORY / "src" / "candor"
    folders = ("runs/bundle/demo", "render", "service/static")
    found = (path for folder in folders for path in (package / folder).rglob("*") if path.is_file())
    wanted = {path.relative_to(package).as_posix() for path in found if path.suffix not in (".py", ".pyc")}
    demo = "runs/bundle/demo/klamath-daily"
    assert {
        "render/report/report.js",
        "render/page.css",
        f"{demo}/manifest.json",
        f"{demo}/model/state.safetensors",
    } <= wanted
    assert {f"service/static/{name}" for name in ("index.html", "main.js", "base.css", "icon.svg")} <= wanted
    for name in wanted:
        assert (site / "candor" / name).read_bytes() == (package / name).read_bytes(), name


@pytest.mark.slow
def test_a_dataset_is_learned_from_the_wheel(site: Path, tmp_path: Path) -> None:
    done = run_outside(site, tmp_path, "-m", "candor", "train", "klamath-daily", "--model", "linear", "--run", "run")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "run" / "model" / "state.safetensors").is_file()


@pytest.mark.slow
def test_the_demo_runs_from_the_wheel(site: Path, tmp_path: Path) -> None:
    quick = ("epochs=1", "hidden=8", "heads=2", "forecast_width=16", "head_width=16")
    done = run_outside(site, tmp_path, "-m", "candor", "demo", "--out", "demo", *quick)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "demo" / "forecast.csv").is_file()
    assert (tmp_path / "demo" / "candor" / "figures" / "forecast.png").is_file()


def test_the_wheel_carries_licence_and_command_and_nothing_of_the_tests(site: Path) -> None:
    (wheel,) = (site.parent / "dist").glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert any(name.endswith("entry_points.txt") for name in names)
    assert not [name for name in names if any(part == "tests" or part.startswith("test_") for part in name.split("/"))]
    assert {name.split("/")[0] for name in names} == {"candor", wheel.name.split("-py3")[0] + ".dist-info"}
