"""Many clients at once: what a service does under more load than it can bear.

    python benchmarks/load.py http://127.0.0.1:8000 --clients 500 --seconds 60 [--process PID]

Every client asks for the latest forecast again and again; one that is told to come back later (429) does so. Printed is
JSON: how many answers of each status, the latency in seconds of those that were accepted, the largest memory of the
process in MB at the end of each fifth of the time (with --process), and what went wrong with connections.
"""

import argparse
import asyncio
import json
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

_FIFTHS = 5


@dataclass
class Tally:
    """What clients met: statuses, seconds of accepted requests, failures of connections, and memory in MB."""

    statuses: Counter[int] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)
    failures: Counter[str] = field(default_factory=Counter)
    memory: list[float] = field(default_factory=list)


async def press(url: str, path: str, clients: int, seconds: float, process: int | None = None) -> Tally:
    """Returns what clients met who asked for `path` for so many seconds."""
    tally, end = Tally(), time.monotonic() + seconds
    watching = asyncio.create_task(_watch(process, seconds, tally))
    await asyncio.gather(*(_be_a_client(url, path, end, tally) for _ in range(clients)))
    await watching
    return tally


async def _be_a_client(url: str, path: str, end: float, tally: Tally) -> None:
    """Asks again and again over one connection.

    Written on plain sockets: libraries for clients keep lists of connections, and with hundreds of them spend more time
    on these than the service does on its answers.
    """
    address = urlsplit(url)
    request = f"GET {path} HTTP/1.1\r\nHost: {address.netloc}\r\n\r\n".encode()
    reader, writer = None, None
    while time.monotonic() < end:
        try:
            if reader is None or writer is None:
                reader, writer = await asyncio.open_connection(address.hostname, address.port)
            begun = time.perf_counter()
            writer.write(request)
            status, headers = await _read_answer(reader)
        except (OSError, asyncio.IncompleteReadError) as error:
            tally.failures[type(error).__name__] += 1
            reader, writer = None, None
            continue
        tally.statuses[status] += 1
        if status == 200:
            tally.seconds.append(time.perf_counter() - begun)
        elif status == 429:
            await asyncio.sleep(float(headers["retry-after"]))
    if writer is not None:
        writer.close()


async def _read_answer(reader: asyncio.StreamReader) -> tuple[int, dict[str, str]]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])}
    await reader.readexactly(int(headers["content-length"]))
    return int(head[0].split()[1]), headers


async def _watch(process: int | None, seconds: float, tally: Tally) -> None:
    if process is None:
        return
    import psutil

    watched = psutil.Process(process)
    for _ in range(_FIFTHS):
        await asyncio.sleep(seconds / _FIFTHS)
        tally.memory.append(round(watched.memory_info().rss / 2**20, 1))


def summarise(tally: Tally, clients: int, seconds: float) -> dict[str, Any]:
    """Returns the numbers of a tally as content of JSON."""
    ordered = sorted(tally.seconds)
    shares = {"median": 0.5, "p90": 0.9, "p99": 0.99, "longest": 1.0}
    places = {name: max(0, round(share * len(ordered)) - 1) for name, share in shares.items()}
    return {
        "clients": clients,
        "seconds": seconds,
        "statuses": {str(status): count for status, count in sorted(tally.statuses.items())},
        "accepted_per_second": round(len(ordered) / seconds, 1),
        "latency_seconds": {name: round(ordered[place], 4) for name, place in places.items()} if ordered else None,
        "failures": dict(tally.failures),
        "memory_mb": tally.memory,
    }


def main() -> None:
    """Presses a running service and prints what happened."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("--path", default="/v1/forecast/latest")
    parser.add_argument("--clients", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--process", type=int, help="number of the service's process, to watch its memory")
    asked = parser.parse_args()
    tally = asyncio.run(press(asked.url, asked.path, asked.clients, asked.seconds, asked.process))
    print(json.dumps(summarise(tally, asked.clients, asked.seconds), indent=2))


if __name__ == "__main__":
    main()
