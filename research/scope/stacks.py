"""From samples of registers and stacks to the functions that were being called, by the files' own tables for unwinding."""

import struct
from bisect import bisect_right
from collections import Counter, defaultdict
from functools import cache

from elftools.common.exceptions import DWARFError, ELFError
from elftools.dwarf.callframe import FDE
from elftools.elf.elffile import ELFFile
from numalloc_tools.symbols import names_in

from research.scope import elf

DEEPEST = 64
CUT = "[deeper]"  # the sample's part of the stack ended before its frames did
_REGISTERS = (3, 6, 7, 12, 13, 14, 15)  # rbx, rbp, rsp, r12 to r15, as the tables number them
_STACK, _RETURN = 7, 16
_PLT_CODE = 16  # bytes of an entry; the last of them run after a push

Frame = int  # an address of the process


def named(raw: dict, maps: elf.Maps) -> list[dict]:
    """Each stack once, the innermost function first, with the lines that it stands for; those with the most first."""
    unwound = [(tuple(_frames(one, maps)), one["transfer"]) for one in raw["samples"]]
    names = _names({address for frames, _ in unwound for address in frames}, maps)
    lines: dict[tuple[str, ...], Counter] = defaultdict(Counter)
    for frames, transfer in unwound:
        functions = tuple(name for address in frames for name in names[address])
        lines[functions]["transfers" if transfer else "fills"] += raw["lines_each"]
    found = [{"frames": list(frames), "fills": count["fills"], "transfers": count["transfers"]} for frames, count in lines.items()]
    return sorted(found, key=lambda one: (-one["fills"] - one["transfers"], one["frames"]))


def folded(runs: list[tuple[str, list[dict]]]) -> str:
    """A line a stack, as tools for flame graphs take them: the run's name, the functions from main on, lines."""

    def line(name: str, stack: dict) -> str:
        words = [word.replace(";", ":") for word in (name, *reversed(stack["frames"]))]
        return f"{';'.join(words)} {stack['fills'] + stack['transfers']}\n"

    return "".join(line(name, stack) for name, stacks in runs for stack in stacks)


def _names(addresses: set[Frame], maps: elf.Maps) -> dict[Frame, tuple[str, ...]]:
    found: dict[Frame, tuple[str, ...]] = {0: (CUT,)}
    by_file: dict[str, dict[int, list[Frame]]] = defaultdict(lambda: defaultdict(list))
    for address in addresses - {0}:
        place = maps.place(address)
        found[address] = (place.symbol if place.path.startswith("/") else place.object,)
        if (file := maps.file(address)) is not None:
            by_file[file[0]][file[1]].append(address)
    for path, offsets in by_file.items():
        for offset, names in names_in(path, list(offsets)).items():
            for address in offsets[offset]:
                found[address] = tuple(name.function for name in names)
    return found


def _frames(sample: dict, maps: elf.Maps) -> list[Frame]:
    """Addresses within the instructions, the innermost first; 0 at the end if the stack goes on beyond the sample."""
    stack = bytes.fromhex(sample["stack"])
    registers = dict(zip(_REGISTERS, sample["registers"]))
    bottom = registers[_STACK]

    def word(address: int) -> int | None:
        at = address - bottom
        return struct.unpack_from("<Q", stack, at)[0] if 0 <= at <= len(stack) - 8 else None

    frames = [int(sample["at"], 16)]
    while len(frames) < DEEPEST:
        place = maps.place(frames[-1])
        rules = _rules(place.path, place.address) if place.path.startswith("/") else None
        if rules is None:
            break
        cfa = _cfa(rules["cfa"], registers, place.address)
        if cfa is None:
            break
        before: dict[int, int | None] = {}
        for number, rule in rules.items():
            if number != "cfa" and rule.type == "OFFSET":
                before[number] = word(cfa + rule.arg)
        if _RETURN not in before:  # where a thread begins
            break
        back = before[_RETURN]
        if not back:
            if back is None:
                frames.append(0)
            break
        registers = registers | {number: value for number, value in before.items() if value is not None} | {_STACK: cfa}
        frames.append(back - 1)  # in the call
    if len(frames) == DEEPEST:
        frames.append(0)
    return frames


def _cfa(rule, registers: dict[int, int], address: int) -> int | None:
    if rule.expr is not None:  # of the table by which functions of other libraries are called: one push in its midst
        return registers[_STACK] + 8 + 8 * (address % _PLT_CODE >= 11)
    base = registers.get(rule.reg)
    return None if base is None else base + rule.offset


def _rules(path: str, address: int) -> dict | None:
    """How the frame before is found, at this address of the file."""
    starts, entries = _entries(path)
    index = bisect_right(starts, address) - 1
    if index < 0 or address >= starts[index] + entries[index]["address_range"]:
        return None
    try:
        rows = [row for row in entries[index].get_decoded().table if row["pc"] <= address]
    except (DWARFError, KeyError, IndexError):
        return None
    return {key: value for key, value in rows[-1].items() if key != "pc"} if rows else None


@cache
def _entries(path: str) -> tuple[list[int], list[FDE]]:
    try:
        with open(path, "rb") as file:
            dwarf = ELFFile(file).get_dwarf_info(relocate_dwarf_sections=False)
            found = [entry for entry in dwarf.EH_CFI_entries() if isinstance(entry, FDE)] if dwarf.has_EH_CFI() else []
            found.sort(key=lambda entry: entry["initial_location"])
    except (OSError, ELFError, DWARFError):
        return [], []
    return [entry["initial_location"] for entry in found], found
