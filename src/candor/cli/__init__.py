"""The `candor` command: its table of commands, and what becomes of errors.

Exit codes: 0 fine, 2 the input is wrong (plain words, no traceback), 1 a bug, 130 interrupted.
"""

import errno
import os
import sys
import traceback
from collections.abc import Sequence

_OUT_OF_REACH = (errno.EACCES, errno.EPERM, errno.ENAMETOOLONG, errno.ELOOP)  # whatever was to be done with a path


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its exit code."""
    sys.exit(run(sys.argv[1:] if arguments is None else list(arguments)))


def run(arguments: Sequence[str]) -> int:
    """Return the exit code of the command line `candor ARGUMENTS`."""
    from candor.cli.app import app
    from candor.cli.screen import print_bug, print_error
    from candor.core.errors import InputError
    from candor.core.files import out_of_reach

    try:
        outcome = app(list(arguments), prog_name="candor", standalone_mode=True)
        return int(outcome or 0)
    except InputError as error:
        print_error(error)
        return 2
    except SystemExit as leaving:
        return leaving.code if isinstance(leaving.code, int) else 0
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        if isinstance(error, OSError) and error.errno in _OUT_OF_REACH and error.filename:
            print_error(out_of_reach(os.fsdecode(error.filename), error))
            return 2
        if _is_out_of_memory(error):
            print_error(
                InputError(
                    "there is not enough memory for this",
                    hint="take fewer sensors, a shorter record or a longer --interval; in training also smaller "
                    "batches (batch=16) or a smaller network (size=small)",
                )
            )
            return 2
        print_bug(traceback.format_exc())
        return 1


def _is_out_of_memory(error: Exception) -> bool:
    """Return whether memory did not suffice; PyTorch says so in words only."""
    words = ("can't allocate memory", "out of memory")
    return isinstance(error, MemoryError) or (
        isinstance(error, RuntimeError) and any(some in str(error) for some in words)
    )
