"""Runs a grid on a real Ray cluster of two nodes and removes one while it works: GRID_FOLDER.

Leaves losses.json: which cell lost its process, and how far it was.
"""

import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psutil
from ray.cluster_utils import Cluster

from candor.core.files import write_json
from candor.research.engine import status_of
from candor.research.grid import GridCell, cells_of
from candor.research.ray_cluster import run_on_cluster
from candor.research.suites import Contender, Suite
from candor.runs.run import TRAINING
from candor.training.checkpoint import Checkpoint

SETTINGS = {"epochs": 30, "width": 4, "layers": 1, "batch": 256}
_SECONDS_FOR_A_PROCESS_TO_DIE = 60


def main(grid: Path) -> None:
    contender = Contender(name="stid", model="stid", settings=SETTINGS)
    suite = Suite(
        name="made-up", title="", tasks=[{"preset": "klamath-daily"}], models=[contender.model_dump()], seeds=[0, 1, 2]
    )
    cells = cells_of(suite)
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    second = cluster.add_node(num_cpus=1)
    cluster.wait_for_nodes()

    def lose_a_node() -> None:
        """Removes the second node once the cell on it has a checkpoint."""
        while (found := _trained_by(_processes_of(second), cells, grid)) is None:
            time.sleep(0.05)
        cell, process = found
        cluster.remove_node(second, allow_graceful=False)
        psutil.wait_procs([process], timeout=_SECONDS_FOR_A_PROCESS_TO_DIE)
        progress = Checkpoint(grid / cell.name / TRAINING).progress()
        loss = {"cell": cell.name, "process": process.pid, "is_finished": progress.is_finished, "when": time.time()}
        write_json(grid / "losses.json", [loss])

    threading.Thread(target=lose_a_node, daemon=True).start()
    run_on_cluster(cells, grid, cluster.address)
    cluster.shutdown()


def _processes_of(node: Any) -> list[psutil.Process]:
    """Returns the processes that a node of the cluster has started to work."""
    raylet = psutil.Process(node.all_processes["raylet"][0].process.pid)
    return raylet.children(recursive=True)


def _trained_by(
    processes: Sequence[psutil.Process], cells: Sequence[GridCell], grid: Path
) -> tuple[GridCell, psutil.Process] | None:
    """Returns a cell with a checkpoint that one of the processes works on, and which; None if there is none."""
    for cell in cells:
        worker = status_of(cell, grid).get("process")
        for process in processes:
            if process.pid == worker and Checkpoint(grid / cell.name / TRAINING).last.is_file():
                return cell, process
    return None


if __name__ == "__main__":
    main(Path(sys.argv[1]))
