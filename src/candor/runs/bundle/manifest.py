"""What a bundle may hold, whether it holds just that, and how it is packed into one file.

A bundle is a run directory that can be given away: weights, settings, a card for people, the end of the record, and
`manifest.json` with the size and the SHA-256 of every other file. Only the names below have a place in it. All of them
are JSON, Markdown, safetensors or Parquet: nothing in a bundle can execute.

The manifest finds damage and mistakes. It does not say who made a bundle: whoever can change a file can change its
checksum, so everything is parsed by readers that expect the worst.

As one file a bundle is a ZIP archive, the same to the bit whenever the same files are packed. Unpacking trusts nothing
that an archive says: only names that have a place in a bundle are written, none of them twice, no more bytes than were
announced and no more than a bundle may have; whatever else is in it is refused before a byte is written.
"""

import json
import os
import re
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import Field, NonNegativeInt

from candor.core.errors import InputError
from candor.core.files import WriteError, atomic_file, check_version, in_plain_words, sha256_of_file
from candor.core.settings import Settings, parse_settings
from candor.core.text import first_line
from candor.runs.run import EVALUATION, MANIFEST, RECORD

FORMAT: Final = "candor-bundle"
FORMAT_VERSION: Final = 1
CARD = "README.md"
MOST_BYTES = 2**30
MOST_BYTES_OF_TEXT = 2**26
_NEEDED = (CARD, RECORD, "model/model.json", "model/state.safetensors")
_KNOWN = re.compile(
    rf"{re.escape(CARD)}|(source/)?({re.escape(RECORD)}|{re.escape(EVALUATION)})"
    r"|model/(model\.json|(state|calibration)\.safetensors)"
    r"|data/(panel\.json|(readings|edges)\.parquet|covariates/[^/\\:\x00-\x1f]+\.parquet)"
)
_TEXT = (".json", ".md")
_LONG_AGO = (1980, 1, 1, 0, 0, 0)  # the earliest time of a ZIP archive: no clock changes what is written
_COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_FOLDERS = ("source/", "model/", "data/", "data/covariates/")
_IS_ENCRYPTED = 0x1
_BYTES_AT_A_TIME = 2**20
_SIGNS_OF_DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, NotImplementedError, RuntimeError)
_HINT = "get the bundle again, or export it again: candor export RUN --bundle FILE.zip"


class BundledFile(Settings):
    """One file of a bundle."""

    bytes: NonNegativeInt
    """Its size."""
    sha256: str = Field(pattern="^[0-9a-f]{64}$")
    """The checksum of its content."""


class Manifest(Settings):
    """The content of manifest.json."""

    format: Literal["candor-bundle"] = FORMAT
    format_version: Literal[1] = FORMAT_VERSION
    files: dict[str, BundledFile]
    """Every other file by its path within the bundle."""

    def text(self) -> str:
        """Return the one spelling of the manifest."""
        return json.dumps(self.model_dump(mode="json"), indent=2, sort_keys=True) + "\n"


def write_manifest(folder: Path) -> None:
    """Write the manifest of the files that lie in a folder; a file that has no place in a bundle is refused."""
    files = {}
    for name in sorted(files_of(folder, str(folder))):
        check_name(name, str(folder))
        files[name] = BundledFile(bytes=(folder / name).stat().st_size, sha256=sha256_of_file(folder / name))
    (folder / MANIFEST).write_text(Manifest(files=files).text(), encoding="utf-8")


def check_folder(folder: Path, where: str) -> None:
    """Raise InputError unless the folder holds just what its manifest says, to the last byte.

    Args:
        folder: the bundle, unpacked.
        where: what people call it, for messages.
    """
    manifest = _read_manifest(folder / MANIFEST, where)
    check_sizes({name: entry.bytes for name, entry in manifest.files.items()}, where)
    found = set(files_of(folder, where)) - {MANIFEST}
    if extra := sorted(found - manifest.files.keys()):
        raise _damaged(f"it holds a file that its manifest does not name: {extra[0]!r}", where)
    if lacking := sorted(manifest.files.keys() - found):
        raise _damaged(f"the file {lacking[0]} is missing", where)
    for name, entry in manifest.files.items():
        if (folder / name).stat().st_size != entry.bytes or sha256_of_file(folder / name) != entry.sha256:
            raise _damaged(f"the file {name} is not the one that was exported: it was changed or cut short", where)
        if name.endswith(".json"):
            parse_json(folder / name, where)


def check_name(name: str, where: str) -> None:
    """Raise InputError unless a file of this name has a place in a bundle; what is not known is not looked at."""
    if name != MANIFEST and not _KNOWN.fullmatch(name):
        raise InputError(f"a file called {name!r} has no place in a bundle", where=where, hint=_HINT)


def check_sizes(sizes: dict[str, int], where: str) -> None:
    """Raise InputError unless files of these sizes by name make up a bundle that can be opened without harm."""
    for name, size in sizes.items():
        check_name(name, where)
        if name.endswith(_TEXT) and size > MOST_BYTES_OF_TEXT:
            raise _too_large(f"the file {name} would take {size:,} bytes", MOST_BYTES_OF_TEXT, where)
    if (total := sum(sizes.values())) > MOST_BYTES:
        raise _too_large(f"its files would take {total:,} bytes", MOST_BYTES, where)
    if lacking := [name for name in _NEEDED if name not in sizes]:
        raise _damaged(f"the file {lacking[0]} is missing", where)


def parse_json(path: Path, where: str) -> Any:
    """Return the content of a JSON file, also of one that was made to exhaust the reader."""
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise _damaged(f"the file {path.name} is not readable JSON ({first_line(error)})", where) from None


def _read_manifest(path: Path, where: str) -> Manifest:
    if not path.is_file() or path.is_symlink():
        raise InputError(
            f"this is not a bundle: it has no {MANIFEST}", where=where, hint="make one: candor export RUN --bundle DIR"
        )
    if path.stat().st_size > MOST_BYTES_OF_TEXT:
        raise _too_large(f"its {MANIFEST} takes {path.stat().st_size:,} bytes", MOST_BYTES_OF_TEXT, where)
    content = parse_json(path, where)
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise InputError(f"this is not a candor bundle: its {MANIFEST} says something else", where=where)
    hint = "use the version of candor that made it, or export it again with this one"
    check_version(content.get("format_version"), FORMAT_VERSION, "bundle", where, hint)
    manifest = parse_settings(Manifest, content, f"{where}: {MANIFEST}")
    if path.read_bytes() != manifest.text().encode():
        raise _damaged(f"its {MANIFEST} was changed", where)
    return manifest


def files_of(folder: Path, where: str) -> Iterator[str]:
    """Yield the paths of all files within a folder; links, which may lead anywhere, are refused."""
    for place, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(place) / name
            if path.is_symlink() or not (path.is_dir() or path.is_file()):
                raise _damaged(f"{path.relative_to(folder).as_posix()!r} is neither a file nor a folder", where)
        for name in files:
            yield (Path(place) / name).relative_to(folder).as_posix()


def pack(folder: Path, path: Path) -> None:
    """Write all files of a folder to one archive, all or nothing."""
    names = sorted(file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file())
    with atomic_file(path) as temporary, zipfile.ZipFile(temporary, "w") as archive:
        for name in names:
            entry = zipfile.ZipInfo(name, _LONG_AGO)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, (folder / name).read_bytes(), compresslevel=9)


def unpack(path: Path, folder: Path) -> None:
    """Write the files of an archive to a folder, which is made; an archive that is no bundle is refused."""
    try:
        with zipfile.ZipFile(path) as archive:
            entries = _entries(archive, str(path))
            for entry in entries:
                _write(archive, entry, folder / entry.filename)
    except WriteError:  # there is no room, which is not the archive's fault
        raise
    except _SIGNS_OF_DAMAGE as error:
        raise InputError(
            f"this is not a bundle, or a damaged one: it cannot be unpacked ({error})",
            where=str(path),
            hint=_HINT,
        ) from None


def lists_a_bundle(path: Path) -> bool:
    """Return whether a file is an archive of what a bundle has and nothing else; its content is not looked at."""
    try:
        with zipfile.ZipFile(path) as archive:
            return bool(_entries(archive, str(path)))
    except (InputError, *_SIGNS_OF_DAMAGE):
        return False


def _entries(archive: zipfile.ZipFile, where: str) -> list[zipfile.ZipInfo]:
    """Return the files of an archive if all of them may be written."""
    entries = [entry for entry in archive.infolist() if entry.orig_filename not in _FOLDERS]
    sizes: dict[str, int] = {}
    for entry in entries:
        check_name(entry.orig_filename, where)  # as it is written in the archive: zipfile changes some names
        if entry.orig_filename in sizes:
            raise InputError(f"the bundle holds {entry.orig_filename} twice", where=where)
        if entry.flag_bits & _IS_ENCRYPTED or entry.compress_type not in _COMPRESSIONS:
            raise InputError(f"{entry.orig_filename} is encrypted or compressed in an unknown way", where=where)
        sizes[entry.orig_filename] = entry.file_size
    if MANIFEST not in sizes:
        raise InputError(f"this is not a bundle: it has no {MANIFEST}", where=where)
    check_sizes(sizes, where)
    return entries


def _write(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, target: Path) -> None:
    left = entry.file_size
    with in_plain_words(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        target.touch(exist_ok=False)
    with archive.open(entry) as source:
        while part := source.read(_BYTES_AT_A_TIME):
            left -= len(part)
            if left < 0:
                raise ValueError(f"{entry.filename} holds more than was announced")
            with in_plain_words(target), target.open("ab") as file:
                file.write(part)


def _damaged(what: str, where: str) -> InputError:
    return InputError(f"the bundle is damaged: {what}", where=where, hint=_HINT)


def _too_large(what: str, most: int, where: str) -> InputError:
    return InputError(f"the bundle is too large: {what}; at most {most:,} are opened", where=where, hint=_HINT)
