"""Serves a run, twice, whose forecasts take as long as the test wants: the file it waits for is the third argument."""

import sys
import time
from pathlib import Path

from candor.service import batching
from candor.service.server import serve
from candor.service.settings import ServiceSettings


def main(run: str, store: str, signal_file: str) -> None:
    """Serves until a signal comes, and then once more, as PyTorch takes longer to load than all that is looked at.

    A forecast that has begun leaves a file, and waits for another to be there.
    """
    real = batching.forecast_windows

    def forecast(*arguments):
        Path(f"{signal_file}.begun").touch()
        while not Path(signal_file).exists():
            time.sleep(0.02)
        return real(*arguments)

    batching.forecast_windows = forecast
    for _ in range(2):
        serve([Path(run)], ServiceSettings(port=0, store=Path(store)), lambda address: print(address, flush=True))


if __name__ == "__main__":
    main(*sys.argv[1:])
