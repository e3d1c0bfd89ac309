"""A square matrix in a table of text, and the sensor ids around it."""

from dataclasses import dataclass

from candor.data.readers.small_tables import IdLookup, SmallTable, is_number, numbers_of


@dataclass(frozen=True)
class TextMatrix:
    """A square matrix of text, with the labels it has at the left and on top."""

    left: list[str] | None
    top: list[str] | None
    cells: list[list[str]]
    lines: list[int]

    def holds_numbers(self) -> bool:
        """Returns whether every cell is a number or empty."""
        return not any(numbers_of(row)[1] for row in self.cells)


def find_matrix(grid: SmallTable, sensors: IdLookup) -> TextMatrix | None:
    """Returns the matrix in a table, which may have sensor ids on top, at the left, or both."""
    rows, lines = grid.rows, grid.numbers
    height, width = len(rows), len(rows[0])
    top, left = [cell.strip() for cell in rows[0]], [row[0].strip() for row in rows]
    if height == width + 1:
        return TextMatrix(None, top, rows[1:], lines[1:])
    if width == height + 1:
        return TextMatrix(left, None, [row[1:] for row in rows], lines)
    if height != width:
        return None
    labels = set(top[1:])
    is_alike = labels == set(left[1:]) and len(labels) == width - 1
    is_framed = bool(numbers_of(list(labels))[1])  # words can only be labels
    if height == len(sensors.ids):  # a bare matrix would look like this too
        is_known = bool((sensors.positions(labels) >= 0).any())
        is_framed |= is_alike and is_known and not is_number(top[0])
    else:
        is_framed |= not is_number(top[0])
        is_framed |= is_alike and height == len(sensors.ids) + 1
    if is_framed:
        return TextMatrix(left[1:], top[1:], [row[1:] for row in rows[1:]], lines[1:])
    return TextMatrix(None, None, rows, lines)
