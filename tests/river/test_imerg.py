"""The reader of IMERG granules finds the right cell and refuses every file it was not written for."""

from datetime import UTC, datetime
from decimal import ROUND_FLOOR, Decimal
from pathlib import Path

import h5py
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from imerg_granules import FILL, LATITUDES, LONGITUDES, name_at, write_granule

from candor.core.errors import InputError
from candor.data.panel import Sensor
from candor.river.imerg import ImergCell, cell_of, read_half_hour, start_of

V07 = "3B-HHR.MS.MRG.3IMERG.20000601-S000000-E002959.0000.V07A.cut10x10.HDF5"
V06 = V07.replace("V07A", "V06B")
START = datetime(2020, 2, 29, 23, 30, tzinfo=UTC)
NAME = name_at(START)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A granule of the whole Earth in which every cell rains its own amount: its longitude, and its latitude."""
    rates = (LONGITUDES[:, None] + 180) + (LATITUDES + 90) / 1000
    return write_granule(tmp_path_factory.mktemp("granule") / NAME, START, rates.astype(np.float32))


def small(folder: Path, rate: float = 1.0, start: datetime = START, **changed: str) -> Path:
    """A granule of three by two cells around a place in Oregon."""
    rates = np.full((3, 2), rate, np.float32)
    return write_granule(folder / NAME, start, rates, LONGITUDES[581:584], LATITUDES[1321:1323], **changed)


OREGON = cell_of(Sensor("oregon", latitude=42.15, longitude=-121.75))


@pytest.fixture
def recorded(real_data: Path) -> Path:
    """Corners cut out of real files, where they are present beside the real data; they are not ours to pass on."""
    folder = real_data.parent / "fixtures" / "imerg"
    if not (folder / V07).is_file():
        pytest.skip("no recorded IMERG files beside the real data")
    return folder


def test_the_recorded_file_is_read_with_longitude_before_latitude(recorded: Path) -> None:
    # In the recorded corner of the grid the three southernmost rows are missing, at every longitude.
    places = [(-89.95, -179.95), (-89.75, -179.05), (-89.65, -179.95), (-89.05, -179.05)]
    cells = [cell_of(Sensor("s", latitude=north, longitude=east)) for north, east in places]
    rates = read_half_hour(recorded / V07, V07, cells)
    np.testing.assert_array_equal(rates, [np.nan, np.nan, 0, 0])
    with h5py.File(recorded / V07) as file:
        raw = file["Grid/precipitation"][0]
    np.testing.assert_array_equal(rates, [np.where(raw == FILL, np.nan, raw)[cell] for cell in cells])


def test_the_granules_of_these_tests_have_the_recorded_layout(tmp_path: Path, recorded: Path) -> None:
    with h5py.File(recorded / V07) as real, h5py.File(small(tmp_path)) as written:
        for name in ("precipitation", "time", "lon", "lat"):
            one, other = real["Grid"][name], written["Grid"][name]
            assert (one.dtype, one.ndim) == (other.dtype, other.ndim)
            for attribute in ("DimensionNames", "units"):
                assert one.attrs[attribute] == other.attrs[attribute]
        assert real["Grid/precipitation"].attrs["_FillValue"] == written["Grid/precipitation"].attrs["_FillValue"]
        seconds = int(real["Grid/time"][0])
    assert start_of(V07) == datetime(2000, 6, 1, tzinfo=UTC)
    assert seconds == (start_of(V07) - datetime(1980, 1, 6, tzinfo=UTC)).total_seconds()


# Anywhere, and on the very edges of cells.
anywhere = st.one_of(
    st.integers(-1800_000, 1799_999).map(lambda number: Decimal(number) / 10_000),
    st.integers(-1800, 1799).map(lambda number: Decimal(number) / 10),
)


@given(st.lists(st.tuples(anywhere, anywhere.map(lambda degrees: degrees / 2)), min_size=1, max_size=5))
def test_every_place_reads_its_own_cell(whole: Path, places: list[tuple[Decimal, Decimal]]) -> None:
    sensors = [Sensor("s", latitude=float(north), longitude=float(east)) for east, north in places]
    rates = read_half_hour(whole, NAME, [cell_of(sensor) for sensor in sensors])
    for rate, (east, north) in zip(rates, places, strict=True):
        middle = [
            (degrees / Decimal("0.1")).to_integral_value(ROUND_FLOOR) / 10 + Decimal("0.05")
            for degrees in (east, north)
        ]
        assert rate == pytest.approx(float(middle[0] + 180 + (middle[1] + 90) / 1000), abs=4e-5)


def test_the_mirrored_places_of_a_site_are_other_cells(whole: Path) -> None:
    site = Sensor("klamath", latitude=42.148, longitude=-121.849)
    mirrored = [(42.148, 121.849), (-42.148, -121.849), (-42.148, 121.849)]
    cells = [cell_of(site), *(cell_of(Sensor("m", latitude=north, longitude=east)) for north, east in mirrored)]
    rates = read_half_hour(whole, NAME, cells)
    assert cells[0] == (581, 1321) and (cells[0].longitude, cells[0].latitude) == (-121.85, 42.15)
    assert rates[0] == pytest.approx(180 - 121.85 + (90 + 42.15) / 1000, abs=4e-5)
    assert len(set(rates.tolist())) == 4


@given(anywhere)
def test_a_longitude_counted_eastward_to_360_is_the_same_place(east: Decimal) -> None:
    to_the_east = Sensor("s", latitude=1.0, longitude=float((east + 360) % 360))
    assert cell_of(to_the_east) == cell_of(Sensor("s", latitude=1.0, longitude=float(east)))


def test_the_western_and_southern_edges_of_all_cells_belong_to_them() -> None:
    rows = [cell_of(Sensor("s", latitude=number / 10, longitude=0.0)).row for number in range(-900, 900)]
    columns = [cell_of(Sensor("s", latitude=0.0, longitude=number / 10)).column for number in range(-1800, 1800)]
    assert rows == list(range(1800)) and columns == list(range(3600))


def test_the_date_line_and_the_poles_have_one_owner() -> None:
    assert cell_of(Sensor("s", latitude=0.0, longitude=180.0)) == cell_of(Sensor("s", latitude=0.0, longitude=-180.0))
    assert cell_of(Sensor("s", latitude=90.0, longitude=0.0)) == (1800, 1799)
    assert cell_of(Sensor("s", latitude=-90.0, longitude=179.99)) == (3599, 0)


def test_the_axes_of_the_file_count_and_not_the_order_they_come_in(tmp_path: Path) -> None:
    rates = np.arange(6, dtype=np.float32).reshape(3, 2)
    east, north = LONGITUDES[581:584], LATITUDES[1321:1323]
    cells = [ImergCell(581 + i, 1321 + j) for i in range(3) for j in range(2)]
    usual = read_half_hour(write_granule(tmp_path / "a", START, rates, east, north), NAME, cells)
    turned = write_granule(tmp_path / "b", START, rates[::-1, ::-1], east[::-1].copy(), north[::-1].copy())
    np.testing.assert_array_equal(read_half_hour(turned, NAME, cells), usual)
    np.testing.assert_array_equal(usual, np.arange(6))


@pytest.mark.parametrize("stored", [FILL, -0.01, np.inf, np.nan])
def test_what_is_no_rate_is_unknown(tmp_path: Path, stored: float) -> None:
    assert np.isnan(read_half_hour(small(tmp_path, rate=stored), NAME, [OREGON])).all()


def test_version_06_is_refused_by_its_name_and_by_its_content(recorded: Path) -> None:
    with pytest.raises(InputError, match="version 06 of IMERG; only version 07") as refused:
        read_half_hour(recorded / V06, V06, [ImergCell(0, 0)])
    assert refused.value.where == V06 and "version 07" in refused.value.hint
    with pytest.raises(InputError, match="layout of IMERG V07"):
        read_half_hour(recorded / V06, V07, [ImergCell(0, 0)])


@pytest.mark.parametrize(
    "name",
    [
        "3B-HHR-L.MS.MRG.3IMERG.20200101-S000000-E002959.0000.V07B.HDF5",
        "3B-HHR-E.MS.MRG.3IMERG.20200101-S000000-E002959.0000.V07B.HDF5",
        "3B-DAY.MS.MRG.3IMERG.20200101-S000000-E235959.V07B.nc4",
        "3B-HHR.MS.MRG.3IMERG.20200101-S000000-E002959.0000.V08A.HDF5",
        "readme.txt",
    ],
)
def test_other_products_runs_and_versions_are_refused_by_name(name: str) -> None:
    with pytest.raises(InputError) as refused:
        start_of(name)
    assert refused.value.where == name and refused.value.hint


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"axes": "time,lat,lon"}, "axes in the file: time,lat,lon; expected time,lon,lat"),
        ({"unit": "mm"}, "unit in the file: mm; expected mm/hr"),
        ({"epoch": "seconds since 1970-01-01 00:00:00 UTC"}, "epoch in the file"),
    ],
)
def test_a_file_with_another_layout_is_refused(tmp_path: Path, changed: dict[str, str], words: str) -> None:
    with pytest.raises(InputError, match=words):
        read_half_hour(small(tmp_path, **changed), NAME, [OREGON])


def test_a_file_that_holds_another_half_hour_than_its_name_says_is_refused(tmp_path: Path) -> None:
    path = small(tmp_path, start=START.replace(hour=22))
    with pytest.raises(InputError, match="start in the file: 2020-02-29T22:30") as refused:
        read_half_hour(path, NAME, [OREGON])
    assert refused.value.where == NAME


def test_a_cell_beyond_a_cut_file_is_refused_and_not_replaced_by_its_neighbour(tmp_path: Path) -> None:
    path = small(tmp_path)
    with pytest.raises(InputError, match=r"no cell at longitude -121\.45; it reaches from -121\.85 to -121\.65"):
        read_half_hour(path, NAME, [ImergCell(585, 1321)])
    with pytest.raises(InputError, match=r"no cell at latitude 42\.35"):
        read_half_hour(path, NAME, [ImergCell(582, 1323)])


def test_what_is_no_file_of_the_kind_is_refused(tmp_path: Path) -> None:
    (tmp_path / "page").write_text("<html>log in</html>")
    with pytest.raises(InputError, match="layout of IMERG V07") as refused:
        read_half_hour(tmp_path / "page", NAME, [OREGON])
    assert refused.value.where == NAME


@pytest.mark.parametrize("place", [(None, -121.0), (42.0, None), (91.0, 0.0), (0.0, 361.0)])
def test_a_sensor_without_a_place_is_named(place: tuple[float | None, float | None]) -> None:
    with pytest.raises(InputError, match="place of the sensor") as refused:
        cell_of(Sensor("11509500", latitude=place[0], longitude=place[1]))
    assert refused.value.where == "sensor 11509500"
