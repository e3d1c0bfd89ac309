"""A service that is told to stop answers what it accepted, refuses what comes after, and leaves with 0."""

import signal
import threading
import time
from functools import partial
from pathlib import Path

import httpx
from forked import Forked

from candor.service import batching
from candor.service.server import serve
from candor.service.settings import ServiceSettings

TIMEOUT = 120


def serve_slowly(run: Path, store: Path, go_on: Path) -> None:
    """Serves until a signal comes, and then once more.

    A forecast that has begun leaves a file beside `go_on`, and waits for that to be there.
    """
    forecast_windows = batching.forecast_windows

    def forecast(*arguments):
        Path(f"{go_on}.begun").touch()
        wait_until(go_on.exists)
        return forecast_windows(*arguments)

    batching.forecast_windows = forecast
    for _ in range(2):
        serve([run], ServiceSettings(port=0, store=store), lambda address: print(address, flush=True))


def test_a_busy_service_ends_with_the_last_answer_and_an_idle_one_at_once(linear_run: Path, tmp_path: Path) -> None:
    """One process serves twice: it would not come to the second service if the first did not end well."""
    go_on = tmp_path / "go"
    with Forked(partial(serve_slowly, linear_run, tmp_path / "store", go_on), tmp_path) as service:
        stop_while_it_forecasts(service, go_on)
        stop_while_it_is_idle(service)


def stop_while_it_is_idle(service: Forked) -> None:
    """It ends at once, and well, though a connection is open."""
    with httpx.Client(base_url=service.stdout.readline().strip(), timeout=TIMEOUT, trust_env=False) as client:
        assert client.get("/readyz").status_code == 200  # this connection stays open
        service.send_signal(signal.SIGINT)
        service.send_signal(signal.SIGTERM)  # a second signal does no harm
        _, err = service.communicate()
    assert service.returncode == 0, err
    assert "Traceback" not in err


def stop_while_it_forecasts(service: Forked, go_on: Path) -> None:
    """Accepted requests are answered and new ones refused."""
    client = httpx.Client(base_url=service.stdout.readline().strip(), timeout=TIMEOUT, trust_env=False)
    answers: list[httpx.Response] = []
    with client:
        waiting = threading.Thread(target=lambda: answers.append(client.get("/v1/forecast/latest")))
        waiting.start()
        wait_until(Path(f"{go_on}.begun").exists)
        service.send_signal(signal.SIGTERM)
        wait_until(lambda: client.get("/readyz").status_code == 503)
        refused = client.get("/v1/models")
        assert (refused.status_code, refused.json()["error"]["code"]) == (503, "shutting_down")
        assert "retry-after" in refused.headers and refused.headers["connection"] == "close"
        assert client.post("/v1/readings", json={"readings": []}).status_code == 503
        assert client.get("/healthz").status_code == 200  # it is alive, and must not be killed
        time.sleep(0.1)  # several looks at whether to end: while one is inside, it goes on to say so to those outside
        assert client.get("/readyz").status_code == 503 and service.poll() is None
        go_on.touch()
        waiting.join(TIMEOUT)
    assert answers[0].status_code == 200 and answers[0].json()["forecasts"]


def wait_until(is_so) -> None:
    deadline = time.monotonic() + TIMEOUT
    while not is_so():
        assert time.monotonic() < deadline, "it never came to pass"
        time.sleep(0.02)
