"""The tables of programs: what each row may say, and what it means if it does not."""

import re
from dataclasses import dataclass, field, fields
from pathlib import Path

try:
    import tomllib
except ModuleNotFoundError:  # before Python 3.11
    import tomli as tomllib

TABLES = Path(__file__).resolve().parent.parent / "tables"


@dataclass
class Measure:
    """A number in a program's output that is held against glibc's."""

    name: str
    pattern: str
    at_most: float = 0.0  # times glibc's; 0: no bound
    at_least: float = 0.0


@dataclass
class Row:
    name: str
    family: str = ""
    # What must be there. `build` runs once, in $BUILD, without the library.
    apt: list[str] = field(default_factory=list)
    pypi: list[str] = field(default_factory=list)
    npm: list[str] = field(default_factory=list)
    cargo: list[str] = field(default_factory=list)
    build: list[str] = field(default_factory=list)
    version: str = ""
    # What runs, in a fresh folder, under one malloc and then under the other. Either a command that ends by
    # itself, or a server that is loaded and then stopped.
    prepare: list[str] = field(default_factory=list)
    command: str = ""
    server: str = ""
    ready: str = ""
    load: str = ""
    stop: str = ""  # a command, or the name of a signal
    settle: float = 2.0  # seconds between the end of the load and the weighing
    user: str = ""  # for programs that refuse root
    root: bool = False  # needs it; otherwise it is not tried
    env: dict[str, str] = field(default_factory=dict)
    sysctl: dict[str, str] = field(default_factory=dict)  # the whole machine's, for the length of a run
    preload: bool = True  # false: the command itself says where $LIBRARY goes
    # What must agree. The status is what glibc's run must end with, too.
    status: int = 0
    check: str = ""  # found in the output of both
    output: str = "same"  # or "free"
    errors: str = "same"
    normalise: list[list[str]] = field(default_factory=list)
    files: list[str] = field(default_factory=list)  # byte for byte
    pictures: list[str] = field(default_factory=list)  # pixel for pixel
    measures: list[Measure] = field(default_factory=list)
    memory: str = "held"  # or "free": weighed and shown, but not judged
    signals_free: list[str] = field(default_factory=list)  # "NAME SIGNAL", by regular expression
    unserved: list[str] = field(default_factory=list)  # processes that run without the library, by design
    # How.
    traces: bool = False  # traces other processes, and so cannot be traced itself
    timeout: float = 120.0  # seconds for one run
    quick: bool = False  # belongs to the choice that runs with the tests
    note: str = ""
    cannot: str = ""  # why it cannot work; it is an error if it then does

    def __post_init__(self) -> None:
        self.measures = [measure if isinstance(measure, Measure) else Measure(**measure) for measure in self.measures]
        if bool(self.command) == bool(self.server):
            raise ValueError(f"{self.name}: has a command or a server, and not both")
        for pattern, _ in self.normalise:
            re.compile(pattern)
        for name, accepted in (("output", ("same", "free")), ("errors", ("same", "free")), ("memory", ("held", "free"))):
            if getattr(self, name) not in accepted:
                raise ValueError(f"{self.name}: {name} = {getattr(self, name)!r}; accepted: {' or '.join(accepted)}")


def rows(folder: Path = TABLES) -> list[Row]:
    """All rows, family by family; a key that no row knows is an error, and so is a name that comes twice."""
    known = {entry.name for entry in fields(Row)}
    found: list[Row] = []
    for path in sorted(folder.glob("*.toml")):
        content = tomllib.loads(path.read_text())
        for entry in content["program"]:
            if unknown := set(entry) - known:
                raise ValueError(f"{path.name}: {entry.get('name')}: unknown key {', '.join(sorted(unknown))}")
            found.append(Row(**entry, family=content["family"]))
    names = [row.name for row in found]
    if twice := {name for name in names if names.count(name) > 1}:
        raise ValueError(f"comes twice: {', '.join(sorted(twice))}")
    return found
