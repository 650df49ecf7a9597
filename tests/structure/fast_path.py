#!/usr/bin/env python3
"""What the straight paths of malloc and free cost, counted in the machine code itself.

    fast_path.py LIBNUMALLOC_SO [--exact] [--write]

A straight path goes from a function's entry to a `ret` without calling or jumping out. All of
them are found; the shortest comes first. On each are counted, ret included:

    instructions   loads   got   stores   rmw   branches (conditional ones)

got: the load of a thread variable's offset from the global offset table. It is counted by
itself because a static link turns it into a constant. rmw: a load and store in one instruction.

The limits below hold for every compiler (x86-64). With --exact, as for gcc 12, the counts must
also be those of golden/fast_path.txt; --write makes that file anew.
"""

import re
import sys
from dataclasses import astuple, dataclass

from check import GOLDEN, differences, finish, golden_lines, run

GOLDEN_FILE = "fast_path.txt"


@dataclass(frozen=True, order=True)
class Cost:
    instructions: int = 0
    loads: int = 0
    got: int = 0
    stores: int = 0
    rmw: int = 0
    branches: int = 0

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(*(a + b for a, b in zip(astuple(self), astuple(other))))


@dataclass(frozen=True)
class Limit:
    loads: int
    stores: int
    rmw: int
    branches: int


# What is asked of the code: (function, which of its straight paths, name, limit).
# One load of malloc is its class, from a table, and one the next object again, into the register that held the mark.
MALLOC = Limit(loads=6, stores=1, rmw=2, branches=3)
MEDIUM = Limit(loads=6, stores=1, rmw=2, branches=4)
FREE = Limit(loads=7, stores=3, rmw=1, branches=3)
CALLOC = Limit(loads=5, stores=5, rmw=2, branches=6)
PATHS = [
    ("malloc", 0, "malloc, up to 1,984 B", MALLOC),
    ("malloc", 1, "malloc, up to 32 KiB", MEDIUM),
    ("free", 0, "free", FREE),
    ("calloc", 1, "calloc, 33 to 64 bytes", CALLOC),
    ("_Znwm", 0, "operator new, up to 1,984 B", MALLOC),
    ("_Znwm", 1, "operator new, up to 32 KiB", MEDIUM),
    ("_ZdlPv", 0, "operator delete", FREE),
    ("_ZdlPvm", 0, "operator delete, sized", FREE),
    ("_Znam", 0, "operator new[], up to 1,984 B", MALLOC),
    ("_Znam", 1, "operator new[], up to 32 KiB", MEDIUM),
    ("_ZnwmRKSt9nothrow_t", 0, "nothrow new, up to 1,984 B", MALLOC),
    ("_ZnamRKSt9nothrow_t", 0, "nothrow new[], up to 1,984 B", MALLOC),
    ("_ZdaPv", 0, "operator delete[]", FREE),
    ("_ZdaPvm", 0, "operator delete[], sized", FREE),
    ("_ZdlPvSt11align_val_t", 0, "operator delete, aligned", FREE),
]

# Those whose memory operand is only read even when it stands last, or is no access at all.
ONLY_READ = re.compile(r"(cmp|test|bt|ucomis|comis|ptest|prefetch)\w*$")
NO_ACCESS = re.compile(r"(lea|nop|data16|endbr64|xchg)\w*$")
MOVES = re.compile(r"(v?mov|set|v?movaps|v?movups)\w*$")
MEMORY = re.compile(r"%fs:|\(")


@dataclass(frozen=True)
class Instruction:
    mnemonic: str
    operands: list[str]
    target: int | None  # of a jump or call
    through_got: bool

    @property
    def is_conditional(self) -> bool:
        return self.mnemonic.startswith("j") and self.mnemonic != "jmp"

    def cost(self) -> Cost:
        one = Cost(instructions=1, branches=int(self.is_conditional))
        if not self.operands or NO_ACCESS.match(self.mnemonic) or self.mnemonic.startswith("j"):
            return one
        if self.through_got:
            return one + Cost(got=1)
        last, others = self.operands[-1], self.operands[:-1]
        if any(MEMORY.search(o) for o in others):
            return one + Cost(loads=1)
        if not MEMORY.search(last):
            return one
        if ONLY_READ.match(self.mnemonic) or (not others and self.mnemonic.startswith(("push", "mul", "imul", "div"))):
            return one + Cost(loads=1)
        return one + (Cost(stores=1) if MOVES.match(self.mnemonic) else Cost(rmw=1))


class Code:
    """The functions of a library, by name."""

    def __init__(self, library: str) -> None:
        self.at: dict[int, Instruction] = {}
        self.after: dict[int, int] = {}
        self.range: dict[str, tuple[int, int]] = {}
        for line in run("nm", "-S", "--defined-only", library).splitlines():
            words = line.split()
            if len(words) == 4 and words[2] in "tTwWiI":
                start = int(words[0], 16)
                self.range[words[3]] = (start, start + int(words[1], 16))
        found = re.search(r"\s\.got\s+PROGBITS\s+(\w+)\s+\w+\s+(\w+)", run("readelf", "-SW", library))
        self.got = range(int(found[1], 16), int(found[1], 16) + int(found[2], 16)) if found else range(0)
        previous = None
        for line in run("objdump", "-d", "--no-show-raw-insn", "-j", ".text", library).splitlines():
            if not (found := re.match(r"\s*([0-9a-f]+):\s+(\S.*)", line)):
                continue
            address = int(found[1], 16)
            self.at[address] = self.parse(found[2])
            if previous is not None:
                self.after[previous] = address
            previous = address

    def parse(self, text: str) -> Instruction:
        code, _, comment = text.partition("#")
        mnemonic, _, rest = code.strip().partition(" ")
        while mnemonic in {"lock", "rep", "repz", "notrack", "cs", "bnd"} and rest:
            mnemonic, _, rest = rest.strip().partition(" ")
        target = None
        if mnemonic.startswith(("j", "call")) and (found := re.match(r"\s*([0-9a-f]+)\s", rest + " ")):
            target = int(found[1], 16)
        operands = [o for o in re.split(r",(?![^(]*\))", re.sub(r"<.*>", "", rest).strip()) if o]
        named = re.match(r"\s*([0-9a-f]+)\s", comment)
        through_got = mnemonic.startswith("mov") and "(%rip)" in rest and named is not None and int(named[1], 16) in self.got
        return Instruction(mnemonic, operands, target, through_got)

    def straight_paths(self, function: str) -> list[Cost]:
        start, end = self.range[function]
        paths: list[Cost] = []

        def follow(address: int, cost: Cost, seen: frozenset[int]) -> None:
            while start <= address < end and address not in seen:
                seen |= {address}
                instruction = self.at[address]
                cost += instruction.cost()
                if instruction.mnemonic.startswith("ret"):
                    paths.append(cost)
                    return
                if instruction.mnemonic.startswith(("call", "hlt", "ud2")):
                    return
                if instruction.mnemonic == "jmp":
                    if instruction.target is None:
                        return
                    address = instruction.target
                    continue
                if instruction.is_conditional and instruction.target is not None:
                    follow(instruction.target, cost, seen)
                address = self.after[address]

        follow(start, Cost(), frozenset())
        return sorted(paths)


def main() -> None:
    code = Code(sys.argv[1])
    faults, lines = [], []
    for function, which, name, limit in PATHS:
        paths = code.straight_paths(function)
        if which >= len(paths):
            faults.append(f"{name}: only {len(paths)} straight paths in {function}: it calls or jumps out")
            continue
        cost = paths[which]
        lines.append(f"{name:30}" + "".join(f"{n:10}" for n in astuple(cost)))
        for what in ("loads", "stores", "rmw", "branches"):
            if getattr(cost, what) > getattr(limit, what):
                faults.append(f"{name}: {getattr(cost, what)} {what}, at most {getattr(limit, what)} are allowed")
        if cost.got > 1:
            faults.append(f"{name}: {cost.got} loads from the GOT")
    titles = f"{'# straight path':30}" + "".join(f"{w:>10}" for w in ("instr.", "loads", "got", "stores", "rmw", "branches"))
    if "--write" in sys.argv:
        head = "# gcc 12, x86-64, release; made by `fast_path.py LIBRARY --write`, checked with --exact.\n"
        (GOLDEN / GOLDEN_FILE).write_text(head + titles + "\n" + "\n".join(lines) + "\n")
    if "--exact" in sys.argv:
        faults += differences("fast path", lines, golden_lines(GOLDEN_FILE))
    print(titles, *lines, sep="\n")
    finish(faults, "within the limits")


if __name__ == "__main__":
    main()
