"""Errors that speak to who can mend them: where, what is wrong, what to do."""

from __future__ import annotations

from pathlib import Path

USAGE = 2
UNREADABLE = 3


class BadInput(Exception):
    """Input that cannot be used as it is.

    `where` names file, object and field (`jobs/train.yaml: spec.replicas`), `problem` gives the value and
    the rule it breaks, `remedy` says what to write instead. `exit_code` is 2 for what a user wrote (a
    manifest, a flag) and 3 for a truth that could not be seen (an unreadable dump).
    """

    def __init__(self, where: str, problem: str, remedy: str = "", exit_code: int = USAGE) -> None:
        self.where = where
        self.problem = problem
        self.remedy = remedy
        self.exit_code = exit_code
        super().__init__(self.sentence)

    def __reduce__(self) -> tuple[type[BadInput], tuple[str, str, str, int]]:
        """Errors cross processes whole."""
        return BadInput, (self.where, self.problem, self.remedy, self.exit_code)

    @property
    def sentence(self) -> str:
        """One line for stderr."""
        head = f"{self.where}: {self.problem}" if self.where else self.problem
        return f"{head} {self.remedy}".rstrip()


def unwritten(path: str, error: OSError, remedy: str = "Name another file.") -> BadInput:
    """What could not be written, and whether that is because its folder is not there."""
    folder = Path(path).absolute().parent
    why = f"there is no folder {folder}" if isinstance(error, FileNotFoundError) and not folder.is_dir() else ""
    return BadInput(path, f"it cannot be written: {why or error.strerror}.", remedy, UNREADABLE)
