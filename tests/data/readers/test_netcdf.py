"""NetCDF files give the readings, moments and sensors that the CF conventions say they hold."""

import sys
from pathlib import Path
from typing import Any

import netCDF4
import numpy as np
import pandas as pd
import pytest
import xarray

from candor.core.errors import InputError
from candor.data.readers.netcdf import read_netcdf
from candor.data.readers.options import ReadOptions
from candor.data.readers.panels import read_panel

TIMES = pd.date_range("2021-05-01", periods=5, freq="15min")
VALUES = np.random.default_rng(11).normal(8, 2, (5, 3))
FORMATS: Any = ["NETCDF4", "NETCDF3_64BIT"]


def dataset(sites: list[Any] | None = None, **more: Any) -> xarray.Dataset:
    coordinates: dict[str, Any] = {"time": TIMES}
    if sites is not None:
        coordinates["site"] = sites
    return xarray.Dataset({"nitrate": (("time", "site"), VALUES.copy()), **more}, coords=coordinates)


def stored(content: xarray.Dataset, folder: Path, kind: Any = "NETCDF4", **options: Any) -> Path:
    path = folder / "readings.nc"
    content.to_netcdf(path, engine="netcdf4", format=kind, **options)
    return path


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("sites", [["05406457", "05406479", "b"], [101, 102, 103]])
def test_a_file_gives_back_what_was_written(kind: Any, sites: list[Any], tmp_path: Path) -> None:
    readings = read_netcdf(stored(dataset(sites), tmp_path, kind))
    assert readings.ids == tuple(str(site) for site in sites)
    assert readings.has_zone and not readings.is_long
    assert readings.row_stamps.dtype == np.dtype("datetime64[us]")
    np.testing.assert_array_equal(readings.row_stamps, TIMES.to_numpy())
    np.testing.assert_array_equal(readings.values, VALUES.astype(np.float32))


@pytest.mark.parametrize("kind", FORMATS)
def test_the_order_of_the_dimensions_does_not_matter(kind: Any, tmp_path: Path) -> None:
    turned = dataset(["a", "b", "c"]).transpose("site", "time")
    readings = read_netcdf(stored(turned, tmp_path, kind))
    np.testing.assert_array_equal(readings.values, VALUES.astype(np.float32))


@pytest.mark.parametrize("kind", FORMATS)
def test_packed_and_filled_numbers_are_unpacked(kind: Any, tmp_path: Path) -> None:
    with netCDF4.Dataset(tmp_path / "packed.nc", "w", format=kind) as file:
        file.createDimension("time", 3)
        file.createDimension("site", 2)
        time = file.createVariable("time", "f8", ("time",))
        time.units = "hours since 2020-01-01 00:00:00 -06:00"
        time[:] = [0, 0.5, 1]
        level = file.createVariable("level", "i2", ("time", "site"), fill_value=-9999)
        level.scale_factor, level.add_offset = 0.5, 10.0
        level.set_auto_maskandscale(False)
        level[:] = [[0, 1], [-9999, 4], [2, 3]]
    readings = read_netcdf(tmp_path / "packed.nc")
    np.testing.assert_array_equal(readings.values, [[10, 10.5], [np.nan, 12], [11, 11.5]])
    assert readings.row_stamps[1] == np.datetime64("2020-01-01T06:30")
    assert readings.ids == ("0", "1")


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize(("number", "scale", "offset"), [("f4", 1.0, 0.0), ("i2", 0.5, 10.0)])
def test_cells_that_were_never_written_are_missing(
    kind: Any, number: Any, scale: float, offset: float, tmp_path: Path
) -> None:
    values = partly_written(tmp_path / "partly.nc", kind, number, scale_factor=scale, add_offset=offset)
    np.testing.assert_array_equal(values, np.array([[1, 2], [np.nan, np.nan], [4, np.nan]]) * scale + offset)


def test_of_bytes_and_of_variables_that_name_their_fill_every_other_number_is_a_reading(tmp_path: Path) -> None:
    values = partly_written(tmp_path / "bytes.nc", "NETCDF3_64BIT", "i1")
    np.testing.assert_array_equal(values, [[1, 2], [-127, -127], [4, -127]])
    values = partly_written(tmp_path / "named.nc", "NETCDF3_64BIT", "i2", fill=2, readings=(-32767, 2))
    np.testing.assert_array_equal(values, [[-32767, np.nan], [np.nan, np.nan], [4, np.nan]])


@pytest.mark.parametrize(
    ("number", "missing"),
    [("i2", np.int16(2)), ("i2", np.float64(2)), ("i2", "2"), ("f4", np.float32(2.1)), ("f4", np.float64(2.1)),
     ("f4", "2.1"), ("f4", np.array([-9999.0, 2.1])), ("f8", np.float64(2.1)), ("f8", "2.1")],
)  # fmt: skip
def test_what_a_file_says_is_missing_is_missing_in_whatever_type_it_says_so(
    number: Any, missing: Any, tmp_path: Path
) -> None:
    readings = (1, 2 if number == "i2" else 2.1)
    path = tmp_path / "said.nc"
    values = partly_written(path, "NETCDF3_64BIT", number, readings=readings, missing_value=missing)
    np.testing.assert_array_equal(values, [[1, np.nan], [np.nan, np.nan], [4, np.nan]])


@pytest.mark.parametrize(("number", "missing"), [("i2", 2.5), ("i2", 1e20), ("i2", np.nan), ("i2", "none"), ("f4", "")])
def test_what_no_reading_can_be_stands_for_none(number: Any, missing: Any, tmp_path: Path) -> None:
    values = partly_written(tmp_path / "odd.nc", "NETCDF3_64BIT", number, missing_value=missing)
    np.testing.assert_array_equal(values, [[1, 2], [np.nan, np.nan], [4, np.nan]])


def partly_written(
    path: Path, kind: Any, number: Any, fill: Any = None, readings: tuple[float, float] = (1, 2), **attributes: Any
) -> Any:
    with netCDF4.Dataset(path, "w", format=kind) as file:
        file.createDimension("time", 3)
        file.createDimension("site", 2)
        time = file.createVariable("time", "f8", ("time",))
        time.units = "hours since 2020-01-01"
        time[:] = [0, 1, 2]
        level = file.createVariable("level", number, ("time", "site"), fill_value=fill)
        level.setncatts(attributes)
        level.set_auto_maskandscale(False)
        level[0] = readings
        level[2, 0] = 4
    return read_netcdf(path).values


def test_sensors_without_a_coordinate_are_named_by_their_timeseries_id(tmp_path: Path) -> None:
    named = dataset(station=("site", ["north", "south", "east"], {"cf_role": "timeseries_id"}))
    assert read_netcdf(stored(named, tmp_path)).ids == ("north", "south", "east")


def test_of_several_variables_one_must_be_named(tmp_path: Path) -> None:
    path = stored(dataset(["a", "b", "c"], flow=(("time", "site"), VALUES * 2)), tmp_path)
    with pytest.raises(InputError, match="several variables") as caught:
        read_netcdf(path)
    assert "nitrate, flow" in caught.value.hint
    np.testing.assert_array_equal(read_netcdf(path, "flow").values, (VALUES * 2).astype(np.float32))


def test_a_panel_can_be_made_of_either_variable_and_other_files_have_none(tmp_path: Path) -> None:
    path = stored(dataset(["a", "b", "c"], flow=(("time", "site"), VALUES * 2)), tmp_path)
    nitrate, flow = (read_panel(path, options=ReadOptions(variable=name)).values for name in ("nitrate", "flow"))
    np.testing.assert_array_equal(flow, nitrate * 2)
    table = tmp_path / "readings.csv"
    table.write_text("time,a\n2021-05-01,1\n2021-05-02,2\n", encoding="utf-8")
    with pytest.raises(InputError, match="only NetCDF files have variables"):
        read_panel(table, options=ReadOptions(variable="a"))


def test_variables_that_hold_no_readings_are_passed_over(tmp_path: Path) -> None:
    content = dataset(
        ["a", "b", "c"],
        remark=(("time", "site"), np.full((5, 3), "fine")),
        depth=(("site",), [1.0, 2.0, 3.0]),
        time_bounds=(("time", "side"), np.stack([TIMES, TIMES], axis=1)),
    )
    values = read_netcdf(stored(content, tmp_path)).values
    np.testing.assert_array_equal(values, VALUES.astype(np.float32))


@pytest.mark.parametrize("name", ["depth", "absent", "time"])
def test_a_named_variable_must_fit(name: str, tmp_path: Path) -> None:
    path = stored(dataset(["a", "b", "c"], depth=(("site",), [1.0, 2.0, 3.0])), tmp_path)
    with pytest.raises(InputError, match=f"'{name}'"):
        read_netcdf(path, name)


def test_sensors_named_twice_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="more than once: a"):
        read_netcdf(stored(dataset(["a", "b", "a"]), tmp_path))


def test_days_that_no_clock_shows_are_refused_with_their_calendar(tmp_path: Path) -> None:
    path = stored(dataset(["a", "b", "c"]), tmp_path, encoding={"time": {"calendar": "noleap"}})
    with pytest.raises(InputError, match="calendar noleap"):
        read_netcdf(path)


def test_without_xarray_the_packages_to_install_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = stored(dataset(["a", "b", "c"]), tmp_path)
    monkeypatch.setitem(sys.modules, "xarray", None)
    with pytest.raises(InputError, match="pip install xarray netCDF4"):
        read_netcdf(path)


def test_a_file_that_claims_more_than_it_can_hold_is_not_believed(tmp_path: Path) -> None:
    with netCDF4.Dataset(tmp_path / "claims.nc", "w") as file:
        file.createDimension("time", 10**12)
        file.createVariable("time", "f8", ("time",)).units = "hours since 2020-01-01"
    with pytest.raises(InputError, match="claims more"):
        read_netcdf(tmp_path / "claims.nc")


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("share", [0.05, 0.3, 0.6, 0.9])
def test_a_file_cut_off_is_refused(kind: Any, share: float, tmp_path: Path) -> None:
    path = stored(dataset(["a", "b", "c"]), tmp_path, kind)
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])
    with pytest.raises(InputError):
        read_netcdf(path)


@pytest.mark.parametrize("content", [b"CDF\x05", b"GRIB and so on", b"\x89HDF\r\n\x1a\n", b"\x00"])
def test_other_files_are_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "other.nc").write_bytes(content)
    with pytest.raises(InputError):
        read_netcdf(tmp_path / "other.nc")
