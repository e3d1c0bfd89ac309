"""Settings of a service: where it listens, and its limits."""

from pathlib import Path

from pydantic import Field, PositiveFloat, PositiveInt, SecretStr

from candor.core.settings import Settings


class ServiceSettings(Settings):
    """Everything about a service but the models it serves."""

    host: str = "127.0.0.1"
    """Name or address of the network to listen on; the default is reached from this machine only."""
    port: int = Field(8000, ge=0, le=65535)
    """Port to listen on; 0 takes a free one."""
    token: SecretStr | None = None
    """What clients must send as `Authorization: Bearer TOKEN`; None lets everybody in."""
    allow_open: bool = False
    """Whether to listen beyond this machine without a token."""
    store: Path | None = None
    """Folder for readings that clients send; None takes `.candor-service` beside each run."""

    most_body_bytes: PositiveInt = 16 * 2**20
    """Largest body of a request."""
    most_held_bytes: PositiveInt = 256 * 2**20
    """Largest sum of all bodies that are in memory at one time."""
    most_sensors: PositiveInt = 10_000
    """Most sensors of a request, and of a model."""
    most_horizon: PositiveInt = 2_000
    """Most steps that a model may forecast."""
    most_cells: PositiveInt = 5_000_000
    """Most steps times sensors that the readings of a request may span."""
    most_steps_back: PositiveInt = 100_000
    """How many steps before the run's own record readings may lie; where that is not at hand, before now."""
    most_steps: PositiveInt = 20_000
    """Most steps of history in one answer."""
    most_waiting: PositiveInt = 64
    """Requests in progress or waiting; further ones get 429."""
    most_windows: PositiveInt = 64
    """Most forecasts in one batch."""
    threads: PositiveInt = 4
    """Threads that read requests and write responses, beside one for each model."""

    header_seconds: PositiveFloat = 20.0
    """How long a client may take for the head of a request."""
    body_seconds: PositiveFloat = 30.0
    """How long a client may take for the body of a request."""
    reading_seconds: PositiveFloat = 60.0
    """How long a client may leave an answer unread."""
    keep_alive_seconds: PositiveInt = 75
    """How long a connection stays open between two requests."""
    drain_seconds: PositiveFloat = 30.0
    """How long requests that were accepted may take after the service was told to stop."""
    reload_seconds: PositiveFloat = 3.0
    """How often to look for a newer model in the folders of the runs."""
