"""`numalloc run`: assembles a setting, and becomes the program."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from numalloc_tools.allocators.found import NAMES
from numalloc_tools.completion import one_of
from numalloc_tools.launch import nodes, profile, program
from numalloc_tools.launch.prepare import Launch, prepared
from numalloc_tools.launch.setting import HUGE_PAGES, MEMORY_WORDS, THREADS, Setting
from numalloc_tools.problem import Problem
from numalloc_tools.run import instances, ranks, start
from numalloc_tools.run.flags import with_library_options

LEVERS = "Levers, for any program under any allocator"
SEVERAL = "Several processes"
TOLD = "Output of the command"
_NO_PROGRAM = "accepted: numalloc run [OPTIONS] -- PROGRAM [ARGS]..."


def register(app: typer.Typer) -> None:
    app.command("run", context_settings={"allow_interspersed_args": False})(with_library_options(run))


def run(
    command: Annotated[
        list[str] | None,
        typer.Argument(
            help="The program and its arguments.",
            metavar="PROGRAM [ARGS]...",
            show_default=False,
        ),
    ] = None,
    allocator: Annotated[
        str | None,
        typer.Option(
            help=f"{', '.join(NAMES)}, or the path of a library. Default: numalloc.",
            metavar="NAME|PATH",
            rich_help_panel=LEVERS,
            autocompletion=one_of(*NAMES),
        ),
    ] = None,
    binding_only: Annotated[
        bool | None,
        typer.Option(
            "--binding-only/--no-binding-only",
            help="Bind threads as numalloc does, but let the program keep its own malloc, or use the one of --allocator.",
            show_default=False,
            rich_help_panel=LEVERS,
        ),
    ] = None,
    threads: Annotated[
        str | None,
        typer.Option(
            help="Where threads run: none (the kernel decides), sparse (each new thread on the next node), dense (a node's "
            "CPUs first, then the next node's).",
            metavar="WHERE",
            rich_help_panel=LEVERS,
            autocompletion=one_of(*THREADS),
        ),
    ] = None,
    memory: Annotated[
        str | None,
        typer.Option(
            help="Where memory comes from: first-touch, local, interleave, preferred:NODE, bind:NODES (such as 0-3,8), "
            "weighted (interleaved by the kernel's weights; Linux 6.9). numalloc's memory follows its own option where "
            "it has one; otherwise the memory policy of the whole process is set.",
            metavar="WHERE",
            rich_help_panel=LEVERS,
            autocompletion=one_of(*MEMORY_WORDS, "preferred:", "bind:"),
        ),
    ] = None,
    huge_pages: Annotated[
        str | None,
        typer.Option(
            help="Transparent huge pages: off disables them for the whole process; on uses the allocator's own switch.",
            metavar="on|off",
            rich_help_panel=LEVERS,
            autocompletion=one_of(*HUGE_PAGES),
        ),
    ] = None,
    autonuma: Annotated[
        str | None,
        typer.Option(
            help="off stops the kernel from moving the process's pages and threads between nodes (automatic NUMA balancing). "
            "Needs no privileges.",
            metavar="off",
            rich_help_panel=LEVERS,
        ),
    ] = None,
    profile_file: Annotated[
        Path | None,
        typer.Option(
            "--profile",
            help="Read settings from a file that numalloc tune or --save-profile wrote. Flags override the file.",
            metavar="FILE",
            rich_help_panel=LEVERS,
        ),
    ] = None,
    save_profile: Annotated[
        Path | None,
        typer.Option(
            help="Write the settings to this file, then run the program, if one is given.",
            metavar="FILE",
            rich_help_panel=LEVERS,
        ),
    ] = None,
    instance_count: Annotated[
        str | None,
        typer.Option(
            "--instances",
            help="Run N instances of the program at the same time, or one per node. Each instance runs on one node, with that "
            "node's CPUs and, without --memory, only that node's memory. The exit status is the worst of the instances'.",
            metavar="N|per-node",
            rich_help_panel=SEVERAL,
        ),
    ] = None,
    logs: Annotated[
        Path | None,
        typer.Option(
            help="Instances write to DIR/0.out, DIR/0.err, DIR/1.out, ...",
            metavar="DIR",
            rich_help_panel=SEVERAL,
        ),
    ] = None,
    by_rank: Annotated[
        bool | None,
        typer.Option(
            "--ranks/--no-ranks",
            help="Distribute the ranks on this machine over its nodes. Default: only under mpirun and srun, for ranks that "
            "these have not bound.",
            show_default=False,
            rich_help_panel=SEVERAL,
        ),
    ] = None,
    reported: Annotated[
        bool,
        typer.Option(
            "--report",
            help="Report on standard error at the end where memory and threads were, per node.",
            rich_help_panel=TOLD,
        ),
    ] = False,
    show: Annotated[
        bool,
        typer.Option(
            "--show",
            help="Print the environment and the system calls, and run nothing.",
            rich_help_panel=TOLD,
        ),
    ] = False,
    json_file: Annotated[
        str | None,
        typer.Option(
            "--json",
            help="Write the output of --show or --report to this file as JSON; - is standard output.",
            metavar="FILE",
            rich_help_panel=TOLD,
        ),
    ] = None,
    verbose: Annotated[
        bool,
        typer.Option(
            "--verbose",
            "-v",
            help="Report on standard error what the command does; the library reports what it found and could not do.",
            rich_help_panel=TOLD,
        ),
    ] = False,
    *,
    library_options: tuple[tuple[str, str], ...],
) -> None:
    """Run PROGRAM under an allocator, with threads and memory on the nodes that you choose.

    The command becomes the program: signals, pipes, terminal and exit status are the program's own. Exit status
    126: the program cannot be executed; 127: it was not found; 2: an argument was wrong, or this machine cannot
    do what it requests.
    """
    given = {
        "allocator": allocator,
        "binding_only": binding_only,
        "threads": threads,
        "memory": memory,
        "huge_pages": huge_pages,
        "autonuma": autonuma,
    }
    setting = _setting(given, library_options, profile_file)
    if json_file is not None and not (show or reported):
        raise Problem("--json: without --show and --report there is nothing to write; accepted: with --show or --report")
    if logs is not None and instance_count is None:
        raise Problem("--logs: a single program writes to the streams of this command; accepted: with --instances")
    if not command and not (show or save_profile):
        raise Problem(f"no program is named; {_NO_PROGRAM}")
    launch = prepared(setting, verbose=verbose)
    if save_profile:
        profile.save(save_profile, setting)
        if not command and not show:
            return
    say = _teller(verbose)
    for note in launch.notes:
        say(note)
    jobs = _jobs(setting, launch, instance_count, by_rank, say)
    if show:
        start.show(command or [], jobs, json_file)
        return
    assert command
    path = program.find(command[0])
    jobs = [(label, start.without_obstacles(path, one)) for label, one in jobs]
    for label, one in jobs:
        before = f"{label}: " if label else ""
        say(f"{before}{start.line([], one)}")
        for call in one.calls:
            say(f"{before}{call}")
    if instance_count is None and not reported:
        start.become(path, command, jobs[0][1])
    sys.exit(start.run_and_stay(path, command, jobs, logs, instance_count is not None, reported, json_file))


def _setting(given: dict, library_options: tuple[tuple[str, str], ...], profile_file: Path | None) -> Setting:
    fields = profile.load(profile_file) if profile_file else {}
    fields |= {name: value for name, value in given.items() if value is not None}
    kept = dict(fields.get("options", ())) | dict(library_options)
    return Setting(**{**fields, "options": tuple(kept.items())})


def _teller(verbose: bool) -> Callable[[str], None]:
    def say(text: str) -> None:
        if verbose:
            print(f"numalloc: {text}", file=sys.stderr)

    return say


def _jobs(
    setting: Setting, launch: Launch, instance_count: str | None, by_rank: bool | None, say: Callable[[str], None]
) -> list[tuple[str, Launch]]:
    """The processes to start; each has a label if there are several."""
    machine = nodes.read()
    if instance_count is not None:
        if by_rank:
            raise Problem("--ranks: instances are distributed over the nodes anyway; accepted: one of --ranks and --instances")
        found = instances.planned(instance_count, machine, bind_memory=setting.memory == "default")
        return [(one.label, launch.also(*one.calls).with_environment(one.environment)) for one in found]
    if by_rank is False:
        return [("", launch)]
    affinity, said = ranks.place(os.environ, machine, bool(by_rank))
    if said:
        say(said)
    return [("", launch.also(affinity) if affinity else launch)]
