"""A synthetic network on disk: a panel folder, and the truth in a folder of its own inside it.

truth/truth.json          laws (delays, attenuation, retention), twins, bounds, checksums
truth/COMPONENT.parquet   time (UTC) and a float32 column per sensor
truth/shocks.parquet      time (step), sensor (position), size
"""

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from candor.core.errors import InputError
from candor.core.files import atomic_folder, check_version, read_json, sha256_of_file, write_json
from candor.core.text import first_line
from candor.data.panel import Panel, digest_of
from candor.data.panel_store import (
    HEADER,
    READINGS,
    SIGNS_OF_DAMAGE,
    MatrixWriter,
    check_panel_place,
    covariate_file,
    header_axes,
    read_matrix,
    write_header,
)
from candor.data.synthetic.generate import COMPONENTS, Shocks, Truth, World, chunks_of, settle
from candor.data.synthetic.recipe import SyntheticRecipe

FORMAT_VERSION = 1
_SHOCK_COLUMNS = pa.schema([("time", pa.int64()), ("sensor", pa.int64()), ("size", pa.float64())])
_HINT = "write it again with write_synthetic"


def write_synthetic(
    folder: Path,
    kind: str,
    sensors: int,
    steps: int,
    seed: int = 0,
    *,
    noise: float = 0.01,
    missing_share: float = 0.0,
    twin_pairs: int | None = None,
    chunk_steps: int | None = None,
) -> None:
    """Write a synthetic panel and its truth to `folder`, replacing what was there, for `load_panel` and `load_truth`.

    The arguments are those of `SyntheticRecipe`, and the numbers those of `generate`, but only a few chunks of
    `chunk_steps` steps are in memory at a time, however many steps there are.
    """
    recipe = SyntheticRecipe(kind, sensors, steps, seed, noise, missing_share, twin_pairs)
    world = settle(recipe)
    check_panel_place(folder)
    with atomic_folder(folder) as temporary:
        network, times, units = world.network, world.times, recipe.physics.covariate_units
        panel = Panel.without_rows(
            times.slice(0, 0), network.sensors, network.edges, units, world.name, world.provenance
        )
        fingerprint = panel.fingerprint_of(times, *_write_series(temporary, world, chunk_steps))
        write_header(temporary, times, panel, fingerprint)
        _write_laws(temporary / "truth", world, fingerprint)


def _write_series(folder: Path, world: World, chunk_steps: int | None) -> tuple[str, dict[str, str]]:
    """Write all series in step with each other; returns the digests of the readings and the covariates."""
    units = world.recipe.physics.covariate_units
    ids = tuple(sensor.id for sensor in world.network.sensors)
    with ExitStack() as files:
        paths = {"readings": folder / READINGS} | {name: covariate_file(folder, name) for name in units}
        paths |= {name: _component_file(folder, name) for name in COMPONENTS}
        writers = {name: files.enter_context(MatrixWriter(path, world.times, ids)) for name, path in paths.items()}
        shocks = files.enter_context(pq.ParquetWriter(_shock_file(folder), _SHOCK_COLUMNS))
        for chunk in chunks_of(world, chunk_steps):
            for name, series in ({"readings": chunk.readings} | chunk.covariates | chunk.components).items():
                writers[name].write(series)
            found = [chunk.shocks.time, chunk.shocks.sensor, chunk.shocks.size]
            shocks.write_table(pa.Table.from_arrays(found, schema=_SHOCK_COLUMNS))
    return writers["readings"].digest, {name: writers[name].digest for name in units}


def _write_laws(folder: Path, world: World, panel_fingerprint: str) -> None:
    content = {
        "format": "candor-truth",
        "format_version": FORMAT_VERSION,
        "panel_fingerprint": panel_fingerprint,
        "delays": world.delays.tolist(),
        "attenuation": world.attenuation.tolist(),
        "twins": [list(pair) for pair in world.twins],
        "storage_retention": world.storage_retention.tolist(),
        "shock_retention": world.shock_retention.tolist(),
        "bounds": list(world.bounds),
        "sha256": {path.name: sha256_of_file(path) for path in sorted(folder.glob("*.parquet"))},
    }
    write_json(folder / "truth.json", content | {"digest": digest_of(content)})


def load_truth(folder: Path) -> Truth:
    """Return the truth written beside the panel in `folder`; a damaged one is refused."""
    folder = Path(folder)
    laws, header = read_json(folder / "truth" / "truth.json"), read_json(folder / HEADER)
    try:
        check_version(laws["format_version"], FORMAT_VERSION, "truth", folder, _HINT)
        return _read_truth(folder, laws, header)
    except SIGNS_OF_DAMAGE as error:
        what = f"the truth is damaged ({first_line(error)})"
        raise InputError(what, where=str(folder), hint=_HINT) from None


def _read_truth(folder: Path, laws: dict[str, Any], header: dict[str, Any]) -> Truth:
    if laws["format"] != "candor-truth":
        raise ValueError("it is of another format")
    if digest_of({name: laws[name] for name in laws if name != "digest"}) != laws["digest"]:
        raise ValueError("truth.json was changed")
    for name, expected in laws["sha256"].items():
        if sha256_of_file(folder / "truth" / name) != expected:
            raise ValueError(f"{name} was changed")
    if laws["panel_fingerprint"] != header["fingerprint"]:
        raise ValueError("it belongs to another panel")
    times, sensors = header_axes(header)
    ids = tuple(sensor.id for sensor in sensors)
    shocks = pq.read_table(_shock_file(folder))
    return Truth(
        delays=np.array(laws["delays"], np.int64),
        attenuation=np.array(laws["attenuation"], np.float64),
        shocks=Shocks(*(column.to_numpy() for column in shocks.columns)),
        components={name: read_matrix(_component_file(folder, name), times, ids) for name in COMPONENTS},
        twins=tuple((first, second) for first, second in laws["twins"]),
        storage_retention=np.array(laws["storage_retention"], np.float64),
        shock_retention=np.array(laws["shock_retention"], np.float64),
        bounds=(laws["bounds"][0], laws["bounds"][1]),
    )


def _component_file(folder: Path, name: str) -> Path:
    return folder / "truth" / f"{name}.parquet"


def _shock_file(folder: Path) -> Path:
    return folder / "truth" / "shocks.parquet"
