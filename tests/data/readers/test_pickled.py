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

from candor.core.errors import InputError
from candor.data.readers.matrices import read_pickled_adjacency

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


def lying(shape: bytes) -> bytes:
    """Returns a stored matrix with another shape written over its own."""
    return b"\x80\x02" + python_2_array(MATRIX).replace(b"K\x03K\x03\x86", shape + b"\x86") + b"."


def broad_key(between: bytes) -> bytes:
    """Returns a dictionary whose key is a pair of the same pair of the same pair, a hundred deep.

    It takes few bytes, and forever to be hashed.
    """
    pairs = (b"h%ch%c\x86%sq%c" % (i, i, between, i + 1) for i in range(100))
    return b"\x80\x02K\x00\x85" + between + b"q\x00" + b"".join(pairs) + b"}h\x64K\x00s."


NEEDLESS, PARTS, REFERENCE, NAME = "that no matrix needs", "more parts", "references", "asks for"
HOSTILE: dict[str, tuple[str, bytes]] = {
    "an instance in the old way": (NEEDLESS, b"(S'touch MARK'\nios\nsystem\n."),
    "an object in the old way": (NEEDLESS, b"(cos\nsystem\nS'touch MARK'\no."),
    "a new object": (NEEDLESS, b"\x80\x02cos\nsystem\nS'touch MARK'\n\x85\x81."),
    "a name": (NAME, b"cos\nsystem\n(S'touch MARK'\ntR."),
    "a name from the stack": (NAME, b"\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\x0atouch MARK\x85R."),
    "a dotted name": (NAME, b"\x80\x04\x8c\x05numpy\x8c\x11ndarray.__class__\x93."),
    "a state set on a name": ("meaning", b"\x80\x02cnumpy\nndarray\n}U\x0c__setstate__cnumpy\ndtype\nsb."),
    "slots set on a name": ("meaning", b"\x80\x02cnumpy\ndtype\nN}U\x04nameU\x01xs\x86b."),
    "a call of a result": ("not callable", b"\x80\x02cnumpy\ndtype\nU\x02f4\x85RU\x01x\x85R."),
    "a registered extension": (NEEDLESS, b"\x80\x02\x82\x01."),
    "a thing outside": (NEEDLESS, b"Poutside\n."),
    "a thing outside, binary": (NEEDLESS, b"\x80\x02U\x07outsideQ."),
    "a buffer outside": (NEEDLESS, b"\x80\x05\x97."),
    "a far reference": (REFERENCE, b"\x80\x02]r\xff\xff\xff\x7f."),
    "a far reference in digits": (REFERENCE, b"]p999999999999\n."),
    "a list that holds itself": (REFERENCE, b"\x80\x02]q\x00h\x00a."),
    "a broad key": (REFERENCE, broad_key(b"")),
    "a broad key behind an empty list": (REFERENCE, broad_key(b"(e")),
    "a deep key": (PARTS, b"\x80\x02})" + b"\x85" * 200_000 + b"K\x00s."),
    "a frame that is not there": (PARTS, b"\x80\x04\x95\xff\xff\xff\xff\xff\xff\xff\x00]."),
    "bytes that are not there": ("remain", b"\x80\x04\x8e\xff\xff\xff\xff\xff\x00\x00\x00abc."),
    "a number of a million digits": ("limit", b"L" + b"9" * 1_000_000 + b"L\n."),
    "lists in lists": ("neither", b"\x80\x02" + b"]" * 100_000 + b"a" * 99_999 + b"."),
    "nothing": ("underflow|empty", b"."),
    "another codec": ("numbers of its matrix", pickle.dumps(MATRIX, 2).replace(b"latin1", b"rot_13")),
    "objects for numbers": ("plain numbers", pickle.dumps(MATRIX, 2).replace(b"f4", b"O8")),
    "texts for numbers": ("plain numbers", pickle.dumps(MATRIX, 2).replace(b"f4", b"S4")),
    "a shape too large": ("do not fill", lying(b"K\xffK\xff")),
    "a shape too small": ("do not fill", lying(b"K\x02K\x02")),
    "a shape below zero": ("shape", lying(b"J\xfd\xff\xff\xffJ\xfd\xff\xff\xff")),
}  # fmt: skip


@pytest.mark.parametrize("name", list(HOSTILE))
def test_hostile_steps_are_refused(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    word, content = HOSTILE[name]
    with pytest.raises(InputError, match=word):
        read(tmp_path, content)
    assert not (tmp_path / "MARK").exists()


def test_a_trap_leaves_nothing_behind_in_the_process(tmp_path: Path) -> None:
    for name in ("a state set on a name", "slots set on a name"):
        with pytest.raises(InputError):
            read(tmp_path, HOSTILE[name][1])
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
