"""Which networks there are."""

from candor.forecasting import forecasters
from candor.forecasting.baseline import Baseline


def baselines() -> list[str]:
    """Returns the names of all networks that can be imported here."""
    found = []
    for name in forecasters.names():
        try:
            is_network = issubclass(forecasters.get(name), Baseline)
        except ImportError:  # an extra that is not installed
            continue
        if is_network:
            found.append(name)
    return found
