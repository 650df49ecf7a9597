#!/usr/bin/env python3
"""arithmetic.py [all]: what all of the heap leans on, for every value that there can be, by the solver z3.

Each claim is about lines of the sources, which stand with it: who changes such a line looks at its claim, too. Each has a
fault made for it, which the solver must find. Regions of 4 GiB, 256 GiB and 32 TiB; `all`: of every length, a minute
of processor time. Status 77 where z3 is not installed.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

try:
    from z3 import UGE, ULE, ULT, And, BitVec, BitVecVal, Implies, LShR, Not, Or, Solver, unsat
except ImportError:
    print("z3 is not here; .venv/bin/pip install -e 'tools[test]' brings it")
    sys.exit(77)

SOURCES = Path(__file__).resolve().parents[2] / "src"
BAG_SHIFT, GRANULE_SHIFT = 15, 4
LONGEST, MOST_THREAD_HEAPS = 13 << 40, 128 << 20
ADDRESSES = 1 << 47  # that Linux gives to programs which do not ask for more

LINES = {
    "heap/space/address_space.h": (
        "constexpr unsigned largest_stride_shift = 45;",
        "constexpr Bytes smallest_stride = 4 * GiB;",
        "constexpr Bytes longest_region = 13 * TiB;",
        "constexpr std::uint64_t most_bags = longest_region >> bag_shift;",
        "constexpr Bytes most_thread_heaps = 128 * MiB;",
        "constexpr Bytes class_reach = most_bags + most_thread_heaps;",
        "return static_cast<unsigned>((address_of(p) - base_) >> stride_shift_);",
        "return base_ + (Address{r} << stride_shift_);",
        "Bytes thread_heaps_offset() const { return class_reach - thread_heaps_bytes(); }",
    ),
    "heap/space/address_space.cpp": (
        "const Bytes length = min_of(stride() / 2, longest_region);",
        "thread_heaps_bytes_ = min_of(most_thread_heaps, align_down((stride() - end_offset_) >> bag_shift, page));",
    ),
    "heap/space/region.h": (
        "Address bias_for(Address h) const { return (bags_before(h) << bag_shift) - start_; }",
        "std::uint64_t bound_for(Address h) const { return bags_before(h) + end_bag_.value; }",
        "std::uint64_t bags_before(Address h) const { return class_reach - (h - start_); }",
    ),
    "heap/thread/hot.h": (
        "const std::uint64_t j = (address_of(p) + heap->bias) >> bag_shift;",
        "if (NUMALLOC_UNLIKELY(j >= heap->bound)) return Pushed::elsewhere;",
        "const auto* const byte = reinterpret_cast<const std::uint8_t*>(heap) - class_reach + j;",
    ),
    "heap/thread/hardened_paths.h": (
        "const std::uint64_t j = (address_of(object) + heap->bias) >> bag_shift;",
        "const std::uint64_t j = (address_of(p) + heap->bias) >> bag_shift;",
        "if (NUMALLOC_UNLIKELY(j >= heap->bound)) return Pushed::elsewhere;",
    ),
    "heap/central/free_list.h": (
        ": word_(address_of(newest) >> granule_shift | std::uint64_t{count} << count_shift | std::uint64_t{shard} << shard_shift) {}",
        "longer.word_ = (word_ & ~address_mask) + (std::uint64_t{more} << count_shift) + (address_of(newest) >> granule_shift);",
        "return reinterpret_cast<Object*>((word_ & address_mask) << granule_shift);",
        "return static_cast<std::uint32_t>(word_ >> count_shift) & ((1U << (shard_shift - count_shift)) - 1);",
        "return static_cast<unsigned>(word_ >> shard_shift);",
        "static constexpr unsigned count_shift = 44;",
        "static constexpr unsigned shard_shift = 56;",
    ),
    "heap/central/ring.h": (
        "static constexpr unsigned count_bits = 20;",
        "return address_of(list.head) >> granule_shift << count_bits | list.count;",
        "word >> count_bits << granule_shift",
        "static_cast<std::uint32_t>(word & ((1U << count_bits) - 1))",
    ),
}


def word(name: str):
    return BitVec(name, 64)


class Region:
    """One node's, with 2^shift bytes of addresses, and a thread's heap in it. `crowd`: times as many heaps as there may be."""

    def __init__(self, shift: int, crowd: int):
        reach = (LONGEST >> BAG_SHIFT) + MOST_THREAD_HEAPS
        self.stride = 1 << shift
        self.start, self.end, self.p = word("start"), word("end"), word("p")  # `end`: of the bags, from the start
        heap = word("heap")
        heaps = word("heaps")  # their bytes
        self.below = heaps << BAG_SHIFT
        before = reach - (heap - self.start)
        bias = (before << BAG_SHIFT) - self.start
        self.j = LShR(self.p + bias, BAG_SHIFT)
        self.bound = before + LShR(self.end, BAG_SHIFT)
        self.byte = heap - reach + self.j
        aligned = (1 << BAG_SHIFT) - 1
        self.known = And(
            self.start & aligned == 0,
            UGE(self.start, self.stride),  # nothing lies in the first stride: the kernel maps no page at 0
            ULE(self.start, ADDRESSES - self.stride),
            self.end & aligned == 0,
            ULE(self.end, min(self.stride // 2, LONGEST)),
            ULE(heaps, crowd * LShR(self.stride - self.end, BAG_SHIFT)),
            ULE(heaps, crowd * MOST_THREAD_HEAPS),
            UGE(heap, self.start + reach - heaps),
            ULT(heap, self.start + reach),
        )
        self.passes = ULT(self.j, self.bound)
        self.inside = ULT(self.p - self.start, self.end)


def finds_its_byte(shift: int, fault: bool):
    r = Region(shift, crowd=1)
    byte = r.start + LShR(r.p - r.start, BAG_SHIFT) + (1 if fault else 0)
    return Implies(And(r.known, r.inside), And(r.passes, r.byte == byte))


def others_stay_out(shift: int, fault: bool):
    """A bag of another region never passes, and what passes beside the bags lies right before the region."""
    r = Region(shift, crowd=8 if fault else 1)
    regions = word("regions")
    other = r.start + (regions << shift)
    there = And(other != r.start, ULT(other, ADDRESSES), ULT(r.p - other, r.end))
    gap = And(ULT(r.p, r.start), ULE(r.start - r.p, r.below))
    return Implies(r.known, And(Implies(there, Not(r.passes)), Implies(r.passes, Or(r.inside, gap))))


def node_of_an_address(shift: int, fault: bool):
    base, node, offset = word("base"), word("node"), word("offset")
    known = And(ULT(base, ADDRESSES), ULT(node, 128), ULE(offset, 1 << shift) if fault else ULT(offset, 1 << shift))
    return Implies(known, LShR(base + (node << shift) + offset - base, shift) == node)


def freed_objects_in_a_word(_: int, fault: bool):
    count_shift, shard_shift = (43 if fault else 44), 56
    newest, then, count, more, shard = map(word, ("newest", "then", "count", "more", "shard"))
    mask = (1 << count_shift) - 1

    def of(packed):
        many = LShR(packed, count_shift) & ((1 << (shard_shift - count_shift)) - 1)
        return (packed & mask) << GRANULE_SHIFT, many, LShR(packed, shard_shift)

    packed = LShR(newest, GRANULE_SHIFT) | count << count_shift | shard << shard_shift
    longer = (packed & ~BitVecVal(mask, 64)) + (more << count_shift) + LShR(then, GRANULE_SHIFT)
    known = And(
        newest & 15 == 0,
        then & 15 == 0,
        ULT(newest, 1 << 48),
        ULT(then, 1 << 48),
        ULT(count, 1 << 12),
        ULT(more, 1 << 12),
        ULT(count + more, 1 << 12),
        ULT(shard, 1 << 8),
    )
    right = [a == b for a, b in zip((*of(packed), *of(longer)), (newest, count, shard, then, count + more, shard), strict=True)]
    return Implies(known, And(*right))


def batch_in_a_slot(_: int, fault: bool):
    bits = 21 if fault else 20
    head, count = word("head"), word("count")
    packed = LShR(head, GRANULE_SHIFT) << bits | count
    known = And(head & 15 == 0, ULT(head, 1 << 48), ULT(count, 1 << 20))
    return Implies(known, And(LShR(packed, bits) << GRANULE_SHIFT == head, packed & ((1 << bits) - 1) == count))


STRIDES = range(32, 46) if sys.argv[1:] == ["all"] else (32, 38, 45)
CLAIMS = {
    finds_its_byte: STRIDES,
    others_stay_out: STRIDES,
    node_of_an_address: STRIDES,
    freed_objects_in_a_word: (0,),
    batch_in_a_slot: (0,),
}


def packed(text: str) -> str:
    """A formatter may break a line anywhere."""
    return "".join(text.split())


def holds(claim) -> bool:
    solver = Solver()
    solver.add(Not(claim))
    return solver.check() == unsat


def faults() -> Iterator[str]:
    for name, lines in LINES.items():
        text = packed((SOURCES / name).read_text())
        yield from (f"{name} has no longer the line that a claim is about: {line}" for line in lines if packed(line) not in text)
    for claim, shifts in CLAIMS.items():
        yield from (f"{claim.__name__}({shift}) does not hold" for shift in shifts if not holds(claim(shift, fault=False)))
        if any(holds(claim(shift, fault=True)) for shift in shifts):
            yield f"{claim.__name__}: the fault made for it was not found"


def main() -> None:
    if found := list(faults()):
        sys.exit("\n".join(found))
    print(f"{len(CLAIMS)} claims hold for every value, and the fault made for each was found")


if __name__ == "__main__":
    main()
