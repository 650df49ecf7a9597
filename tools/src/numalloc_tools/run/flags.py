"""Flags for the library's options, made from options.def. A decorator adds them to a command."""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Annotated

import typer
from rich.markup import escape

from numalloc_tools.completion import of_option
from numalloc_tools.launch.setting import OWN_FLAGS
from numalloc_tools.options_table import Option, options

PANEL = "Options of numalloc"


def generated() -> list[Option]:
    return [one for one in options() if one.name not in OWN_FLAGS]


def with_library_options(command: Callable) -> Callable:
    """Passes the given values to `command` as `library_options`. The flags of the table come last in its help."""

    @wraps(command)
    def wrapped(**arguments):
        given = tuple((one.name, arguments.pop(_parameter(one))) for one in generated())
        return command(**arguments, library_options=tuple((name, value) for name, value in given if value is not None))

    signature = inspect.signature(command)
    own = [parameter for parameter in signature.parameters.values() if parameter.name != "library_options"]
    by_name = inspect.Parameter.KEYWORD_ONLY
    made = [inspect.Parameter(_parameter(one), by_name, default=None, annotation=_annotation(one)) for one in generated()]
    own = [parameter.replace(kind=by_name) for parameter in own]
    wrapped.__signature__ = signature.replace(parameters=[*own, *made])  # type: ignore[attr-defined]
    wrapped.__annotations__ = {parameter.name: parameter.annotation for parameter in [*own, *made]}
    return wrapped


def _parameter(one: Option) -> str:
    """A name that no parameter of the command itself has."""
    return f"numalloc_{one.name}"


def _annotation(one: Option):
    about = f"{one.text[0].upper()}{one.text[1:]}. Accepted: {one.accepted}. Default: {one.default}."
    option = typer.Option(
        one.flag,
        help=escape(about),
        metavar=one.kind.upper(),
        show_default=False,
        rich_help_panel=PANEL,
        autocompletion=of_option(one),
    )
    return Annotated[str | None, option]
