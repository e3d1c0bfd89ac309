"""EPANET input files: which network a name stands for, and what in it cannot be simulated, in plain words."""

import warnings
from pathlib import Path
from typing import Any

from candor.core.errors import InputError
from candor.core.files import looking_at
from candor.core.optional import needing_packages
from candor.core.text import first_line, listed

Model = Any
"""A `wntr.network.WaterNetworkModel`; wntr has no types."""


def open_model(source: str) -> Model:
    """Return the network of a name that ships with wntr, or of an .inp file; one without water is refused."""
    path = path_of(source)
    model = _read(path)
    if not sources_of(model):
        raise InputError(
            "no water comes into the network, so that nothing can be dosed",
            where=str(path),
            hint="add a reservoir to [RESERVOIRS], or a junction with a negative demand",
        )
    if len(model.junction_name_list) < 2 or not model.pipe_name_list:
        raise InputError("the network has fewer than two junctions, or no pipe", where=str(path))
    return model


def sources_of(model: Model) -> list[str]:
    """Return the nodes where water comes from: reservoirs, and junctions with a negative demand."""
    feeding = [name for name, junction in model.junctions() if min(_demands(junction), default=0.0) < 0]
    return [*model.reservoir_name_list, *feeding]


def _demands(junction: Any) -> list[float]:
    return [float(demand.base_value) for demand in junction.demand_timeseries_list]


def path_of(source: str) -> Path:
    """Return the file of a network that ships with wntr, or of a path."""
    with needing_packages("a water network", extra="physics", where=source):
        import wntr

    library = {path.stem: path for path in (Path(wntr.__file__).parent / "library" / "networks").glob("*.inp")}
    if source in library:
        return library[source]
    path = Path(source).expanduser()
    with looking_at(path):
        if path.is_file():
            return path
    raise InputError(
        "this is neither a network that ships with wntr nor a file",
        where=source or "water network",
        hint=f"known: {listed(sorted(library))}; or give the path of an EPANET input file (.inp)",
    )


def _read(path: Path) -> Model:
    import wntr

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of controls and curves that are listed twice or not used
        try:
            return wntr.network.WaterNetworkModel(str(path))
        # wntr reads with plain indexing and conversions: what a damaged file makes of them has no common type.
        except Exception as error:
            raise refusal(f"this is not an EPANET input file that wntr can read ({innermost(error)})", path) from None


def refusal(what: str, path: Path) -> InputError:
    """Return the error of a file that cannot be simulated."""
    return InputError(what, where=str(path), hint="open the file in EPANET, which shows where it is wrong")


def innermost(error: Exception) -> str:
    """Return the first line of the error that began a chain of them: wntr wraps the telling ones."""
    while isinstance(cause := error.__cause__ or error.__context__, Exception):
        error = cause
    return first_line(error)
