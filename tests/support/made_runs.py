"""Run directories for tests of commands, made without the command that trains."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from candor.core.files import atomic_folder
from candor.data.panel import Panel, Sensor
from candor.data.protocol import Protocol, make_task
from candor.forecasting import forecasters
from candor.forecasting.contract import sample_panel
from candor.runs.run import save_run

PROTOCOL = Protocol(history=24, horizon=6)
_KNOWN: dict[str | None, dict[Path, bytes]] = {}


def river() -> Panel:
    """Returns hourly readings of five gauges in Berlin: one with gaps, one silent at the end, one dead, in metres."""
    panel = sample_panel()
    names = ("Upper weir", "", "Old mill [broken]", "", "Mouth")
    sensors = tuple(Sensor(f"g{i}", name, unit="m") for i, name in enumerate(names))
    return replace(panel, sensors=sensors, name="river")


def make_run(
    folder: Path, model: str = "linear", protocol: Protocol = PROTOCOL, panel: Panel | None = None, **settings: Any
) -> Path:
    """Returns the folder of a run of a simple model on the river, in place of all that is there.

    Most tests ask for the same run: on the river itself it is fitted once, and written again from memory.
    """
    key = None if panel is not None else f"{model} {protocol!r} {sorted(settings.items())!r}"
    if key in _KNOWN:
        with atomic_folder(folder) as temporary:
            for name, content in _KNOWN[key].items():
                (temporary / name).parent.mkdir(exist_ok=True)
                (temporary / name).write_bytes(content)
        return folder
    panel = panel or river()
    task = make_task(panel, protocol)
    forecaster = forecasters.get(model)(history=protocol.history, horizon=protocol.horizon, **settings)
    save_run(folder, forecaster.fit(task.panel, task.split), panel, protocol, is_catalogued=False)
    if key is not None:
        files = (path for path in folder.rglob("*") if path.is_file())
        _KNOWN[key] = {path.relative_to(folder): path.read_bytes() for path in files}
    return folder


def readings_of(panel: Panel) -> pd.DataFrame:
    """Returns the readings as a stranger would write them: the local clock without an offset, a column per sensor."""
    table = panel.to_frame()
    table.index = table.index.tz_localize(None)
    return table.reset_index(names="time")
