"""The figures of analyses and of one forecast can be read, and show the numbers that lie beside them."""

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import QuadMesh
from matplotlib.colors import to_rgb
from matplotlib.patches import FancyArrowPatch
from pictures import assert_texts_stand_apart

from candor.core.text import sensor_label
from candor.explain.pictures import (
    AnyPicture,
    ArrivalPicture,
    BranchPicture,
    EmbeddingPicture,
    FusionPicture,
    OperatorPicture,
    OperatorWeights,
    PeerPicture,
    PropagationPicture,
    ReconstructionPicture,
    RelationPicture,
    RolePicture,
    Senders,
    Spread,
    WeightGroup,
)
from candor.render.figures.gallery import draw

CHANCE = np.random.default_rng(3)
LONG = sensor_label("420853121505501", "Klamath River at Miller Island Boat Ramp, far below the surface")
COMPONENTS = ("background", "accumulation", "release", "shock")
BRANCHES = ("functional", "forward", "reverse")


@pytest.fixture(autouse=True)
def same_chance_for_every_test() -> None:
    """What one test draws must not depend on which ran before it."""
    CHANCE.bit_generator.state = np.random.default_rng(3).bit_generator.state


def moments(count: int, frequency: str = "h") -> list[datetime]:
    return list(pd.date_range("2024-10-25", periods=count, freq=frequency, tz="Europe/Berlin").to_pydatetime())


def reconstruction(steps: int = 96, frequency: str = "h") -> ReconstructionPicture:
    times, values = moments(steps, frequency), 10 + np.sin(np.arange(steps) / 4)
    return ReconstructionPicture(
        LONG, "mg/L", times, times[48::48], values, values + 0.1, values - 0.1,
        {name: 0.3 * CHANCE.standard_normal(steps) for name in COMPONENTS[1:]},
        "Mean absolute error over all sensors: current reference 0.559 mg/L, next reference 0.619 mg/L. " * 2,
    )  # fmt: skip


def embedding() -> EmbeddingPicture:
    points = {name: CHANCE.standard_normal((50, 2)) + 4 * place for place, name in enumerate(COMPONENTS)}
    scores = {name: 0.2 * place for place, name in enumerate((*COMPONENTS, "all"))}
    return EmbeddingPicture(points, (0.34, 0.32), dict.fromkeys(scores, -0.1), scores, "400 states of each component.")


def propagation(sensors: int = 11, patches: int = 6, span: int = 2, has_edges: bool = True) -> PropagationPicture:
    lags = np.arange(2 - patches, patches + 1)
    return PropagationPicture(
        [f"4214011214809{i:02d}" for i in range(sensors)], moments(patches + 1, "8h"),
        2 * CHANCE.random((sensors, patches)), 2 * CHANCE.random((sensors, patches)), lags,
        CHANCE.random(len(lags)) if has_edges else np.full(len(lags), np.nan), CHANCE.random(span),
        CHANCE.random(span), 200,
    )  # fmt: skip


def roles(count: int = 3) -> RolePicture:
    names = ("next background with the temporal state", "next accumulation with what arrives", "release with residual")
    kinds = ("before", "after", "after_apart", "deviations_before", "deviations_after")
    found = {name: {kind: Spread(0.2 * i, 0.2 * i - 0.1, 0.2 * i + 0.1) for i, kind in enumerate(kinds)}
             for name in names[:count]}  # fmt: skip
    return RolePicture(found, 200)


def edge_weights(edges: int = 30, positions: int = 2, has_choice: bool = True) -> OperatorPicture:
    sender, receiver = np.arange(edges) % 7, 7 + np.arange(edges) % 4
    weights = [CHANCE.random((positions, edges)) for _ in range(3)]
    mean = CHANCE.random((positions, edges))
    found = OperatorWeights(
        sender, receiver, np.full(edges, has_choice), *weights[:2], mean, 0.8 * mean, 1.1 * mean, weights[2],
        CHANCE.random(edges), CHANCE.random(edges),
    )  # fmt: skip
    return OperatorPicture([f"4208531215055{i:02d}" for i in range(11)], {"forward": found, "reverse": found}, 200)


def relations(sensors: int = 12, has_places: bool = True, count: int = 40) -> RelationPicture:
    pairs = [(i, j) for i in range(sensors) for j in range(sensors) if i != j][:count]
    receiver, peer = np.array(pairs, int).reshape(-1, 2).T
    return RelationPicture(
        [f"g{i}" for i in range(sensors)], [LONG[8:]] * sensors,
        CHANCE.random((sensors, 2)) * [0.3, 0.2] + [-122, 42] if has_places else None,
        (np.arange(sensors - 1), np.arange(1, sensors)), receiver, peer,
        np.sort(CHANCE.random(len(pairs)))[::-1], CHANCE.random(len(pairs)), None, "Arrows lead to who hears.",
    )  # fmt: skip


def allocation(is_daily: bool = False) -> FusionPicture:
    def spread() -> dict[str, tuple[float, float, float]]:
        return dict(zip(BRANCHES, ((0.6, 0.5, 0.7), (0.25, 0.2, 0.3), (0.15, 0.1, 0.2)), strict=True))

    groups = {
        "month": [WeightGroup(i, name, spread()) for i, name in enumerate(("Jan", "Feb", "Mar", "Apr", "May", "Jun"))]
    }
    if not is_daily:
        groups = {"hour of day": [WeightGroup(i, f"{i:02d}:00", spread()) for i in range(24)]} | groups
    groups["step ahead"] = [WeightGroup(i, f"{5 + 10 * i} min", spread()) for i in range(25)]
    return FusionPicture(spread(), groups, "Means over 2,000 windows, 207 sensors and their target patches. " * 2)


def arrivals(span: int = 2, senders: int = 9) -> ArrivalPicture:
    shares = CHANCE.random((senders, span))
    found = Senders([LONG[:44]] * senders, shares / shares.sum())
    patches = [f"0{i} Feb 2025 08:00 to 0{i + 1} Feb 2025 07:00" for i in range(1, span + 1)]
    return ArrivalPicture(LONG, patches, {"forward": found, "reverse": Senders(["one"], np.ones((1, span)) / span)})


def peers(count: int = 16) -> PeerPicture:
    weights = np.sort(CHANCE.random(count))[::-1]
    return PeerPicture(
        LONG, [LONG[:44]] * count, weights / weights.sum(), weights, [i % 2 == 0 for i in range(count)], 2
    )


def branches(steps: int = 24, frequency: str = "h") -> BranchPicture:
    forecast = 10 + np.sin(np.arange(steps) / 4)
    weights = CHANCE.dirichlet([4, 1, 1], steps).T
    return BranchPicture(
        LONG, "mg/L", moments(steps, frequency), forecast, {name: forecast + i for i, name in enumerate(BRANCHES)},
        dict(zip(BRANCHES, weights, strict=True)), forecast + 0.2,
    )  # fmt: skip


PICTURES: dict[str, Callable[[], AnyPicture]] = {
    "reconstruction of hours": lambda: reconstruction(),
    "embedding": lambda: embedding(),
    "propagation of many": lambda: propagation(207, 24, 4),
    "propagation without edges": lambda: propagation(5, 2, 1, has_edges=False),
    "roles": lambda: roles(),
    "edge weights of four positions": lambda: edge_weights(5, 4),
    "edge weights without a choice": lambda: edge_weights(5, has_choice=False),
    "relations": lambda: relations(),
    "relations on a circle": lambda: relations(has_places=False),
    "no relations": lambda: relations(count=0),
    "allocation by hour": lambda: allocation(),
    "allocation by month": lambda: allocation(is_daily=True),
    "arrivals": lambda: arrivals(),
    "arrivals of four patches": lambda: arrivals(4, 2),
    "one peer": lambda: peers(1),
    "branches of days": lambda: branches(14, "D"),
}


@pytest.mark.parametrize("name", PICTURES)
def test_no_text_leaves_the_figure_or_lies_on_another(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert_texts_stand_apart(draw(PICTURES[name]()).figure, monkeypatch)


def test_painted_maps_are_the_same_whenever_they_are_written(tmp_path: Path) -> None:
    picture = propagation(2, 2, 1)
    for name in ("one.svg", "two.svg"):
        draw(picture)._write_figure(tmp_path / name)
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()


def test_lines_of_a_reconstruction_are_those_of_its_table() -> None:
    picture = reconstruction()
    drawing = draw(picture)
    above, below = drawing.figure.axes
    lines = {line.get_label(): line.get_ydata() for axes in (above, below) for line in axes.get_lines()}
    np.testing.assert_array_equal(lines["background + accumulation + shock"], drawing.table.current_reference)
    np.testing.assert_array_equal(lines["next background + release + shock"], drawing.table.next_reference)
    np.testing.assert_array_equal(lines["shock"], drawing.table.shock)
    assert "mg/L" in above.get_ylabel() and "mg/L" in below.get_ylabel()
    dotted = [line for line in above.get_lines() if line.get_linestyle() == ":"]
    assert len(dotted) == len(picture.breaks) == 1


def test_contributions_stand_one_patch_after_the_residuals_they_are_made_of() -> None:
    drawing = draw(propagation())
    meshes = [mesh for axes in drawing.figure.axes[:2] for mesh in axes.collections if isinstance(mesh, QuadMesh)]
    lefts = [mesh.get_coordinates()[0, 0, 0] for mesh in meshes]
    assert lefts == [-0.5, 0.5]
    assert drawing.figure.axes[0].get_xlim() == drawing.figure.axes[1].get_xlim()


def test_the_edges_that_learning_changed_most_are_shown() -> None:
    picture = edge_weights()
    drawing = draw(picture)
    edges = picture.directions["forward"]
    change = np.abs(np.stack([edges.low, edges.mean, edges.high]) - edges.support).max(axis=(0, 1))
    shown = {label.get_text() for label in drawing.figure.axes[1].get_yticklabels()}
    ids = picture.sensors
    assert shown == {f"{ids[edges.sender[e]]} → {ids[edges.receiver[e]]}" for e in np.argsort(-change)[:12]}
    assert len(drawing.table) == 2 * 2 * 30


def test_relations_are_arrows_to_who_hears_and_edges_stay_grey() -> None:
    picture = relations()
    drawing = draw(picture)
    axes = drawing.figure.axes[1]
    points = np.asarray(axes.collections[0].get_offsets())
    ends = {}
    for arrow in (child for child in axes.get_children() if isinstance(child, FancyArrowPatch)):
        places = [int(np.linalg.norm(points - place, axis=1).argmin()) for place in arrow._posA_posB]
        ends[tuple(places)] = (arrow.get_linewidth(), arrow.get_edgecolor())
    heaviest = list(zip(picture.peer[:16].tolist(), picture.receiver[:16].tolist(), strict=True))
    widths = [ends[pair][0] for pair in heaviest]
    assert widths == sorted(widths, reverse=True) and len({ends[pair][1] for pair in heaviest}) == 1
    assert "heaviest 16 of 40" in drawing.figure.get_supxlabel() and len(drawing.table) == 40


def test_the_key_of_an_allocation_names_the_lines_whatever_order_the_branches_have() -> None:
    picture = allocation()
    turned = dict(reversed(picture.overall.items()))
    figure = draw(FusionPicture(turned, picture.groups)).figure
    (key,) = (axes.get_legend() for axes in figure.axes if axes.get_legend() is not None)
    named = {text.get_text().partition(":")[0]: line for text, line in zip(key.texts, key.legend_handles, strict=True)}
    bars = dict(zip(turned, figure.axes[1].patches, strict=True))
    assert set(named) == set(BRANCHES)
    assert all(to_rgb(named[name].get_color()) == bars[name].get_facecolor()[:3] for name in BRANCHES)


def test_shares_of_arrivals_and_peers_are_percent_in_the_figure() -> None:
    picture = arrivals()
    bars = draw(picture).figure.axes[1].patches
    assert sum(bar.get_width() for bar in bars) == pytest.approx(100 * picture.directions["forward"].shares[:6].sum())
    alike = peers()
    assert [bar.get_width() for bar in draw(alike).figure.axes[0].patches] == pytest.approx(100 * alike.weights[:12])
