"""The jobs of one virtual machine, and where their programs are."""

from pathlib import Path

from numalloc_tools.guest import batch, programs
from numalloc_tools.guest.machine import build_machine
from numalloc_tools.guest.scenarios import Scenario

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = Path(__file__).with_name("programs")


class Jobs:
    """Collects the jobs of one machine."""

    def __init__(self, **machine):
        self.machine = build_machine(**{"cpus_per_node": "2", "memory_per_node": "512M", "distance": "ladder", **machine})
        self._planned: dict[str, dict] = {}

    def add(self, name: str, program: str, *arguments, options=None, around=(), setup="", library="", folder=PROGRAMS) -> None:
        """`program` of `folder` with the library under test preloaded, or another of its build, and its `options`; `around`
        is a command such as numactl that starts it."""
        self._planned[name] = {
            "program": program,
            "arguments": arguments,
            "options": options or {},
            "around": around,
            "setup": setup,
            "library": library,
            "folder": folder,
        }

    def add_scenario(self, scenario: Scenario) -> None:
        """A cell of the proof, of which scenarios.cell() makes a verdict."""
        words = map(str, scenario.command(scenario.program, self.machine.cpus))
        self.add(scenario.name, *words, folder=programs.SOURCES)

    @property
    def names(self) -> list[str]:
        return list(self._planned)

    def run(self, library: str, **switches) -> batch.Report:
        jobs = []
        for name, plan in self._planned.items():
            program = str(programs.built(plan["program"], plan["folder"]))
            command = [*plan["around"], program, *map(str, plan["arguments"])]
            environment = {f"NUMALLOC_{option.upper()}": value for option, value in plan["options"].items()}
            jobs.append(
                batch.Job(
                    name,
                    command,
                    {"LD_PRELOAD": str(Path(library).with_name(plan["library"])) if plan["library"] else library, **environment},
                    plan["setup"],
                )
            )
        return batch.run(self.machine, jobs, **switches)


def passed(report: batch.Report, name: str) -> batch.Result:
    assert name in report.results, f"did not run; the machine said: {report.findings}"
    result = report.results[name]
    assert result.oom_kills == 0, f"the out-of-memory killer was at work\n{result.stdout}"
    assert result.status == 0, f"exit status {result.status}\n{result.stdout}\n{result.stderr}"
    return result
