"""What was acknowledged is there again, whatever happened since."""

import errno
import os
import shutil
import sqlite3
import threading
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import httpx
import numpy as np
import pytest
from forked import Forked
from made_runs import make_run, river

from candor import cli
from candor.core.errors import InputError
from candor.data.protocol import Protocol
from candor.runs.bundle import demo_bundle
from candor.runs.run import load_run
from candor.service.metrics import Metrics
from candor.service.models import Models, ServedModel, open_models
from candor.service.server import store_file
from candor.service.settings import ServiceSettings
from candor.service.store import Reading, ReadingStore


@pytest.fixture
def namesakes(tmp_path: Path, linear_run: Path) -> tuple[Path, Path]:
    """Two runs in folders of the same name."""
    for home in ("one", "two"):
        shutil.copytree(linear_run, tmp_path / home / "candor")
    return tmp_path / "one" / "candor", tmp_path / "two" / "candor"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "store.sqlite"


def content(store: ReadingStore) -> list[tuple[str, int, float | None]]:
    found = store.between(-(10**15), 10**15)
    values = [None if value != value else float(value) for value in found.values]
    return list(zip(found.sensors, found.moments.tolist(), values, strict=True))


def opened(sources: Sequence[Path], folder: Path | None) -> Models:
    return open_models(sources, ServiceSettings(), Metrics(), lambda source: store_file(source, folder))


def keep(sources: Sequence[Path], folder: Path | None, name: str, value: float) -> None:
    """Stores one reading of a model while these are served."""
    models = opened(sources, folder)
    models.served[name].store.append([Reading("g0", 1, value)])
    models.close()


def kept(sources: Sequence[Path], folder: Path | None) -> list[list[float | None]]:
    """Returns the readings of each model when these are served."""
    models = opened(sources, folder)
    found = [[value for _, _, value in content(served.store)] for served in models.served.values()]
    models.close()
    return found


def test_readings_are_there_after_the_store_was_closed(file: Path) -> None:
    store = ReadingStore(file)
    assert store.append([Reading("a", 5, 1.5), Reading("b", 5, None), Reading("a", -7, 2.0)]) == 0
    expected = [("a", -7, 2.0), ("a", 5, 1.5), ("b", 5, None)]
    assert content(store) == expected
    store.close()
    again = ReadingStore(file)
    assert content(again) == expected
    again.close()


def test_the_last_of_a_kind_counts_and_replaced_ones_are_counted(file: Path) -> None:
    store = ReadingStore(file)
    assert store.append([Reading("a", 1, 1.0), Reading("a", 1, 2.0), Reading("a", 2, 1.0)]) == 1
    assert store.append([Reading("a", 1, 3.0), Reading("b", 1, 1.0)]) == 1
    assert content(store) == [("a", 1, 3.0), ("b", 1, 1.0), ("a", 2, 1.0)]
    store.close()


def test_spans_look_at_readings_that_are_there(file: Path) -> None:
    store = ReadingStore(file)
    assert store.span("ab") is None and store.span(["a"]) is None
    store.append([Reading("a", 3, 1.0), Reading("a", 9, None), Reading("b", 1, None), Reading("b", 5, 2.0)])
    assert store.span("ab") == (3, 5)
    assert store.span(["a"]) == (3, 3)
    assert store.span(["b"]) == (5, 5)
    assert store.span(["c"]) is None and store.span([]) is None
    found = store.between(3, 9)
    assert found.moments.tolist() == [3, 5]
    store.close()


def test_a_commit_is_on_disk_before_it_is_acknowledged(file: Path) -> None:
    store = ReadingStore(file)
    (mode,) = store._database.execute("PRAGMA journal_mode").fetchone()
    (level,) = store._database.execute("PRAGMA synchronous").fetchone()
    assert (mode, level) == ("wal", 2)  # 2 is FULL
    store.append([Reading("a", 1, 1.0)])
    # Another reader, such as a service that starts after a kill, sees it while the first still has the file open.
    with sqlite3.connect(file) as other:
        assert other.execute("SELECT value FROM readings").fetchall() == [(1.0,)]
    other.close()
    store.close()


def test_what_another_stored_in_the_same_file_is_noticed(file: Path) -> None:
    store, other = ReadingStore(file), ReadingStore(file)
    opened, before = store.changed, other.changed
    other.append([Reading("a", 1, 1.0)])
    assert store.changed > opened and other.changed > before
    assert store.changed == store.changed  # and once only
    store.close()
    other.close()


def test_units_may_not_change_once_a_reading_is_stored(file: Path) -> None:
    store = ReadingStore(file)
    store.check_units({"a": "ft", "b": "mg/L"})
    store.check_units({"a": "m", "c": ""})
    store.append([Reading("a", 1, 1.0)])
    store.check_units({"a": "m", "b": "ug/L"})
    with pytest.raises(InputError, match="stored in 'm', the model is in 'ft'"):
        store.check_units({"a": "ft"})
    store.append([Reading("b", 1, 1.0)])
    for spelling in ("ug/l", "µg/L", "ug/L"):  # the same unit, as another model spells it
        store.check_units({"b": spelling})
    with pytest.raises(InputError, match="stored in 'ug/L', the model is in 'mg/L'"):
        store.check_units({"b": "mg/L"})
    store.close()


def test_many_threads_lose_nothing(file: Path) -> None:
    store = ReadingStore(file)

    def write(sensor: str) -> None:
        for moment in range(20):
            store.append([Reading(sensor, moment, float(moment))])
            store.between(0, 20)

    writers = [threading.Thread(target=write, args=(f"s{number}",)) for number in range(6)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert len(content(store)) == 120
    store.close()


def test_what_is_no_store_is_refused_in_plain_words(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("this is no database, " * 100)
    (tmp_path / "folder").mkdir()
    with sqlite3.connect(tmp_path / "newer") as newer:
        newer.execute("PRAGMA user_version=99")
    newer.close()
    for name in ("text", "folder", "newer", "text/below"):
        with pytest.raises(InputError, match="cannot be stored here"):
            ReadingStore(tmp_path / name)


def test_a_newer_model_that_cannot_be_served_leaves_the_units_alone(namesakes, tmp_path: Path, monkeypatch) -> None:
    models = opened(namesakes[:1], tmp_path / "shared")
    (served,) = models.served.values()
    path = namesakes[0] / "model" / "model.json"
    path.write_text(path.read_text().replace('"unit": "m"', '"unit": "ft"'))

    def fail(*_: object) -> None:
        raise InputError("it cannot forecast")

    monkeypatch.setattr(ServedModel, "_try_out", fail)
    served.reload_if_changed()
    served.store.append([Reading("g0", 1, 1.0)])  # what the old model, which goes on, was sent
    with pytest.raises(InputError, match="stored in 'm', the model is in 'ft'"):
        served.store.check_units({"g0": "ft"})
    models.close()


def test_a_drive_that_is_away_for_a_moment_changes_nothing(namesakes, tmp_path: Path, monkeypatch) -> None:
    models = opened(namesakes[:1], tmp_path / "shared")
    (served,) = models.served.values()
    before = served.loaded

    def fail(*_: object, **__: object) -> None:
        raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))

    with monkeypatch.context() as away:
        away.setattr(Path, "is_file", fail)
        away.setattr(Path, "stat", fail)
        served.reload_if_changed()
    assert served.loaded is before
    served.reload_if_changed()
    assert served.loaded is not before and served.loaded.version == before.version
    models.close()


def test_gaps_that_a_protocol_fills_are_no_readings(tmp_path: Path) -> None:
    protocol = Protocol(history=24, horizon=6, fill="forward-backward", targets="filled")
    run = make_run(tmp_path / "run", protocol=protocol)
    models = opened([run], tmp_path / "store")
    loaded, filled = models.served["run"].loaded, load_run(run).task().panel
    np.testing.assert_array_equal(loaded.record.rows(0, 600).values, river().values)
    assert filled.mask.all()
    ours, theirs = (loaded.forecaster.predict(panel) for panel in (loaded.recent(600), filled))
    np.testing.assert_allclose(ours, theirs, rtol=1e-6)
    models.close()


@pytest.mark.parametrize("shared", [None, "shared"])
def test_readings_stay_with_their_run_whatever_is_served_beside_it(namesakes, tmp_path: Path, shared) -> None:
    folder = None if shared is None else tmp_path / shared
    one, two = namesakes
    keep([one, two], folder, "candor-2", 2.0)
    assert kept([two], folder) == [[2.0]]
    assert kept([one], folder) == [[]]
    keep([one], folder, "candor", 1.0)
    assert kept([two, one], folder) == [[2.0], [1.0]]
    assert kept([one, two], folder) == [[1.0], [2.0]]
    assert kept([two.parent / ".." / "two" / "candor"], folder) == [[2.0]]  # other ways to the same run
    assert kept([two / "model" / ".."], folder) == [[2.0]]


def test_readings_stay_when_a_link_leads_to_another_run(namesakes, tmp_path: Path) -> None:
    current = tmp_path / "current"
    for number, run in enumerate(namesakes):
        current.symlink_to(run)
        for folder in (None, tmp_path / "shared"):
            assert kept([current], folder) == ([[]] if number == 0 else [[5.0]])
            keep([current], folder, "current", 5.0)
        current.unlink()


def send_until_killed(service: Forked) -> list[int]:
    """Kills a service while readings are sent to it, and returns those that it acknowledged."""
    address = service.stdout.readline().split()[2]
    acknowledged: list[int] = []
    has_some = threading.Event()

    def send() -> None:
        with httpx.Client(base_url=address, timeout=120, trust_env=False) as client:
            for number in range(100_000):
                reading = {"time": "2024-02-01T00:00Z", "sensor": "g0", "value": number}
                reading["time"] = np.datetime_as_string(np.datetime64("2024-02-01T00:00") + number) + "Z"
                try:
                    answer = client.post("/v1/readings", json={"readings": [reading]})
                except httpx.HTTPError:
                    return  # it was killed
                assert answer.status_code == 200, answer.text
                acknowledged.append(number)
                if number >= 20:
                    has_some.set()

    sender = threading.Thread(target=send)
    sender.start()
    assert has_some.wait(120)
    service.kill()
    sender.join()
    service.wait()
    return acknowledged


def test_a_kill_loses_no_acknowledged_reading(linear_run: Path, tmp_path: Path) -> None:
    arguments = ["serve", str(linear_run), "--port", "0", "--store", str(tmp_path / "store")]
    with Forked(partial(cli.run, arguments), tmp_path) as service:
        acknowledged = send_until_killed(service)
    (file,) = (tmp_path / "store").glob("plain-*.sqlite")
    store = ReadingStore(file)
    kept = [value for _, _, value in content_of_all(store)]
    store.close()
    assert set(acknowledged) <= set(kept)
    assert len(kept) <= len(acknowledged) + 1  # one more may have been on its way


def content_of_all(store: ReadingStore) -> list[tuple[str, int, float | None]]:
    found = store.between(0, 2**62)
    return list(zip(found.sensors, found.moments.tolist(), found.values.tolist(), strict=True))


def test_the_demo_keeps_its_readings_with_the_user_and_others_beside_the_run(tmp_path: Path) -> None:
    (tmp_path / "run.zip").touch()
    for name in ("run", "run.zip"):
        assert store_file(tmp_path / name, None) == tmp_path / ".candor-service" / f"{name}.sqlite"
    found = store_file(demo_bundle(), None)
    assert demo_bundle().parents[2] not in found.parents and found.parent.name == "service"
    assert store_file(demo_bundle(), tmp_path).parent == tmp_path
