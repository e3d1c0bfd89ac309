"""Numbers for people: small ones keep the digits that count."""

import pytest

from candor.core.digits import number, significant


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (0.918, 3, "0.918"), (0.05, 3, "0.050"), (-0.00012345, 3, "-0.000123"), (0.0042, 2, "0.0042"),
        (0.0, 3, "0.000"), (1e-30, 3, "0.000000000000"), (12345.678, 1, "12,345.7"), (5.4, 0, "5"), (0.04, 1, "0.04"),
        (None, 3, "–"), (float("nan"), 3, "–"),
    ],
)  # fmt: skip
def test_small_numbers_keep_the_digits_that_count(value: float | None, digits: int, text: str) -> None:
    assert number(value, digits) == text


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (12345.678, 3, "12,346"), (-4139.52, 6, "-4,139.52"), (0.918, 3, "0.918"), (2.53e-9, 3, "0.00000000253"),
        (0.0, 3, "0"), (1e-30, 3, "0.000000000000"),
    ],
)  # fmt: skip
def test_numbers_are_written_with_the_digits_that_count(value: float, digits: int, text: str) -> None:
    assert significant(value, digits) == text
