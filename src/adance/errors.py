"""The two ways in which a run can fail through no fault of the program."""


class InputError(ValueError):
    """Bad input or usage. The message is one line: what was wrong, where, and what would be right."""


class DivergedError(RuntimeError):
    """Training diverged. The message names the step and the last good checkpoint."""
