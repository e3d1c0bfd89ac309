"""The trained model that comes with the package: dissolved oxygen at eleven stations of the Klamath River.

It is the run of `candor demo` with half the hidden width, which is a third of the size and no worse on the test part
(MAE 0.856 mg/L against 0.855), with its whole record. It was made by

    candor train klamath-daily --run runs/klamath hidden=16
    candor evaluate runs/klamath
    candor export runs/klamath --bundle src/candor/export/demo/klamath-daily --rows all
"""

from importlib.resources import files
from pathlib import Path


def demo_bundle() -> Path:
    """Returns the folder of the bundle that comes with the package."""
    return Path(str(files("candor.runs.bundle"))) / "demo" / "klamath-daily"
