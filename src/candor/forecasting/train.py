"""From a panel and the name of a model to a run directory."""

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from candor.data.panel import Panel
from candor.data.protocol import Protocol, make_task, suggest_protocol
from candor.forecasting.forecaster import forecasters
from candor.forecasting.runs import Run, save_run
from candor.presets import load_preset
from candor.progress import Report, silent
from candor.settings import parse_settings


def choose_protocol(panel: Panel, preset: str | None, overrides: Mapping[str, Any]) -> tuple[Protocol, dict[str, Any]]:
    """Returns the protocol of the preset, or one that fits the panel, with overrides; and the overrides left over."""
    protocol = load_preset(preset).protocol if preset else suggest_protocol(panel)
    for_protocol = {key: value for key, value in overrides.items() if key in Protocol.model_fields}
    rest = {key: value for key, value in overrides.items() if key not in Protocol.model_fields}
    return parse_settings(Protocol, protocol.model_dump() | for_protocol, "settings"), rest


def train_model(
    panel: Panel,
    protocol: Protocol,
    model: str,
    settings: Mapping[str, Any],
    folder: Path,
    *,
    seed: int = 0,
    is_catalogued: bool,
    report: Report = silent,
) -> Run:
    """Returns the run of a model fitted to a panel under a protocol."""
    kind = forecasters.get(model)
    known = {field.name for field in fields(kind)}
    shared = {"history": protocol.history, "horizon": protocol.horizon, "seed": seed, "fill": protocol.fill}
    own = {key: value for key, value in shared.items() if key in known}
    forecaster = parse_settings(kind, own | dict(settings), f"model {model}")
    task = make_task(panel, protocol)
    forecaster.fit(task.panel, task.split, report)
    return save_run(folder, forecaster, panel, protocol, is_catalogued=is_catalogued)
