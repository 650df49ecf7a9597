"""Runs the project's own programs and some of Debian's in a virtual NUMA machine, and measures where pages are, not time."""

import json
import time
from pathlib import Path

from rich.console import Console

from numalloc_tools.allocators import Allocator
from numalloc_tools.bench.results import FULLEST, LAB, REMOTE, Results, Run
from numalloc_tools.guest import batch, vm
from numalloc_tools.guest.machine import Machine
from numalloc_tools.programs import OWN, Case, in_lab
from numalloc_tools.progress import bar_on

SCALE = 0.02  # QEMU's translator is about 30 times slower
LIMIT = 300


def run(
    machine: Machine,
    cases: list[Case],
    allocators: list[Allocator],
    results: Results,
    path: Path,
    terminal: Console,
    sources: Path,
) -> bool:
    """Fills and writes `results`; `sources` is bench/real. False after Ctrl-C."""
    settings = results.settings
    jobs, wanted = [], {}
    libraries = {str(library) for one in allocators for library in one.libraries}
    commands: set[str] = set()
    for number in range(1, settings["rounds"] + 1):
        for case in cases:
            for place in range(len(allocators)):
                allocator = allocators[(place + number) % len(allocators)]
                reason = case.program.missing or allocator.missing
                if case.program.kind != OWN:
                    lab = case.program.lab
                    reason = reason or lab.missing if lab else "runs on this machine only, not in the lab"
                if reason:
                    if number == 1:
                        results.runs.append(_row(case, allocator, number, "missing", reason, {}))
                    continue
                name = f"{number}-{case.program.name}-{case.threads}-{allocator.name.replace(':', '-').replace('=', '-')}"
                wanted[name] = (case, allocator, number)
                if lab := case.program.lab:
                    jobs.append(lab.job(name, allocator, case.threads, settings["scale"], LIMIT, sources))
                    libraries.update(lab.files(allocator, sources))
                    commands.update(lab.commands)
                else:
                    jobs.append(_job(name, case, allocator, settings))
    begun = time.monotonic()
    vm.end_in_order_on_signals()
    with bar_on(terminal) as progress:
        task = progress.add_task("booting", total=len(jobs))

        def ended(name: str, result: batch.Result) -> None:
            case, allocator, number = wanted.pop(name)
            results.runs.append(_row(case, allocator, number, *_verdict(result, allocator if case.program.lab else None)))
            progress.update(task, advance=1, description=f"{case.name} under {allocator.name}")
            results.write(path)

        try:
            report = batch.run(machine, jobs, sorted(libraries), on_end=ended, commands=sorted(commands)) if jobs else None
            for case, allocator, number in wanted.values():
                results.runs.append(_row(case, allocator, number, "did not run", "; ".join(report.findings if report else [])))
            results.complete = True
        except KeyboardInterrupt:
            progress.console.print("interrupted; the results until now are kept")
        finally:
            results.seconds = time.monotonic() - begun
            results.write(path)
    return results.complete


def _job(name: str, case: Case, allocator: Allocator, settings: dict) -> batch.Job:
    words = ["--threads", case.threads, "--scale", f"{settings['scale']:g}", "--seed", settings["seed"], "--report-pages"]
    return batch.Job(name, [*case.program.command, *map(str, words)], allocator.preloading(), timeout=LIMIT)


def _row(case: Case, allocator: Allocator, number: int, status: str, reason: str, figures: dict | None = None) -> Run:
    return Run(LAB + case.program.name, case.threads, allocator.name, number, status, reason, figures or {})


def _verdict(result: batch.Result, watched: Allocator | None = None) -> tuple[str, str, dict[str, float]]:
    """`watched`: the allocator that one of Debian's programs should have used."""
    if result.oom_kills:
        return "crash", "the machine ran out of memory", {}
    if result.status in (124, 137):
        return "timeout", f"it was stopped after {LIMIT} s", {}
    last = (result.stderr.strip().splitlines() or ["nothing on standard error"])[-1]
    if result.status > 128:
        return "crash", f"it was ended by signal {result.status - 128}; it last said: {last}", {}
    if result.status:
        return "failed", f"it ended with status {result.status}; it last said: {last}", {}
    try:
        said = json.loads(result.stdout.splitlines()[-1])
        if said["check"] != "ok":
            return "wrong", f"its data were damaged: check is {said['check']}", {}
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        return "wrong", "its last line is not a valid result", {}
    if watched and (other := in_lab.other_malloc(said, watched)):
        return "not loaded", f"its malloc was that of {other}", {}
    if not said.get("local_pages", 0) + said.get("remote_pages", 0):
        return "no pages", "the program counted none of its pages", {}
    return "ok", "", figures_of(said)


def figures_of(said: dict) -> dict[str, float]:
    """Reports the fullest node's share too: with all pages on one node, none may be remote, but the placement is useless."""
    on_nodes, all_pages = said["pages_per_node"], said["local_pages"] + said["remote_pages"]
    return {
        "local_pages": said["local_pages"],
        "remote_pages": said["remote_pages"],
        REMOTE: 100 * said["remote_pages"] / all_pages if all_pages else 0.0,
        FULLEST: 100 * max(on_nodes) / sum(on_nodes) if sum(on_nodes) else 0.0,
        **{f"pages_on_{node}": pages for node, pages in enumerate(on_nodes)},
    }
