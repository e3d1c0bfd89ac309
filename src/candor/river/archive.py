"""A basin as one archive that can be passed on: Parquet, CSV, JSON, the card, and a checksum of every file."""

import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

from candor.core.errors import InputError
from candor.core.files import atomic_file, sha256_of_file
from candor.data.panel_store import check_writable, is_panel_folder, load_panel
from candor.data.writers import export_panel

CHECKSUMS = "SHA256SUMS"
_LONG_AGO = (1980, 1, 1, 0, 0, 0)  # no time of its own: the same basin makes the same bytes


def check_archive_path(path: Path) -> None:
    """Refuses a name under which no archive can be written."""
    if Path(path).suffix != ".zip":
        raise InputError("an archive is a zip file", where=str(path), hint="give a name that ends in .zip")
    if Path(path).is_dir():
        raise InputError("this is a folder, and an archive is a file", where=str(path), hint="give another name")
    check_writable(path)


def export_archive(folder: Path, path: Path) -> list[str]:
    """Writes a basin's folder as a zip archive, all or nothing, and returns the names of the files in it.

    The panel's own files lie in `panel/`, the same content as CSV in `csv/`, and `SHA256SUMS` can be checked with
    `sha256sum --check`.
    """
    folder, path = Path(folder), Path(path)
    check_archive_path(path)
    if not is_panel_folder(folder):
        raise InputError("this is not a panel folder", where=str(folder), hint="build the basin first")
    with tempfile.TemporaryDirectory() as workplace:
        export_panel(load_panel(folder), Path(workplace), "csv")
        files = {f"panel/{file.relative_to(folder).as_posix()}": file for file in _files_in(folder)}
        files |= {f"csv/{file.name}": file for file in _files_in(Path(workplace))}
        try:
            _pack(files, path)
        except OSError as error:
            what = f"the archive cannot be written ({error.strerror or error})"
            raise InputError(what, where=str(path), hint="choose another place, or make room") from None
    return [*sorted(files), CHECKSUMS]


def _pack(files: Mapping[str, Path], path: Path) -> None:
    """Writes files under their names in the archive, and the checksum of each."""
    sums = "".join(f"{sha256_of_file(files[name])}  {name}\n" for name in sorted(files))
    with atomic_file(path) as temporary, zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(files):
            _add(archive, name, files[name].read_bytes())
        _add(archive, CHECKSUMS, sums.encode())


def _files_in(folder: Path) -> list[Path]:
    return [file for file in folder.rglob("*") if file.is_file()]


def _add(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    entry = zipfile.ZipInfo(name, _LONG_AGO)
    entry.external_attr = 0o644 << 16
    archive.writestr(entry, content, zipfile.ZIP_DEFLATED)
