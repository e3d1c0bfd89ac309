"""Runs a grid on a real Ray cluster of two nodes and removes one while it works: GRID_FOLDER."""

import sys
import threading
import time
from pathlib import Path

from ray.cluster_utils import Cluster

from candor.benchmark.cells import cells_of
from candor.benchmark.cluster import run_on_cluster
from candor.benchmark.suites import Contender, Suite

SETTINGS = {"epochs": 80, "width": 4, "layers": 1, "batch": 256}


def main(grid: Path) -> None:
    contender = Contender(name="stid", model="stid", settings=SETTINGS)
    suite = Suite(
        name="made-up", title="", tasks=[{"preset": "klamath-daily"}], models=[contender.model_dump()], seeds=[0, 1, 2]
    )
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    second = cluster.add_node(num_cpus=1)
    cluster.wait_for_nodes()

    def lose_a_node() -> None:
        """Removes the second node once two cells have begun to train: one of them is on it."""
        while len(list(grid.rglob("last.safetensors"))) < 2:
            time.sleep(0.05)
        cluster.remove_node(second, allow_graceful=False)
        print("lost a node", flush=True)

    threading.Thread(target=lose_a_node, daemon=True).start()
    run_on_cluster(cells_of(suite), grid, cluster.address)
    cluster.shutdown()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
