"""A finding of the doctor: the fact, the harm, and the remedy."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from numalloc_tools import options_table
from numalloc_tools.machine.facts import Machine
from numalloc_tools.machine.process import Process

OK, NOTE, WARNING, BAD = SEVERITIES = ("ok", "note", "warning", "bad")


@dataclass(frozen=True)
class Finding:
    severity: str
    name: str  # the same in every version
    what: str
    why: str = ""
    mend: list[str] = field(default_factory=list)  # commands, or a sentence


@dataclass(frozen=True)
class Case:
    """The subject of the checks: the machine, and the process, or the process that would start the program."""

    machine: Machine
    process: Process
    environment: Mapping[str, str]
    threads: int | None  # of the program, if known

    @property
    def several_nodes(self) -> bool:
        """Whether the process may use the memory of more than one node: the library counts only such nodes."""
        return len(self.usable_nodes) > 1

    @property
    def usable_nodes(self) -> list[int]:
        with_memory = [node.number for node in self.machine.nodes.with_memory]
        allowed = [number for number in with_memory if number in self.process.mems]
        return allowed or with_memory

    def option(self, name: str) -> str:
        """The value that the library uses: the default, if it does not understand the text."""
        known = options_table.option(name)
        value = self.environment.get(known.variable)
        return value if value and known.understands(value) else known.default


def worst(findings: list[Finding]) -> str:
    return max((finding.severity for finding in findings), key=SEVERITIES.index, default=OK)
