"""Cells of work on a Ray cluster."""

import logging
from collections.abc import Sequence
from pathlib import Path

from candor.core.errors import InputError
from candor.core.optional import needing_packages
from candor.research.engine import SECONDS_BETWEEN_LOOKS, Cell, Watch, run_cell, status_of, write_loss

_TRIES_AFTER_LOSS = 5  # of a machine of the cluster


def run_on_cluster(cells: Sequence[Cell], root: Path, address: str, watch: Watch = lambda running: None) -> None:
    """Work on all cells on the Ray cluster at `address`, each on one core, as many at a time as there are cores.

    All machines must see the folder of the cells under the same path and have the same data and version of candor. A
    cell whose machine is lost is handed out again and goes on from its checkpoint.
    """
    with needing_packages("working on a cluster", extra="cluster"):
        import ray
    try:
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    except (ConnectionError, OSError, RuntimeError, ValueError) as error:
        raise InputError(
            f"there is no Ray cluster at {address} ({error})", hint="start one: ray start --head, see docs/benchmark.md"
        ) from None
    remote = ray.remote(num_cpus=1, max_retries=_TRIES_AFTER_LOSS)(_work_on_one_core)
    pending = {remote.remote(cell, root.resolve()): cell for cell in cells}
    try:
        while pending:
            done, _ = ray.wait(list(pending), num_returns=1, timeout=SECONDS_BETWEEN_LOOKS)
            for handle in done:
                cell = pending.pop(handle)
                try:
                    ray.get(handle)
                except ray.exceptions.RayError as error:
                    write_loss(cell, root, f"lost on the cluster: {type(error).__name__}")
            watch([cell for cell in pending.values() if status_of(cell, root)])  # the others wait for a free node
    finally:
        ray.shutdown()


def _work_on_one_core(cell: Cell, root: Path) -> str:
    import torch

    torch.set_num_threads(1)
    return run_cell(cell, root).value
