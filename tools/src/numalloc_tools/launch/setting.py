"""The levers of a run, for flags, profile files and `numalloc tune`."""

from dataclasses import dataclass

from numalloc_tools.options_table import is_node_list, option
from numalloc_tools.problem import Problem

DEFAULT = "default"  # of every lever: set nothing
THREADS = (DEFAULT, "none", "sparse", "dense")
MEMORY_WORDS = (DEFAULT, "first-touch", "local", "interleave", "weighted")
MEMORY_ACCEPTED = ", ".join((*MEMORY_WORDS, "preferred:NODE, bind:NODES such as 0-3,8"))
HUGE_PAGES = (DEFAULT, "on", "off")
AUTONUMA = (DEFAULT, "off")
OWN_FLAGS = ("memory", "verbose")  # options of the library that flags of their own cover


@dataclass(frozen=True)
class Setting:
    allocator: str = "numalloc"  # a name that allocators.find() accepts, or a path
    threads: str = DEFAULT
    memory: str = DEFAULT
    huge_pages: str = DEFAULT
    autonuma: str = DEFAULT
    binding_only: bool = False
    options: tuple[tuple[str, str], ...] = ()  # of numalloc, by their names in options.def

    def __post_init__(self) -> None:
        """Rejects bad values. prepared() checks whether this machine can do what they request."""
        if not self.allocator:
            raise Problem("--allocator: '' is not an allocator; accepted: a name such as numalloc, or the path of a library")
        _one_of("--threads", self.threads, THREADS)
        check_memory(self.memory)
        _one_of("--huge-pages", self.huge_pages, HUGE_PAGES)
        _one_of("--autonuma", self.autonuma, AUTONUMA)
        for name, value in self.options:
            if name in OWN_FLAGS:
                raise Problem(f"{name}: this option has a flag of its own; accepted: --{name}")
            option(name).check(value)

    def flags(self) -> list[str]:
        """The arguments of `numalloc run` for this setting; empty for the default."""
        flags = []
        for name in ("allocator", "threads", "memory", "huge_pages", "autonuma"):
            if (value := getattr(self, name)) != getattr(Setting, name):
                flags += ["--" + name.replace("_", "-"), value]
        if self.binding_only:
            flags.append("--binding-only")
        for name, value in self.options:
            flags += [option(name).flag, value]
        return flags


def check_memory(text: str) -> str:
    word, colon, rest = text.partition(":")
    if not colon:
        good = word in MEMORY_WORDS
    else:
        good = is_node_list(rest) and (word == "bind" or (word == "preferred" and rest.isdigit()))
    if not good:
        raise Problem(f"--memory: '{text}' is not understood; accepted: {MEMORY_ACCEPTED}")
    return text


def _one_of(flag: str, value: str, accepted: tuple[str, ...]) -> None:
    if value not in accepted:
        raise Problem(f"{flag}: '{value}' is unknown; accepted: {', '.join(accepted)}")
