"""More clients than the service can bear are told to come back; the others are served, and nothing breaks."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

_LOAD = Path(__file__).parents[2] / "benchmarks" / "load.py"


def press(url: str, *options: object) -> dict[str, Any]:
    """Returns what the clients of the benchmark met; they live in a process of their own."""
    done = subprocess.run(
        [sys.executable, str(_LOAD), url, *map(str, options)], capture_output=True, text=True, check=True, timeout=600
    )
    return json.loads(done.stdout)


def test_some_clients_for_a_moment_see_nothing_break(start, candor_run: Path) -> None:
    service = start(candor_run, most_waiting=8)
    met = press(service.url, "--clients", 20, "--seconds", 0.7)
    assert set(met["statuses"]) <= {"200", "429"}
    assert met["statuses"]["200"] > 0
    assert not met["failures"]


def test_a_service_that_accepts_nothing_is_summarised_too() -> None:
    met = press("http://127.0.0.1:1", "--clients", 1, "--seconds", 0.1)  # nobody listens there
    assert met["latency_seconds"] is None and met["statuses"] == {} and met["accepted_per_second"] == 0
    assert met["failures"]["ConnectionRefusedError"] > 0


def test_the_recorded_figures_keep_the_promises_and_are_the_ones_told() -> None:
    met = json.loads((_LOAD.parent / "results" / "load.json").read_text(encoding="utf-8"))
    latency, memory = met["latency_seconds"], met["memory_mb"]
    assert (met["clients"], met["seconds"]) == (500, 60)
    assert set(met["statuses"]) == {"200", "429"} and not met["failures"]
    assert latency["p99"] <= 5 * latency["median"] and max(memory) <= 1.1 * min(memory)
    told = " ".join((_LOAD.parent / "README.md").read_text(encoding="utf-8").split())
    assert f"{met['statuses']['200']:,} accepted and {met['statuses']['429']:,} told to come back" in told
    assert f"median {latency['median']:.2f} s, 99th hundredth {latency['p99']:.2f} s" in told
    assert f"between {min(memory):.1f} and {max(memory):.1f} MB" in told


@pytest.mark.slow
def test_five_hundred_clients_for_a_minute(command, candor_run: Path, tmp_path: Path) -> None:
    service = command("-m", "candor", "serve", candor_run, "--port", "0", "--store", tmp_path / "store")
    address = service.stdout.readline().split()[2]
    press(address, "--clients", 500, "--seconds", 5)  # what is built once is built
    met = press(address, "--clients", 500, "--seconds", 60, "--process", service.pid)
    assert set(met["statuses"]) <= {"200", "429"} and met["statuses"]["200"] > 100
    assert not met["failures"]
    assert met["memory_mb"][-1] <= 1.1 * met["memory_mb"][0]
