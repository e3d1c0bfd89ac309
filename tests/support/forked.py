"""Processes that are forked from that of the tests: what they need is imported already, which would take longest."""

import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path

_PATIENCE = 120.0  # seconds


class Forked:
    """Work in a child process, to be watched, signalled and killed as a `subprocess.Popen` is.

    Args:
        work: what the child does; what it returns is its exit code.
        folder: where it works.
        environment: variables that it sees besides those of the tests.
    """

    def __init__(
        self, work: Callable[[], int | None], folder: Path | None = None, environment: Mapping[str, str] | None = None
    ) -> None:
        ends = [os.pipe() for _ in range(2)]
        self.returncode: int | None = None
        self.pid = os.fork()
        if self.pid == 0:
            os._exit(_be_a_child(work, [write for _, write in ends], folder, environment or {}))
        for _, write in ends:
            os.close(write)
        self.stdout, self.stderr = (os.fdopen(read, encoding="utf-8") for read, _ in ends)

    def poll(self) -> int | None:
        """Returns the exit code, negative after a signal; None while the child works."""
        return self._look(os.WNOHANG)

    def wait(self) -> int:
        """Returns the exit code when the child has ended."""
        code = self._look(0)
        assert code is not None
        return code

    def communicate(self) -> tuple[str, str]:
        """Returns what else the child prints until it ends; if that takes too long it is killed."""
        timer = threading.Timer(_PATIENCE, self.kill)
        timer.start()
        said = self.stdout.read(), self.stderr.read()
        timer.cancel()
        self.wait()
        return said

    def send_signal(self, number: int) -> None:
        """Signals the child, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Kills the child."""
        self.send_signal(signal.SIGKILL)

    def __enter__(self) -> "Forked":
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        self.wait()
        self.stdout.close()
        self.stderr.close()

    def _look(self, options: int) -> int | None:
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, options)
            self.returncode = os.waitstatus_to_exitcode(status) if pid else None
        return self.returncode


def _be_a_child(
    work: Callable[[], int | None], outputs: list[int], folder: Path | None, environment: Mapping[str, str]
) -> int:
    try:
        for descriptor, name in enumerate(("stdout", "stderr"), start=1):
            os.dup2(outputs[descriptor - 1], descriptor)
            setattr(sys, name, open(descriptor, "w", buffering=1, encoding="utf-8", closefd=False))  # noqa: SIM115
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.environ.update(environment)
        if folder is not None:
            os.chdir(folder)
        return work() or 0
    except SystemExit as leaving:
        return leaving.code if isinstance(leaving.code, int) else 0
    except BaseException:
        traceback.print_exc()
        return 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
