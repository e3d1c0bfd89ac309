"""Cells on a Ray cluster, where one machine is not enough (extra `cluster`).

All machines must see the folder of the cells under the same path and have the same data and version of candor. Ray
hands the cells out; a cell whose machine is lost is handed out again and goes on from its checkpoint.
"""

import logging
from collections.abc import Sequence
from pathlib import Path

from candor.core.errors import InputError
from candor.core.optional import needing_packages
from candor.research.engine import Cell, Watch, run_cell, status_of, write_loss

_TRIES_AFTER_LOSS = 5
_SECONDS_BETWEEN_LOOKS = 0.5


def run_on_cluster(cells: Sequence[Cell], root: Path, address: str, watch: Watch = lambda running: None) -> None:
    """Works on all cells on the cluster at `address`, each on one core, as many at a time as there are cores."""
    with needing_packages("working on a cluster", extra="cluster"):
        import ray
    try:
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    except (ConnectionError, OSError, RuntimeError, ValueError) as error:
        raise InputError(
            f"there is no Ray cluster at {address} ({error})", hint="start one: ray start --head, see docs/benchmark.md"
        ) from None
    remote = ray.remote(num_cpus=1, max_retries=_TRIES_AFTER_LOSS)(_work)
    pending = {remote.remote(cell, root.resolve()): cell for cell in cells}
    try:
        while pending:
            done, _ = ray.wait(list(pending), num_returns=1, timeout=_SECONDS_BETWEEN_LOOKS)
            for handle in done:
                cell = pending.pop(handle)
                try:
                    ray.get(handle)
                except ray.exceptions.RayError as error:
                    write_loss(cell, root, f"lost on the cluster: {type(error).__name__}")
            watch([cell for cell in pending.values() if status_of(cell, root)])  # the others wait for a free node
    finally:
        ray.shutdown()


def _work(cell: Cell, root: Path) -> str:
    import torch

    torch.set_num_threads(1)
    return run_cell(cell, root).value
