"""What can go wrong because of the input, in words a person can act on."""


class InputError(Exception):
    """Something outside the program is wrong: a file, a name, a setting.

    The command line prints it without a traceback and leaves with exit code 2. Every other exception is a bug.

    Args:
        what: what was found, and what was expected instead.
        where: the file, column, sensor or time it was found at.
        mend: what the reader of the message can do about it.
    """

    def __init__(self, what: str, *, where: str = "", mend: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.mend = mend

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        mend = f"\n  To mend it: {self.mend}" if self.mend else ""
        return f"{place}{self.what}{mend}"


class NotFittedError(InputError):
    """A forecaster was asked to predict before it was fitted."""
