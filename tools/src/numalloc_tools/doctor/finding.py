"""What the doctor says: what is so, why it hurts, and what mends it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from numalloc_tools import options_table
from numalloc_tools.machine.facts import Machine
from numalloc_tools.machine.process import Process

OK, NOTE, WARNING, BAD = SEVERITIES = ("ok", "note", "warning", "bad")


@dataclass(frozen=True)
class Finding:
    severity: str
    name: str  # stays the same from version to version
    what: str
    why: str = ""
    mend: list[str] = field(default_factory=list)  # commands, or a sentence where there is none


@dataclass(frozen=True)
class Case:
    """What is looked at: the machine, and the process or the one that would start the program."""

    machine: Machine
    process: Process
    environment: Mapping[str, str]
    threads: int | None  # of the program, where somebody told

    @property
    def several_nodes(self) -> bool:
        """Whether the library sees more than one node: those with memory that the process may use."""
        return len(self.usable_nodes) > 1

    @property
    def usable_nodes(self) -> list[int]:
        with_memory = [node.number for node in self.machine.nodes.with_memory]
        allowed = [number for number in with_memory if number in self.process.mems]
        return allowed or with_memory

    def option(self, name: str) -> str:
        """As the library goes by it: what it does not understand is the default."""
        known = options_table.option(name)
        value = self.environment.get(known.variable)
        return value if value and known.understands(value) else known.default


def worst(findings: list[Finding]) -> str:
    return max((finding.severity for finding in findings), key=SEVERITIES.index, default=OK)
