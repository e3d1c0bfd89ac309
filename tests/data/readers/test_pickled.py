"""A pickled adjacency gives its matrix, and whatever else a pickle holds is neither run nor believed."""

import os
import pickle
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from candor.data.readers.pickled import read_pickled_adjacency
from candor.errors import InputError

IDS = ["773869", "767541", "717447"]
MATRIX = np.array([[1, 0.5, 0], [0.25, 1, 0], [0, 0.125, 1]], np.float32)
CLASSIC = [IDS, {"773869": 0, "767541": 1, "717447": 2}, MATRIX]


def read(folder: Path, content: bytes) -> tuple[tuple[str, ...], Any]:
    path = folder / "adj_mx.pkl"
    path.write_bytes(content)
    return read_pickled_adjacency(path)


def python_2_text(text: bytes) -> bytes:
    return b"T" + struct.pack("<i", len(text)) + text


def python_2_array(matrix: np.ndarray, module: bytes = b"numpy.core.multiarray") -> bytes:
    """Returns the steps by which Python 2 stored an array: its bytes are an ordinary text."""
    rows, columns = matrix.shape
    return (
        b"c" + module + b"\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R"
        + b"(K\x01K" + bytes([rows]) + b"K" + bytes([columns]) + b"\x86"
        + b"cnumpy\ndtype\nU\x02f4K\x00K\x01\x87R(K\x03U\x01<NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
        + b"\x89" + python_2_text(matrix.astype("<f4").tobytes()) + b"tb"
    )  # fmt: skip


@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize("kind", ["<f4", "<f8", ">f4", "<i8", "|u1", "|b1"])
def test_what_numpy_stores_in_any_protocol_comes_back(protocol: int, kind: str, tmp_path: Path) -> None:
    matrix = (MATRIX * 8).astype(kind)
    for stored in (matrix, np.asfortranarray(matrix), matrix.T, matrix[::-1, ::-1]):
        ids, found = read(tmp_path, pickle.dumps([IDS, CLASSIC[1], stored], protocol))
        assert ids == tuple(IDS)
        assert found.dtype == np.float32
        np.testing.assert_array_equal(found, stored.astype(np.float32))


@pytest.mark.parametrize("protocol", range(6))
def test_a_bare_matrix_has_no_ids(protocol: int, tmp_path: Path) -> None:
    ids, found = read(tmp_path, pickle.dumps(MATRIX, protocol))
    assert ids == ()
    np.testing.assert_array_equal(found, MATRIX)


@pytest.mark.parametrize("module", [b"numpy.core.multiarray", b"numpy._core.multiarray"])
def test_a_file_of_python_2_is_read(module: bytes, tmp_path: Path) -> None:
    names = b"".join(python_2_text(text.encode()) for text in IDS)
    index = b"".join(python_2_text(text.encode()) + b"K" + bytes([i]) for i, text in enumerate(IDS))
    content = b"\x80\x02](](" + names + b"e}(" + index + b"u" + python_2_array(MATRIX, module) + b"e."
    ids, found = read(tmp_path, content)
    assert ids == tuple(IDS)
    np.testing.assert_array_equal(found, MATRIX)


@settings(max_examples=20, deadline=None)
@given(order=st.permutations(range(3)), as_numbers=st.booleans())
def test_ids_stand_in_the_order_of_their_index(
    order: list[int], as_numbers: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    keys: list[Any] = [int(text) for text in IDS] if as_numbers else IDS
    index = dict(zip(keys, order, strict=True))
    ids, _ = read(tmp_path_factory.getbasetemp(), pickle.dumps([keys, index, MATRIX], 2))
    assert [ids[place] for place in order] == IDS


class Trap:
    """Runs a command when unpickled by Python's own machinery."""

    def __init__(self, called: Any, *arguments: Any) -> None:
        self.called, self.arguments = called, arguments

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return self.called, self.arguments


def traps(mark: Path) -> dict[str, Any]:
    shell = Trap(os.system, f"touch '{mark}'")
    python = Trap(eval, f"open({str(mark)!r}, 'w').close()")
    return {
        "shell": shell,
        "eval": python,
        "instead of the ids": [shell, CLASSIC[1], MATRIX],
        "instead of an index": [IDS, {"773869": python}, MATRIX],
        "instead of the matrix": [*CLASSIC[:2], shell],
        "beside the matrix": [*CLASSIC, shell],
        "nested": Trap(getattr, Trap(getattr, shell, "x"), "y"),
        "an array of objects": np.array([[shell]], dtype=object),
        "as a key": [IDS, {(shell,): 0}, MATRIX],
    }


@pytest.mark.parametrize("name", list(traps(Path("unused"))))
@pytest.mark.parametrize("protocol", range(6))
def test_a_trap_does_not_go_off(name: str, protocol: int, tmp_path: Path) -> None:
    mark = tmp_path / "went off"
    content = pickle.dumps(traps(mark)[name], protocol)
    with pytest.raises(InputError):
        read(tmp_path, content)
    assert not mark.exists()


@pytest.mark.parametrize("name", ["shell", "eval"])
def test_the_traps_have_teeth(name: str, tmp_path: Path) -> None:
    called, arguments = traps(tmp_path / "went off")[name].__reduce__()
    called(*arguments)
    assert (tmp_path / "went off").exists()


HOSTILE = {
    "an instance in the old way": b"(S'touch MARK'\nios\nsystem\n.",
    "an object in the old way": b"(cos\nsystem\nS'touch MARK'\no.",
    "a new object": b"\x80\x02cos\nsystem\nS'touch MARK'\n\x85\x81.",
    "a name from the stack": b"\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\x0atouch MARK\x85R.",
    "a dotted name": b"\x80\x04\x8c\x05numpy\x8c\x11ndarray.__class__\x93.",
    "a state set on a name": b"\x80\x02cnumpy\nndarray\n}U\x0c__setstate__cnumpy\ndtype\nsb.",
    "slots set on a name": b"\x80\x02cnumpy\ndtype\nN}U\x04nameU\x01xs\x86b.",
    "a call of a result": b"\x80\x02cnumpy\ndtype\nU\x02f4\x85RU\x01x\x85R.",
    "a registered extension": b"\x80\x02\x82\x01.",
    "a thing outside": b"Poutside\n.",
    "a thing outside, binary": b"\x80\x02U\x07outsideQ.",
    "a buffer outside": b"\x80\x05\x97.",
    "a far reference": b"\x80\x02]r\xff\xff\xff\x7f.",
    "a far reference in digits": b"]p999999999999\n.",
    "bytes that are not there": b"\x80\x04\x8e\xff\xff\xff\xff\xff\x00\x00\x00abc.",
    "a frame that is not there": b"\x80\x04\x95\xff\xff\xff\xff\xff\xff\xff\x00].",
    "a number of a million digits": b"L" + b"9" * 1_000_000 + b"L\n.",
    "a deep key": b"\x80\x02}" + b")" + b"\x85" * 200_000 + b"K\x00s.",
    "a broad key": b"\x80\x02}K\x00\x85q\x00" + b"".join(
        b"h" + bytes([i]) + b"h" + bytes([i]) + b"\x86q" + bytes([i + 1]) for i in range(100)
    ) + b"K\x00s.",
    "a broad key behind a list": b"\x80\x02}K\x00\x85(eq\x00" + b"".join(
        b"h" + bytes([i]) + b"h" + bytes([i]) + b"\x86(eq" + bytes([i + 1]) for i in range(100)
    ) + b"K\x00s.",
    "lists in lists": b"\x80\x02" + b"]" * 100_000 + b"a" * 99_999 + b".",
    "nothing": b".",
    "a list that holds itself": b"\x80\x02]q\x00h\x00a.",
    "another codec": pickle.dumps(MATRIX, 2).replace(b"latin1", b"rot_13"),
    "another kind of numbers": pickle.dumps(MATRIX, 2).replace(b"f4", b"O8"),
    "text that is not bytes": b"\x80\x02" + python_2_array(MATRIX).replace(
        python_2_text(MATRIX.tobytes()), b"X\x03\x00\x00\x00\xe2\x82\xac"
    ) + b".",
    "a shape that lies": b"\x80\x02" + python_2_array(MATRIX).replace(b"K\x03K\x03\x86", b"K\xffK\xff\x86") + b".",
    "a shape below zero": b"\x80\x02" + python_2_array(MATRIX).replace(
        b"K\x03K\x03\x86", b"J\xfd\xff\xff\xffJ\xfd\xff\xff\xff\x86"
    ) + b".",
}  # fmt: skip


@pytest.mark.parametrize("name", list(HOSTILE))
def test_hostile_steps_are_refused(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="cannot be read"):
        read(tmp_path, HOSTILE[name])
    assert not (tmp_path / "MARK").exists()


def test_a_trap_leaves_nothing_behind_in_the_process(tmp_path: Path) -> None:
    for name in ("a state set on a name", "slots set on a name"):
        with pytest.raises(InputError):
            read(tmp_path, HOSTILE[name])
    np.testing.assert_array_equal(read(tmp_path, pickle.dumps(CLASSIC, 2))[1], MATRIX)


@pytest.mark.parametrize(
    ("content", "word"),
    [
        ([IDS, {"773869": 0, "767541": 1}, MATRIX], "index"),
        ([IDS, {"773869": 0, "767541": 1, "717447": 1}, MATRIX], "index"),
        ([IDS, {"773869": 0, "767541": 1, "other": 2}, MATRIX], "different"),
        ([IDS, {"773869": 0, 773869: 1, "717447": 2}, MATRIX], "more than once"),
        ([IDS[:2], {"773869": 0, "767541": 1}, MATRIX[:2]], "square"),
        ([IDS, list(IDS), MATRIX], "index"),
        (MATRIX[0], "square"),
        (IDS, "not one"),
        ({}, "neither"),
    ],
)
def test_contradictions_are_said_in_plain_words(content: Any, word: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=word) as caught:
        read(tmp_path, pickle.dumps(content, 2))
    assert "adj_mx.pkl" in caught.value.where


@settings(max_examples=300, deadline=None)
@given(
    protocol=st.integers(0, 5),
    is_bare=st.booleans(),
    changes=st.lists(st.tuples(st.integers(0, 2000), st.integers(0, 255)), max_size=4),
    length=st.none() | st.integers(1, 600),
)
def test_damage_gives_an_input_error_or_a_square_matrix(
    protocol: int,
    is_bare: bool,
    changes: list[tuple[int, int]],
    length: int | None,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    content = bytearray(pickle.dumps(MATRIX if is_bare else CLASSIC, protocol))
    for place, byte in changes:
        content[place % len(content)] = byte
    try:
        ids, matrix = read(tmp_path_factory.getbasetemp(), bytes(content[:length]))
    except InputError:
        return
    assert matrix.ndim == 2 and matrix.shape[0] == matrix.shape[1]
    assert len(ids) in (0, len(matrix))
