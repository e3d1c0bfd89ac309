"""Files and folders that are written atomically, locks on folders, JSON, and checksums."""

import ctypes
import hashlib
import json
import os
import re
import secrets
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from safetensors import SafetensorError

from candor.core.errors import InputError


class WriteError(InputError, OSError):
    """Something could not be written: the disk is full, or the place is not to be written to. What was there stays."""


class MissingFileError(InputError):
    """A file is not there."""


@contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """Yield a temporary sibling of `path` that replaces it only when the block ends well.

    It has the rights of the file that it replaces, else those that the user's new files have.
    """
    with _replacing(Path(path), lambda new: new.touch(exist_ok=False), Path.is_file, 0o600, Path.replace) as temporary:
        yield temporary


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """Yield a temporary folder that takes the place of `path` only when the block ends well.

    On Linux the old folder and the new one change places in one step, so that a program that is killed at any moment
    leaves one of them whole under `path`. Systems and file systems that cannot do this (NFS) need two steps, and a kill
    between them leaves the old folder beside `path` under a name that begins with a dot.
    """
    with _replacing(Path(path), Path.mkdir, Path.is_dir, 0o700, _swap_in) as temporary:
        yield temporary


@contextmanager
def _replacing(
    path: Path,
    make: Callable[[Path], None],
    is_there: Callable[[Path], bool],
    rights_to_write: int,
    swap_in: Callable[[Path, Path], object],
) -> Iterator[Path]:
    """Yield a new sibling of `path`, flush what is written to it, and put it in place."""
    with in_plain_words(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        # A name that `remove_leftovers` knows. `tempfile` has such names too, but what it makes is for its owner only,
        # whatever rights the user gives new files.
        temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
        make(temporary)
        try:
            rights = stat.S_IMODE((path if is_there(path) else temporary).stat().st_mode)
            temporary.chmod(rights | rights_to_write)
            yield temporary
            for written in (temporary, *temporary.rglob("*")):
                if written.is_file():
                    _flush_to_disk(written)
            temporary.chmod(rights)
            swap_in(temporary, path)
        finally:
            _remove(temporary)


@contextmanager
def locked_folder(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder, made if it is not there, until the block or the process ends.

    Raises BlockingIOError if another process holds it. Where there are no locks, on Windows and on some network file
    systems, nothing is held.
    """
    with in_plain_words(folder):
        folder.mkdir(parents=True, exist_ok=True)
    try:
        import fcntl
    except ImportError:
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise
        except OSError:
            pass
        yield
    finally:
        os.close(descriptor)


def remove_leftovers(path: Path) -> None:
    """Remove what killed writers of `path` left beside it; no other process may be writing it.

    A whole folder that was to be replaced in two steps (see `atomic_folder`) is no leftover: it may be the only one.
    """
    ours = re.compile(rf"\.{re.escape(path.name)}\.[a-z0-9_]{{8}}")
    with suppress(OSError):  # a folder that is not there holds nothing
        for sibling in path.parent.iterdir():
            if ours.fullmatch(sibling.name):
                _remove(sibling)


@contextmanager
def in_plain_words(path: Path) -> Iterator[None]:
    """Turn what the file system, or a writer of tensors, says into an error that people can act on."""
    try:
        yield
    except InputError:
        raise
    except (OSError, SafetensorError) as error:
        reason = getattr(error, "strerror", None)
        failure = WriteError(
            f"this could not be written ({reason or error}); nothing was changed",
            where=str(path),
            hint="make room on the disk, or name a place that can be written to, and try again",
        )
        failure.strerror = reason  # alone, for messages of their own
        raise failure from error


@contextmanager
def looking_at(path: Path) -> Iterator[None]:
    """Turn the refusal of the file system to look at a path into an error that people can act on."""
    try:
        yield
    except InputError:
        raise
    except OSError as error:
        raise out_of_reach(path, error) from None


def out_of_reach(path: Path | str, error: OSError) -> InputError:
    """Return the plain-words form of what the file system said about a path that was only looked at."""
    return InputError(
        f"this cannot be looked at ({error.strerror or error})",
        where=str(path),
        hint="check the spelling of the path, and that you may enter all the folders on the way",
    )


def _swap_in(temporary: Path, path: Path) -> None:
    """Put the new folder where the old one was; the old one goes only after the new one stands."""
    if not os.path.lexists(path):
        temporary.replace(path)
    elif not _exchange(temporary, path):
        old = Path(tempfile.mkdtemp(prefix=f".{path.name}.old.", dir=path.parent)) / "was"
        try:
            path.replace(old)
            temporary.replace(path)
        except BaseException as error:  # Ctrl-C too may come between the steps
            _bring_back(old, path, error)
            raise
        _remove(old.parent)


def _bring_back(old: Path, path: Path, reason: BaseException) -> None:
    """Put the old folder where it was if nothing stands there; if that fails, say where it lies."""
    if os.path.lexists(old) and not os.path.lexists(path):
        try:
            old.replace(path)
        except OSError:
            raise WriteError(
                f"this could not be written ({reason}), and what was there lies in {old}",
                where=str(path),
                hint="move it back, make room on the disk, and try again",
            ) from reason
    with suppress(OSError):
        old.parent.rmdir()


def _exchange(one: Path, other: Path) -> bool:
    """Let two paths change places in one step; returns whether the system can do that."""
    here, exchange = -100, 2  # AT_FDCWD and RENAME_EXCHANGE of Linux
    try:
        rename = ctypes.CDLL(None).renameat2
    except (OSError, AttributeError, TypeError):  # not Linux, or a C library from before 2018
        return False
    # Any failure may mean that this file system cannot; if there is another reason, plain renaming will say so.
    return bool(rename(here, os.fsencode(one), here, os.fsencode(other), exchange) == 0)


def _remove(path: Path) -> None:
    """Remove whatever stands under a path; what cannot be removed stays."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink(missing_ok=True)


def _flush_to_disk(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())


def write_json(path: Path, content: Any) -> None:
    """Write readable JSON atomically; NaN has no place in JSON and is refused."""
    text = json.dumps(content, indent=2, allow_nan=False, ensure_ascii=False)
    with atomic_file(path) as temporary:
        temporary.write_text(text + "\n", encoding="utf-8")


def read_json(path: Path) -> Any:
    """Return the content of a JSON file, or say in plain words why it cannot."""
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise MissingFileError("the file is not there", where=str(path)) from None
    except (OSError, ValueError) as error:
        raise InputError(f"the file is not readable JSON ({error})", where=str(path)) from None


def is_of_format(path: Path, name: str) -> bool:
    """Return whether a JSON file is there that states a format, which marks the folders that candor writes."""
    try:
        content = read_json(path)
    except InputError:
        return False
    return isinstance(content, dict) and content.get("format") == name


def check_version(found: object, version: int, thing: str, where: Path | str, hint: str) -> None:
    """Refuse what was written in another version of its format."""
    if found != version:
        what = f"the {thing} has format version {found}; this candor reads {version}"
        raise InputError(what, where=str(where), hint=hint)


def check_replaceable(folder: Path, mark: str, form: str, what: str) -> None:
    """Refuse a folder that holds anything but an earlier one of its kind: all of it would be lost.

    Args:
        folder: that is to be made anew.
        mark: name of the JSON file that tells such folders.
        form: the format that this file states.
        what: what takes its place, for people.
    """
    if folder.exists() and not folder.is_dir():
        hint = "choose another place: --out DIR"
        raise InputError("this is a file, and a folder is needed", where=str(folder), hint=hint)
    if folder.is_dir() and any(folder.iterdir()) and not is_of_format(folder / mark, form):
        raise InputError(
            f"this folder holds other things, and {what} takes the place of all that is in its folder",
            where=str(folder),
            hint="choose an empty folder or a new one: --out DIR",
        )


def sha256_of_file(path: Path) -> str:
    """Return the SHA-256 of a file's bytes, read in pieces."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
