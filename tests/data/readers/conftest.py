"""A stranger's file, read in one call."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from candor.data.findings import Findings
from candor.data.panel import Panel
from candor.data.readers.options import ReadOptions
from candor.data.readers.panels import read_panel

Reader = Callable[..., tuple[Panel, Findings]]


@pytest.fixture
def read(tmp_path: Path) -> Reader:
    """Writes a text, bytes or nothing to a file of the given name, reads it, and returns panel and findings."""

    def read_file(content: str | bytes | None, name: str = "readings.csv", **options: Any) -> tuple[Panel, Findings]:
        path, findings = tmp_path / name, Findings()
        if content is not None:
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        return read_panel(path, options=ReadOptions(**options), findings=findings), findings

    return read_file
