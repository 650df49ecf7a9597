"""The `numalloc` command: a table of subcommands, each in a package of its own."""

import os
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from typing import Annotated, Any, TextIO

import typer

from numalloc_tools.machine.words import printable
from numalloc_tools.problem import Problem
from numalloc_tools.version import line as version_line

# Each command, and the package that registers it.
COMMANDS = {
    "bench": "bench",
    "demo": "demo",
    "doctor": "doctor",
    "lab": "lab",
    "man": "man",
    "stat": "observe",
    "top": "observe",
    "exporter": "observe",
    "profile": "profile",
    "run": "run",
    "symbolize": "symbolize",
    "topology": "topology",
    "tune": "tune",
}
_OF_ALL = "man"  # it makes a page for each command


def made(words: Sequence[str] = ()) -> typer.Typer:
    app = table_of_commands("Tools around numalloc, the NUMA-aware memory allocator.")
    wanted = packages(COMMANDS, words)
    for package in wanted if wanted != [COMMANDS[_OF_ALL]] else packages(COMMANDS, ()):
        import_module(f"numalloc_tools.{package}").register(app)
    return app


def table_of_commands(text: str, completion: bool = True) -> typer.Typer:
    app = typer.Typer(
        help=text,
        no_args_is_help=True,
        add_completion=completion,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
        context_settings={"help_option_names": ["-h", "--help"]},  # the commands inherit it
    )
    app.callback()(numalloc)
    return app


def packages(commands: dict[str, str], words: Sequence[str]) -> list[str]:
    """Only the package of the command that `words` name: loading all takes longer than most of them run. All packages if the
    words name none, as for help, for completion and for a misspelt command."""
    named = next((word for word in words if not word.startswith("-")), "")
    return [commands[named]] if named in commands else list(dict.fromkeys(commands.values()))


# The exception for wrong words of a command: click's, or typer's own copy of it.
_WrongWords: Any = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")


def _print_version(wanted: bool) -> None:
    if wanted:
        print(version_line())
        raise typer.Exit


def numalloc(
    debug: Annotated[bool, typer.Option("--debug", help="Show a traceback of this program for each error.")] = False,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and, in a checkout, the commit.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    """Tools around numalloc, the NUMA-aware memory allocator."""
    Problem.shows_traceback = debug


def main() -> None:
    run(made)


def run(command: Callable[[Sequence[str]], typer.Typer]) -> None:
    """Ends the process: with the status of what the command line names, or with one line that says what is wrong."""
    _fill_closed_streams()
    try:
        table = command(sys.argv[1:])
        if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:  # as __main__ has set it for the imports
            signal.signal(signal.SIGINT, signal.default_int_handler)
        status = table(standalone_mode=False)
        sys.stdout.flush()
    except _WrongWords as error:
        if type(error).__name__ == "NoArgsIsHelpError":  # its message is the help; empty if rich has printed it
            error.show()
        else:
            _say(error.format_message().replace("\n", " "))
        sys.exit(error.exit_code)
    except typer.Abort:
        sys.exit(130)
    except Problem as problem:
        _say(str(problem))
        sys.exit(problem.exit_status)
    except BrokenPipeError:  # the reader has closed the pipe
        _leave(sys.stdout)
        sys.exit(1)
    except OSError as error:
        _say(f"{error.filename or 'output'}: {error.strerror}")
        _leave(sys.stdout)
        sys.exit(125)
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as error:  # a bug in the tools
        _say(f"{type(error).__name__}: {error}; this is a bug in numalloc's tools; numalloc --debug shows where")
        sys.exit(125)
    finally:
        _leave(sys.stderr)
    sys.exit(status if isinstance(status, int) else 0)


def _fill_closed_streams() -> None:
    """Replaces the None that Python has for a closed stream: reads return nothing, writes fail, and programs that the tools
    start still find it closed."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is not None:
            continue
        file = os.open(os.devnull, os.O_WRONLY if name == "stderr" else os.O_RDONLY)
        if file != number:
            os.dup2(file, number, inheritable=False)
            os.close(file)
        setattr(sys, name, open(number, mode, closefd=False))


def _leave(stream: TextIO) -> None:
    """Python would write the rest again at its end; if that fails, it would replace the exit status by 120."""
    try:
        stream.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _say(line: str) -> None:
    if Problem.shows_traceback:
        traceback.print_exc()
    with suppress(OSError):  # nobody can read the message; the status tells enough
        print(f"numalloc: {printable(line)}", file=sys.stderr, flush=True)
