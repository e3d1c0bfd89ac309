"""The pictures of a run that need no analyses: a forecast, what it is made of, how errors fell."""

from datetime import datetime

from candor.core.progress import Report, silent
from candor.explain.analyses.fusion import MOST_WINDOWS as MOST_FUSION_WINDOWS
from candor.explain.analyses.fusion import fusion_weights, picture_fusion
from candor.explain.analyses.operator import mean_edge_weights, picture_edges
from candor.explain.breakdown import explain_account
from candor.explain.choices import choose_forecast, choose_windows
from candor.explain.forecast import picture_components, picture_forecast
from candor.explain.overview import training_of
from candor.explain.pictures import AnyPicture
from candor.runs.run import Run


def run_pictures(
    run: Run, sensor: str | None = None, time: datetime | str | None = None, report: Report = silent
) -> dict[str, AnyPicture]:
    """Return the pictures of a run of CANDOR that need no analyses, by the name of their files.

    Args are those of `explain_run`; sensor and time are of the forecast and the components that are shown.
    """
    if run.forecaster.is_additive:
        return explain_account(run, sensor, time).pictures
    candor, task = run.candor(), run.as_measured(run.task())
    panel, length = task.panel, task.panel.times.length
    column, origin = choose_forecast(task, candor, sensor, time)
    forecast = picture_forecast(candor, panel, column, origin)
    pictures: dict[str, AnyPicture] = {
        "forecast": forecast,
        "forecast-next": picture_forecast(candor, panel, column, length),
    }
    moment = panel.times.start + origin * panel.times.interval
    found = candor.explain(panel, panel.sensor_ids[column], moment)
    if (components := picture_components(found, forecast.sensor)) is not None:
        pictures["components"] = components
    _, many = choose_windows(task.split, length, MOST_FUSION_WINDOWS)
    pictures["fusion"] = picture_fusion(fusion_weights(candor, panel, many))
    _, origins = choose_windows(task.split, length)
    if weights := mean_edge_weights(candor, panel, origins, report):
        pictures["edges"] = picture_edges(weights, panel, len(origins))
    if (training := training_of(run.folder, panel.unit)) is not None:
        pictures["training"] = training
    return pictures
