"""What a bundle may hold, and whether it holds just that.

A bundle is a run directory that can be given away: weights, settings, a card for people, the end of the record, and
`manifest.json` with the size and the SHA-256 of every other file. Only the names below have a place in it. All of them
are JSON, Markdown, safetensors or Parquet: nothing in a bundle can execute.

The manifest finds damage and mistakes. It does not say who made a bundle: whoever can change a file can change its
checksum, so everything is parsed by readers that expect the worst.
"""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import Field, NonNegativeInt

from candor.core.errors import InputError
from candor.core.files import sha256_of_file
from candor.core.settings import Settings, parse_settings
from candor.core.text import first_line
from candor.runs.run import EVALUATION, RECORD

FORMAT: Final = "candor-bundle"
FORMAT_VERSION: Final = 1
MANIFEST, CARD = "manifest.json", "README.md"
MOST_BYTES = 2**30
MOST_BYTES_OF_TEXT = 2**26
_NEEDED = (CARD, RECORD, "model/model.json", "model/state.safetensors")
_KNOWN = re.compile(
    rf"{re.escape(CARD)}|(source/)?({re.escape(RECORD)}|{re.escape(EVALUATION)})"
    r"|model/(model\.json|(state|calibration)\.safetensors)"
    r"|data/(panel\.json|(readings|edges)\.parquet|covariates/[^/\\:\x00-\x1f]+\.parquet)"
)
_TEXT = (".json", ".md")
_MEND = "get the bundle again, or export it again: candor export RUN --bundle FILE.zip"


class Entry(Settings):
    """One file of a bundle."""

    bytes: NonNegativeInt
    """Its size."""
    sha256: str = Field(pattern="^[0-9a-f]{64}$")
    """The checksum of its content."""


class Manifest(Settings):
    """The content of manifest.json."""

    format: Literal["candor-bundle"] = FORMAT
    format_version: Literal[1] = FORMAT_VERSION
    files: dict[str, Entry]
    """Every other file by its path within the bundle."""

    def text(self) -> str:
        """Returns the one spelling of the manifest."""
        return json.dumps(self.model_dump(mode="json"), indent=2, sort_keys=True) + "\n"


def write_manifest(folder: Path) -> None:
    """Writes the manifest of the files that lie in a folder; a file that has no place in a bundle is refused."""
    files = {}
    for name in sorted(files_of(folder, str(folder))):
        check_name(name, str(folder))
        files[name] = Entry(bytes=(folder / name).stat().st_size, sha256=sha256_of_file(folder / name))
    (folder / MANIFEST).write_text(Manifest(files=files).text(), encoding="utf-8")


def check_folder(folder: Path, where: str) -> None:
    """Raises InputError unless the folder holds just what its manifest says, to the last byte.

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
    """Raises InputError unless a file of this name has a place in a bundle; what is not known is not looked at."""
    if name != MANIFEST and not _KNOWN.fullmatch(name):
        raise InputError(f"a file called {name!r} has no place in a bundle", where=where, hint=_MEND)


def check_sizes(sizes: dict[str, int], where: str) -> None:
    """Raises InputError unless files of these sizes by name make up a bundle that can be opened without harm."""
    for name, size in sizes.items():
        check_name(name, where)
        if name.endswith(_TEXT) and size > MOST_BYTES_OF_TEXT:
            raise _too_large(f"the file {name} would take {size:,} bytes", MOST_BYTES_OF_TEXT, where)
    if (total := sum(sizes.values())) > MOST_BYTES:
        raise _too_large(f"its files would take {total:,} bytes", MOST_BYTES, where)
    if lacking := [name for name in _NEEDED if name not in sizes]:
        raise _damaged(f"the file {lacking[0]} is missing", where)


def parse_json(path: Path, where: str) -> Any:
    """Returns the content of a JSON file, also of one that was made to exhaust the reader."""
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
    if content.get("format_version") != FORMAT_VERSION:
        raise InputError(
            f"the bundle has format version {content.get('format_version')}; this candor reads {FORMAT_VERSION}",
            where=where,
            hint="use the version of candor that made it, or export it again with this one",
        )
    manifest = parse_settings(Manifest, content, f"{where}: {MANIFEST}")
    if path.read_bytes() != manifest.text().encode():
        raise _damaged(f"its {MANIFEST} was changed", where)
    return manifest


def files_of(folder: Path, where: str) -> Iterator[str]:
    """Yields the paths of all files within a folder; links, which may lead anywhere, are refused."""
    for place, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(place) / name
            if path.is_symlink() or not (path.is_dir() or path.is_file()):
                raise _damaged(f"{path.relative_to(folder).as_posix()!r} is neither a file nor a folder", where)
        for name in files:
            yield (Path(place) / name).relative_to(folder).as_posix()


def _damaged(what: str, where: str) -> InputError:
    return InputError(f"the bundle is damaged: {what}", where=where, hint=_MEND)


def _too_large(what: str, most: int, where: str) -> InputError:
    return InputError(f"the bundle is too large: {what}; at most {most:,} are opened", where=where, hint=_MEND)
