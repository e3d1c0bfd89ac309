"""`candor serve`: forecasts over HTTP, and a page to look at them."""

from pathlib import Path
from typing import Annotated

from candor.cli.inputs import argument, option
from candor.cli.screen import say, tell
from candor.core.errors import InputError
from candor.core.optional import needing_packages


def serve(
    runs: Annotated[list[Path] | None, argument("[RUN]...", "Run directories or exported bundles.")] = None,
    demo: Annotated[bool, option("Serve the small model that comes with candor.", "--demo")] = False,
    host: Annotated[str, option("Address to listen at.")] = "127.0.0.1",
    port: Annotated[int, option("Port to listen at; 0 takes a free one.")] = 8000,
    token_file: Annotated[
        Path | None, option("File with the token clients must send. (default: CANDOR_TOKEN, if set)")
    ] = None,
    allow_open: Annotated[bool, option("Listen beyond this machine without a token.", "--allow-open")] = False,
    store: Annotated[
        Path | None, option("Folder for readings that are sent. (default: .candor-service beside each run)")
    ] = None,
    settings: Annotated[
        list[str] | None,
        option("A limit of the service, e.g. most_waiting=128.", "--set", metavar="KEY=VALUE"),
    ] = None,
) -> None:
    """Serve forecasts of runs over HTTP, with a page for people, until Ctrl-C or SIGTERM."""
    if not runs and not demo:
        raise InputError("there is nothing to serve", hint="name a run directory, or say --demo")
    with needing_packages("serving", extra="serve"):
        import fastapi  # noqa: F401
        import prometheus_client  # noqa: F401
        import uvicorn  # noqa: F401
    import logging

    from candor.core.settings import parse_overrides, parse_settings
    from candor.service.auth import read_token
    from candor.service.server import serve as run_service
    from candor.service.settings import ServiceSettings

    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(message)s")
    sources = list(runs or [])
    if demo:
        from candor.runs.bundle import demo_bundle

        sources.append(demo_bundle())
    own = {"host": host, "port": port, "allow_open": allow_open, "store": store, "token": read_token(token_file)}
    limits = parse_overrides(settings or [])
    if twice := own.keys() & limits.keys():
        what = f"{', '.join(sorted(twice))} cannot be given by --set"
        raise InputError(what, hint="use --host, --port, --token-file, --allow-open and --store")
    chosen = parse_settings(ServiceSettings, limits | own, "--set")
    say("opening the models")
    run_service(sources, chosen, lambda address: tell(f"serving at {address} (Ctrl-C ends it)"))
