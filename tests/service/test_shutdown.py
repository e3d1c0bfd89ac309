"""A service that is told to stop answers what it accepted, refuses what comes after, and leaves with 0."""

import signal
import threading
import time
from pathlib import Path

import httpx

PATIENCE = 120
SCRIPT = Path(__file__).parent / "serve_slowly.py"


def test_a_busy_service_ends_with_the_last_answer_and_an_idle_one_at_once(command, linear_run, tmp_path: Path) -> None:
    """One process serves twice: it would not come to the second service if the first did not end well."""
    go_on = tmp_path / "go"
    service = command(SCRIPT, linear_run, tmp_path / "store", go_on)
    stop_while_it_forecasts(service, go_on)
    with httpx.Client(base_url=service.stdout.readline().strip(), timeout=PATIENCE, trust_env=False) as client:
        assert client.get("/readyz").status_code == 200  # this connection stays open
        service.send_signal(signal.SIGINT)
        service.send_signal(signal.SIGTERM)  # a second signal does no harm
        _, err = service.communicate(timeout=PATIENCE)
    assert service.returncode == 0, err
    assert "Traceback" not in err


def stop_while_it_forecasts(service, go_on: Path) -> None:
    """Accepted requests are answered and new ones refused."""
    client = httpx.Client(base_url=service.stdout.readline().strip(), timeout=PATIENCE, trust_env=False)
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
        time.sleep(0.5)  # several looks at whether to end: while one is inside, it goes on to say so to those outside
        assert client.get("/readyz").status_code == 503 and service.poll() is None
        go_on.touch()
        waiting.join(PATIENCE)
    assert answers[0].status_code == 200 and answers[0].json()["forecasts"]


def wait_until(is_so) -> None:
    deadline = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < deadline, "it never came to pass"
        time.sleep(0.02)
