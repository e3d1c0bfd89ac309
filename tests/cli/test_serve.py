"""`candor serve`: starts on what is a run, and says in plain words what is not."""

import shutil
import signal
import socket
import subprocess
import sys
from functools import partial
from pathlib import Path

import httpx
import pytest
from forked import Forked
from made_runs import make_run

from candor import cli as candor_cli


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("runs") / "gauges")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "nothing to serve"),
        (("nowhere",), "not a run directory"),
        (("photo.jpg",), "not a bundle"),
        (("RUN", "--host", "0.0.0.0"), "there is no token"),
        (("RUN", "--host", "no.such.host.invalid"), "no network address"),
        (("RUN", "--port", "70000"), "port"),
        (("RUN", "--token-file", "absent"), "token cannot be read"),
        (("RUN", "--set", "most_waiting=none"), "most_waiting"),
        (("RUN", "--set", "most_fun=1"), "most_fun"),
        (("RUN", "--set", "token=secret"), "token cannot be given by --set"),
        (("RUN", "--set", "host=0.0.0.0", "--set", "port=80"), "host, port cannot be given by --set"),
        (("RUN", "--set", "most_sensors=2"), "5 sensors"),
        (("RUN", "--store", "/dev/null/here"), "cannot be stored here"),
    ],
)
def test_what_cannot_be_served_is_refused_in_plain_words(candor, run: Path, monkeypatch, arguments, words) -> None:
    monkeypatch.delenv("CANDOR_TOKEN", raising=False)
    shutil.copytree(run, "gauges")
    Path("photo.jpg").write_bytes(b"\xff\xd8\xff\xe0 a river in the sun")
    before = set(Path().rglob("*"))
    shown = candor("serve", *("gauges" if argument == "RUN" else argument for argument in arguments))
    assert shown.code == 2, shown.err
    assert words in " ".join(shown.err.split())
    assert "Traceback" not in shown.err
    assert set(Path().rglob("*")) == before  # nothing was written on the way, least of all beside a run or a file


def test_a_port_that_is_taken_is_said(candor, run: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        shown = candor("serve", run, "--port", taken.getsockname()[1])
    assert shown.code == 2 and "cannot listen" in shown.err


@pytest.mark.parametrize("package", ["fastapi", "uvicorn", "prometheus_client"])
def test_a_missing_extra_names_the_command_that_installs_it(candor, run: Path, monkeypatch, package: str) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    shown = candor("serve", run)
    assert shown.code == 2
    assert "pip install 'candor-forecast[serve]'" in shown.err and package in shown.err


def test_help_does_not_wait_for_what_only_serving_needs() -> None:
    script = "import sys; from candor.cli import run; run(['--help']); print(sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "serve" in done.stdout
    for package in ("'fastapi'", "'uvicorn'", "'torch'", "'pandas'"):
        assert package not in done.stdout


def test_a_service_with_a_token_starts_serves_and_ends_with_0(run: Path, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("a-secret-word\n")
    command = ["serve", str(run), str(run), "--port", "0", "--token-file", "token"]
    with Forked(partial(candor_cli.run, command), tmp_path) as service:
        line = service.stdout.readline()
        assert line.startswith("serving at http://127.0.0.1:"), service.communicate()
        with httpx.Client(base_url=line.split()[2], timeout=120, trust_env=False) as client:
            assert client.get("/readyz").json()["models"] == ["gauges", "gauges-2"]
            assert client.get("/v1/models").status_code == 401
            known = {"authorization": "Bearer a-secret-word"}
            names = [model["name"] for model in client.get("/v1/models", headers=known).json()["models"]]
            assert names == ["gauges", "gauges-2"]
        service.send_signal(signal.SIGTERM)
        out, err = service.communicate()
        assert service.returncode == 0, err
        assert "a-secret-word" not in line + out + err


def test_the_model_that_comes_with_candor_is_served_also_openly_where_that_is_said(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.delenv("CANDOR_TOKEN", raising=False)
    openly = ["--host", "0.0.0.0", "--allow-open"]
    command = ["serve", "--demo", *openly, "--port", "0", "--store", "store"]
    with Forked(partial(candor_cli.run, command), tmp_path) as service:
        line = service.stdout.readline()
        assert line.startswith("serving at "), service.communicate()
        with httpx.Client(base_url=line.split()[2], timeout=120, trust_env=False) as client:
            (model,) = client.get("/v1/models").json()["models"]
            assert (model["unit"], model["sensors"], model["explains"]) == ("mg/L", 11, True)
            assert len(client.get("/v1/overview").json()["sensors"]) == 11
