"""`numalloc lab run`: one program, one virtual NUMA machine."""

import os
import select
import sys
from pathlib import Path
from typing import Annotated

import typer

from numalloc_tools.guest import accelerator, architecture, console, kernel, values, vm
from numalloc_tools.guest.architecture import Architecture
from numalloc_tools.guest.image import Image
from numalloc_tools.guest.machine import build_machine
from numalloc_tools.guest.pack import add_needs, command_script, environment_of
from numalloc_tools.lab.options import PROGRAM, Environment
from numalloc_tools.problem import Problem

MACHINE = "The machine"
KERNEL = "Switches of the guest's kernel"
LAB = "The lab"


def register(app: typer.Typer) -> None:
    app.command(
        "run",
        context_settings={"allow_interspersed_args": False},
        no_args_is_help=True,
    )(run)


def run(
    command: Annotated[
        list[str],
        typer.Argument(
            help="The program of this machine to run, and its arguments; existing files among them go along.", metavar="COMMAND [ARGS]..."
        ),
    ],
    nodes: Annotated[int, typer.Option(help="NUMA nodes, 2 to 32.", rich_help_panel=MACHINE)] = 2,
    cpus_per_node: Annotated[
        str, typer.Option(help="CPUs of each node: one value, or one for each node (4,2,0,2). Up to 255 in all.", rich_help_panel=MACHINE)
    ] = "2",
    memory_per_node: Annotated[
        str, typer.Option(help="Memory of each node: one value, or one for each node (1G,512M,0).", rich_help_panel=MACHINE)
    ] = "512M",
    distance: Annotated[
        str, typer.Option(help="full, twogroups (21 within a half, 31 across), ladder, or a file with a matrix.", rich_help_panel=MACHINE)
    ] = "full",
    arch: Annotated[
        str,
        typer.Option(
            help=f"The processor: {' or '.join(architecture.NAMES)}; this machine's unless you say otherwise.",
            show_default=False,
            rich_help_panel=MACHINE,
        ),
    ] = "",
    memory_only: Annotated[str, typer.Option(help="Nodes without CPUs, such as 2-3,5.", metavar="NODES", rich_help_panel=MACHINE)] = "",
    cpu_only: Annotated[str, typer.Option(help="Nodes without memory.", metavar="NODES", rich_help_panel=MACHINE)] = "",
    absent: Annotated[str, typer.Option(help="Node numbers that do not exist: gaps.", metavar="NODES", rich_help_panel=MACHINE)] = "",
    thp: Annotated[str, typer.Option(help="Transparent huge pages: always, madvise or never.", rich_help_panel=KERNEL)] = "madvise",
    autonuma: Annotated[str, typer.Option(help="Automatic NUMA balancing: on or off.", rich_help_panel=KERNEL)] = "off",
    overcommit: Annotated[str, typer.Option(help="Memory overcommit: heuristic, always or never.", rich_help_panel=KERNEL)] = "heuristic",
    cpuset_cpus: Annotated[
        str, typer.Option(help="Run the program in a cpuset with these CPUs.", metavar="CPUS", rich_help_panel=KERNEL)
    ] = "",
    cpuset_mems: Annotated[
        str, typer.Option(help="Run the program in a cpuset with these nodes' memory.", metavar="NODES", rich_help_panel=KERNEL)
    ] = "",
    sysctl: Annotated[
        list[str] | None,
        typer.Option(help="Another switch, such as vm.overcommit_ratio=80. Repeatable.", metavar="NAME=VALUE", rich_help_panel=KERNEL),
    ] = None,
    kernel_argument: Annotated[
        list[str] | None, typer.Option(help="A word for the kernel's command line. Repeatable.", metavar="WORD", rich_help_panel=KERNEL)
    ] = None,
    env: Environment = None,
    preload: Annotated[
        list[str] | None,
        typer.Option(help="A library to preload into the program. Repeatable.", metavar="LIBRARY", rich_help_panel=PROGRAM),
    ] = None,
    file: Annotated[
        list[str] | None,
        typer.Option(help="A file or folder to take along, under the same path. Repeatable.", metavar="PATH", rich_help_panel=PROGRAM),
    ] = None,
    stdin: Annotated[
        Path | None, typer.Option(help="A file that the program reads as its standard input.", metavar="FILE", rich_help_panel=PROGRAM)
    ] = None,
    timeout: Annotated[
        float, typer.Option(help="Seconds after which the machine is stopped.", metavar="SECONDS", rich_help_panel=LAB)
    ] = 600.0,
    accel: Annotated[str, typer.Option(help="auto (kvm where a probe boots with it), tcg or kvm.", rich_help_panel=LAB)] = "auto",
    tcg_threads: Annotated[
        str,
        typer.Option(
            help="Host threads of the translator: single takes turns, multi is one for each CPU (finds races), auto is multi up to twice the host's CPUs.",
            rich_help_panel=LAB,
        ),
    ] = "auto",
    page_size: Annotated[str, typer.Option(help="Of Debian's kernel: 4K, or 16K with aarch64.", rich_help_panel=KERNEL)] = "4K",
    kernel_image: Annotated[
        Path | None, typer.Option("--kernel", help="Boot this kernel instead of Debian's.", metavar="FILE", rich_help_panel=LAB)
    ] = None,
    console_file: Annotated[
        Path | None, typer.Option("--console", help="Keep the guest's console in this file.", metavar="FILE", rich_help_panel=LAB)
    ] = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Show the guest's console on standard error.", rich_help_panel=LAB)
    ] = False,
) -> None:
    """Boot a virtual NUMA machine, run COMMAND of this machine in it, and exit as it does.

    Standard output and error are the program's. The exit status is the program's too, except 124: the
    time was up; 125: the machine or its kernel failed; 126 and 127: COMMAND cannot be run.
    """
    vm.end_in_order_on_signals()
    machine = build_machine(nodes, cpus_per_node, memory_per_node, distance, memory_only, cpu_only, absent, arch)
    values.choice(thp, ("always", "madvise", "never"), "--thp")
    values.choice(autonuma, ("on", "off"), "--autonuma")
    values.choice(overcommit, tuple(vm.OVERCOMMIT), "--overcommit")
    values.choice(accel, accelerator.KINDS, "--accel")
    values.choice(tcg_threads, accelerator.THREADS, "--tcg-threads")
    if cpuset_cpus:
        values.number_list(cpuset_cpus, "--cpuset-cpus", machine.cpus)
    if cpuset_mems:
        values.number_list(cpuset_mems, "--cpuset-mems", nodes)
    if not timeout > 0:
        raise Problem(f"--timeout: {timeout:g} is not a time; accepted: seconds, more than 0")
    environment = environment_of(env or [], preload or [])
    image, script = pack(command, environment, file or [], machine.architecture)
    guest = vm.Guest(
        script,
        thp=thp,
        autonuma=autonuma == "on",
        overcommit=overcommit,
        cpuset_cpus=cpuset_cpus,
        cpuset_mems=cpuset_mems,
        sysctl=dict(_assignment(text, "--sysctl") for text in sysctl or []),
        kernel_arguments=[*(kernel_argument or []), *(["loglevel=7"] if verbose else [])],
        stdin=_read(stdin, "--stdin") if stdin else b"",
    )
    kernel_path = kernel.image(kernel_image, machine.architecture, page_size)
    acceleration = accelerator.choose(accel, tcg_threads, machine.cpus, kernel_path, machine.architecture)
    copies = [_writer(sys.stderr.fileno())] if verbose else []
    if console_file:
        copies.append(_writer(_opened(console_file, "--console")))
    outcome = vm.run(
        machine,
        image,
        guest,
        kernel_path,
        acceleration,
        vm.Deadline(timeout),
        _writer(sys.stdout.fileno()),
        _writer(sys.stderr.fileno()),
        lambda chunk: _write_all(copies, chunk),
    )
    sys.exit(report(outcome, verbose))


def pack(command: list[str], environment: dict[str, str], files: list[str], architecture: Architecture) -> tuple[Image, str]:
    """The guest's files and the shell script that runs the command there."""
    image = Image(environment.get("LD_LIBRARY_PATH", ""), architecture)
    program = image.add_command(command[0])
    add_needs(image, environment, command[1:])
    for path in files:
        if not os.path.exists(path):
            raise Problem(f"--file: {path} does not exist")
        image.add_file(os.path.abspath(path))
    return image, command_script(program, command[1:], environment)


def report(outcome: vm.Outcome, console_shown: bool = False) -> int:
    """Says on standard error what went wrong in the machine; returns the status to exit with."""
    for finding in console.findings(outcome.console):
        print(f"numalloc lab: {finding}", file=sys.stderr)
    if outcome.reason:
        print(f"numalloc lab: {outcome.reason}", file=sys.stderr)
        if outcome.console and not console_shown:
            print(f"numalloc lab: the console's end:\n{console.end(outcome.console)}", file=sys.stderr)
    return outcome.status


def _assignment(text: str, what: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise Problem(f"{what}: '{text}' is not an assignment; accepted: NAME=VALUE")
    return name, value


def _read(path: Path, what: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise Problem(f"{what}: {path} cannot be read ({error.strerror})") from None


def _opened(path: Path, what: str) -> int:
    try:
        return os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o666)
    except OSError as error:
        raise Problem(f"{what}: {path} cannot be written ({error.strerror})") from None


def _write_all(writers: list[vm.Sink], chunk: bytes) -> None:
    for write in writers:
        write(chunk)


def _writer(descriptor: int) -> vm.Sink:
    def write(data: bytes) -> None:
        while data:
            try:
                data = data[os.write(descriptor, data) :]
            except BlockingIOError:  # whoever reads has set the pipe so, and is not ready
                select.select([], [descriptor], [])

    return write
