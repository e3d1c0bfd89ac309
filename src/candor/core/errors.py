"""What can go wrong because of the input, in words a person can act on."""


class InputError(Exception):
    """Something outside the program is wrong: a file, a name, a setting.

    The command line prints it without a traceback and leaves with exit code 2. Every other exception is a bug.

    Args:
        what: what was found, and what was expected instead.
        where: the file, column, sensor or time it was found at.
        hint: what the reader of the message can do about it.
    """

    def __init__(self, what: str, *, where: str = "", hint: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.hint = hint

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        hint = f"\n  Hint: {self.hint}" if self.hint else ""
        return f"{place}{self.what}{hint}"


class NotFittedError(InputError):
    """A forecaster was asked to predict before it was fitted."""
