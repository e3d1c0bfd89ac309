"""A bundle as one file: a ZIP archive that is the same to the bit whenever the same files are packed.

Unpacking trusts nothing that an archive says: only names that have a place in a bundle are written, none of them
twice, no more bytes than were announced and no more than a bundle may have; whatever else is in it is refused before a
byte is written.
"""

import zipfile
import zlib
from pathlib import Path

from candor.core.errors import InputError
from candor.core.files import WriteError, atomic_file, in_plain_words
from candor.runs.bundle.manifest import MANIFEST, check_name, check_sizes

_LONG_AGO = (1980, 1, 1, 0, 0, 0)  # the first moment a ZIP archive can tell: no clock changes what is written
_COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_FOLDERS = ("source/", "model/", "data/", "data/covariates/")
_IS_ENCRYPTED = 0x1
_BYTES_AT_A_TIME = 2**20
_SIGNS_OF_DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, NotImplementedError, RuntimeError)


def pack(folder: Path, path: Path) -> None:
    """Writes all files of a folder to one archive, all or nothing."""
    names = sorted(file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file())
    with atomic_file(path) as temporary, zipfile.ZipFile(temporary, "w") as archive:
        for name in names:
            entry = zipfile.ZipInfo(name, _LONG_AGO)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, (folder / name).read_bytes(), compresslevel=9)


def unpack(path: Path, folder: Path) -> None:
    """Writes the files of an archive to a folder, which is made; an archive that is no bundle is refused."""
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
            hint="get the bundle again, or export it again: candor export RUN --bundle FILE.zip",
        ) from None


def lists_a_bundle(path: Path) -> bool:
    """Returns whether a file is an archive of what a bundle has and nothing else; its content is not looked at."""
    try:
        with zipfile.ZipFile(path) as archive:
            return bool(_entries(archive, str(path)))
    except (InputError, *_SIGNS_OF_DAMAGE):
        return False


def _entries(archive: zipfile.ZipFile, where: str) -> list[zipfile.ZipInfo]:
    """Returns the files of an archive if all of them may be written."""
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
