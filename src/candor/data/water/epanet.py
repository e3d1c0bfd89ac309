"""Runs of EPANET: what flows in every link, and what is dissolved at every node, at each moment of the record."""

import shutil
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from contextlib import chdir, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from candor.core.arrays import Doubles
from candor.data.water.inp import Model, innermost, refusal
from candor.data.water.pipework import Pipework

_FILES = "network"  # what EPANET's files are called, before the dot
_MILLIGRAMS_PER_LITRE = 1e-3  # kg/m3, in which wntr counts
_EMPTYING = -1e6 / 86_400  # per second: whatever comes into a tank is gone at once


class Epanet:
    """A network whose water is the same in every run; what is dissolved in it differs from run to run."""

    def __init__(self, model: Model, path: Path, folder: Path) -> None:
        self._model, self._path, self._folder = model, path, folder
        self._results: Any = None

    def concentrations(
        self,
        usual: Mapping[str, Doubles] | None = None,
        injections: Mapping[str, Doubles] | None = None,
        *,
        at_first: float = 0.0,
        passes_tanks: bool = True,
    ) -> Doubles:
        """Return what is dissolved at every junction, moment x junction, mg/L.

        Args:
            usual: by source, what its water contains at each moment, mg/L, to six decimals.
            injections: by junction, what is added there to the water that passes, in the same way.
            at_first: what is dissolved everywhere at the first moment.
            passes_tanks: whether water that leaves a tank carries what came into it, or nothing.
        """
        model = self._model
        for _, node in model.nodes():
            node.initial_quality = at_first * _MILLIGRAMS_PER_LITRE
        for _, tank in model.tanks():
            tank.bulk_coeff = 0.0 if passes_tanks else _EMPTYING
        doses = [("CONCEN", *dose) for dose in (usual or {}).items()]
        doses += [("FLOWPACED", *dose) for dose in (injections or {}).items()]
        names = [f"candor_dose_{number}" for number in range(len(doses))]
        for name, (how, node, series) in zip(names, doses, strict=True):
            model.add_pattern(name, series)
            model.add_source(name, node, how, _MILLIGRAMS_PER_LITRE, name)
        self._run()
        for name in names:
            model.remove_source(name)
            model.remove_pattern(name)
        return self._series("node", "quality", model.junction_name_list) / _MILLIGRAMS_PER_LITRE

    def pipework(self) -> Pipework:
        """Return the links and what flowed in them in the last run."""
        model = self._model
        links = [link for _, link in model.links()]
        nodes = {name: place for place, name in enumerate(model.node_name_list)}
        length = np.array([float(getattr(link, "length", 0.0) or 0.0) for link in links])
        is_pipe = np.array([link.link_type == "Pipe" for link in links])
        is_junction = np.array([node.node_type == "Junction" for _, node in model.nodes()])
        demand = self._series("node", "demand", list(nodes))
        width = np.array([float(link.diameter) if link.link_type == "Pipe" else 0.0 for link in links])
        return Pipework(
            nodes=tuple(nodes),
            is_junction=is_junction,
            places=np.array([node.coordinates for _, node in model.nodes()], np.float64),
            start=_positions(nodes, [link.start_node_name for link in links]),
            end=_positions(nodes, [link.end_node_name for link in links]),
            length=np.where(is_pipe, length, 0.0),
            volume=np.where(is_pipe, length, 0.0) * np.pi * width**2 / 4,
            flow=self._series("link", "flowrate", [link.name for link in links]),
            supply=np.where(is_junction, np.maximum(-demand, 0.0), 0.0),
            seconds=int(model.options.time.pattern_timestep),
        )

    def _series(self, of: str, quantity: str, names: list[str]) -> Doubles:
        """Return a result of the last run, moment x name; see `scenario` for what a moment is."""
        found: Doubles = getattr(self._results, of)[quantity][names].to_numpy(np.float64)[1::2]
        return found

    def _run(self) -> None:
        with chdir(self._folder), warnings.catch_warnings():  # EPANET makes scratch files where it stands
            warnings.simplefilter("ignore")
            try:
                self._results = self._solve(is_first=self._results is None)
            # EPANET's own errors, and what wntr makes of a result that ends early, have no common type.
            except Exception as error:
                raise refusal(f"EPANET cannot simulate this network ({self._complaint(error)})", self._path) from None

    def _solve(self, *, is_first: bool) -> Any:
        """Return the results of one run; the first solves what flows, and the others read it."""
        import wntr
        from wntr.epanet.io import BinFile
        from wntr.epanet.toolkit import ENepanet

        network, report, results, water = (f"{_FILES}.{kind}" for kind in ("inp", "rpt", "bin", "hyd"))
        wntr.network.write_inpfile(self._model, network, units=self._model.options.hydraulic.inpfile_units)
        solver = ENepanet()
        try:
            solver.ENopen(network, report, results)
            if is_first:
                solver.ENsolveH()
                solver.ENsavehydfile(water)
            else:
                solver.ENusehydfile(water)
            solver.ENsolveQ()
        finally:
            solver.ENclose()  # also writes the rest of the report
        return BinFile().read(results, convergence_error=True)

    def _complaint(self, error: Exception) -> str:
        """Return the first error in EPANET's report, which says more than the one that is raised."""
        report = self._folder / f"{_FILES}.rpt"
        lines = report.read_text(errors="replace").splitlines() if report.is_file() else []
        for place, line in enumerate(lines):
            if "Error " in line:  # and on the next line what it is about
                return " ".join(" ".join(lines[place : place + 2]).split())
        return innermost(error)


@contextmanager
def epanet(model: Model, path: Path) -> Iterator[Epanet]:
    """Keep the files of the runs in a temporary folder for the time of the block.

    The process stands in that folder while EPANET runs: not for one of several threads that read relative paths.
    """
    folder = Path(tempfile.mkdtemp(prefix="candor-epanet-"))
    try:
        yield Epanet(model, path, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _positions(nodes: Mapping[str, int], names: list[str]) -> NDArray[np.int64]:
    return np.array([nodes[name] for name in names], np.int64)
