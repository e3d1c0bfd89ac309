"""How the sensors hang together."""

import numpy as np
from numpy.typing import NDArray

from candor.core.text import listed
from candor.data.findings import Findings
from candor.data.panel import Panel
from candor.graph import components, isolated


def count_edges(panel: Panel) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Returns for each sensor the edges that lead to it and those that leave it, without self-loops."""
    sensors = len(panel.sensors)
    is_between_two = panel.edges.source != panel.edges.target
    arriving = np.bincount(panel.edges.target[is_between_two], minlength=sensors)
    leaving = np.bincount(panel.edges.source[is_between_two], minlength=sensors)
    return arriving, leaving


def report_network(panel: Panel, findings: Findings) -> int:
    """Adds what there is to say about the edges, and returns the number of components."""
    sensors = len(panel.sensors)
    if sensors == 0:
        return 0
    source, target = panel.edges.source, panel.edges.target
    sizes = np.bincount(components(source, target, sensors))
    lonely = isolated(source, target, sensors)
    if sensors == 1:
        return 1
    if len(lonely) == sensors:
        findings.note(
            "there are no edges between sensors: each is forecast from itself and from sensors that behave alike",
            panel.name, sensors,
            "give a list of connections with --edges if there is one",
        )  # fmt: skip
        return len(sizes)
    if len(lonely):
        findings.note(
            "sensors have no edge to any other", listed(panel.sensors[i].id for i in lonely), len(lonely),
            "add their edges; check that the edges call them by the same names as the readings do",
        )  # fmt: skip
    groups = sorted((int(size) for size in sizes if size > 1), reverse=True)
    if len(groups) > 1:
        findings.note(
            "the network falls into parts that do not touch", f"parts of {listed(groups)} sensors", len(groups),
            "nothing, if they are separate rivers or roads; else add the edges between them",
        )  # fmt: skip
    return len(sizes)
