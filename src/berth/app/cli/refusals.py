"""How a command ends when its input cannot be used: a sentence on stderr and the exit code, no traceback."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

import click

from berth.base.errors import BadInput

P = ParamSpec("P")
R = TypeVar("R")


def refusing(command: Callable[P, R]) -> Callable[P, R]:
    """Turn BadInput into its sentence on stderr and its exit code (2 usage, 3 the truth could not be seen)."""

    @wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return command(*args, **kwargs)
        except BadInput as error:
            click.echo(f"Error: {error.sentence}", err=True)
            raise click.exceptions.Exit(error.exit_code) from None

    return run
