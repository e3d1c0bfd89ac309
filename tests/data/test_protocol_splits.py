"""Every forecast belongs to one part, in order of time, and the last row of the record is never left out."""

import itertools
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from candor.core.errors import InputError
from candor.data.protocol import Split, SplitKind, split_origins


@dataclass(frozen=True)
class Record:
    """What is to be split, in shares of whole numbers so that the right sizes can be counted exactly."""

    length: int
    history: int
    horizon: int
    tickets: tuple[int, int, int]

    @property
    def shares(self) -> tuple[float, ...]:
        return tuple(tickets / sum(self.tickets) for tickets in self.tickets)


RECORDS = st.builds(
    Record,
    st.integers(1, 200),
    st.integers(1, 12),
    st.integers(1, 12),
    st.tuples(st.integers(0, 10), st.integers(0, 10), st.integers(0, 10)).filter(any),
)
KINDS: tuple[SplitKind, ...] = ("windows", "time")


def parts_of(split: Split) -> list[np.ndarray]:
    return [split.train, split.validation, split.test]


def target_rows(origins: np.ndarray, horizon: int) -> set[int]:
    return {int(origin) + step for origin in origins for step in range(horizon)}


def split_or_skip(record: Record, kind: SplitKind) -> Split:
    try:
        return split_origins(record.length, record.history, record.horizon, kind, record.shares)
    except InputError:
        assume(False)
        raise


@given(RECORDS)
@example(Record(5, 1, 2, (1, 0, 1)))  # three windows in two equal shares
def test_cut_windows_are_all_the_legal_ones_each_once(record: Record) -> None:
    split = split_or_skip(record, "windows")
    legal = [o for o in range(record.length) if o - record.history >= 0 and o + record.horizon <= record.length]
    assert np.concatenate(parts_of(split)).tolist() == legal
    for part, share in zip(parts_of(split), record.shares, strict=True):
        assert abs(len(part) - share * len(legal)) <= 1


@given(RECORDS)
def test_cut_windows_share_one_row_less_than_the_horizon_at_each_cut(record: Record) -> None:
    split = split_or_skip(record, "windows")
    parts = [part for part in parts_of(split) if len(part)]
    for one, other in itertools.pairwise(parts):
        shared = target_rows(one, record.horizon) & target_rows(other, record.horizon)
        assert len(shared) == record.horizon - 1
        assert other[0] == one[-1] + 1


@given(RECORDS)
def test_cut_time_keeps_targets_apart_and_forgets_none_inside_a_period(record: Record) -> None:
    split = split_or_skip(record, "time")
    length, tickets = record.length, record.tickets
    train, test = (length * drawn // sum(tickets) for drawn in (tickets[0], tickets[2]))
    periods = [range(0, train), range(train, length - test), range(length - test, length)]
    assert split.train_end == train
    for part, period in zip(parts_of(split), periods, strict=True):
        legal = [o for o in period if o >= record.history and o + record.horizon - 1 in period]
        assert part.tolist() == legal
    rows = [target_rows(part, record.horizon) for part in parts_of(split)]
    for one, other in itertools.combinations(rows, 2):
        assert not one & other


@given(RECORDS)
def test_the_last_window_ends_with_the_record(record: Record) -> None:
    assume(record.tickets[2] > 0)
    for kind in KINDS:
        split = split_or_skip(record, kind)
        assert split.test[-1] + record.horizon == record.length


@given(RECORDS)
def test_training_ends_after_its_last_target_and_before_any_other_is_new(record: Record) -> None:
    assume(record.tickets[0] > 0)
    for kind in KINDS:
        split = split_or_skip(record, kind)
        assert split.train[-1] + record.horizon == split.train_end
        later = [part for part in parts_of(split)[1:] if len(part)]
        assert all(part[-1] + record.horizon > split.train_end for part in later)


@given(RECORDS)
def test_a_part_that_was_asked_for_is_never_empty(record: Record) -> None:
    for kind in KINDS:
        try:
            split = split_origins(record.length, record.history, record.horizon, kind, record.shares)
        except InputError as refusal:
            assert "too few" in str(refusal)
            legal = max(0, record.length - record.history - record.horizon + 1)
            if kind == "windows":  # nothing that could be had is refused
                assert any(share > 0 and share * legal <= 1 for share in record.shares)
            continue
        for part, share in zip(parts_of(split), record.shares, strict=True):
            assert share == 0 or len(part)


@pytest.mark.parametrize(
    ("rows", "windows", "sizes"),
    [(34_272, 34_249, (23_974, 3_425, 6_850)), (52_116, 52_093, (36_465, 5_209, 10_419))],
)
def test_the_traffic_benchmarks_have_their_published_sizes(rows: int, windows: int, sizes: tuple[int, ...]) -> None:
    split = split_origins(rows, 12, 12, "windows", (0.7, 0.1, 0.2))
    assert tuple(map(len, parts_of(split))) == sizes
    assert sum(sizes) == windows


@pytest.mark.parametrize("horizon", [48, 96, 144, 192, 240])
def test_the_water_periods_have_their_published_sizes(horizon: int) -> None:
    split = split_origins(43_824, 48, horizon, "time", (0.6, 0.2, 0.2))
    first = [0, split.validation[0], split.test[0]]
    last = [part[-1] + horizon for part in parts_of(split)]
    assert [b - a for a, b in zip(first, last, strict=True)] == [26_294, 8_766, 8_764]
    assert split.train_end == 26_294
    assert split.train[0] == 48


def test_shares_that_fall_just_short_in_binary_are_not_robbed_of_a_row() -> None:
    assert 100 * 0.29 < 29
    assert split_origins(100, 1, 1, "time", (0.29, 0.42, 0.29)).train_end == 29


@pytest.mark.parametrize(
    "shares", [(0.5, 0.5, 0.5), (1.2, -0.4, 0.2), (0.0, 0.0, 0.0), (0.5, float("nan"), 0.5), (float("inf"), 0.0, 0.0)]
)
def test_shares_that_are_none_are_refused(shares: tuple[float, float, float]) -> None:
    for kind in KINDS:
        with pytest.raises(InputError, match=r"shares(.|\n)*e.g. shares=\[0.6,0.2,0.2\]"):
            split_origins(100, 2, 2, kind, shares)
