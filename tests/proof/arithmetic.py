#!/usr/bin/env python3
"""arithmetic.py [all]: what all of the heap leans on, for every value that there can be, by the solver z3.

Each claim is about lines of the sources, which stand with it: who changes such a line looks at its claim, too. Each has a
fault made for it, which the solver must find. Regions of 4 GiB, 256 GiB and 8 TiB; `all`: of every length, two
minutes of processor time. Size classes: every one. Status 77 where z3 is not installed.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

try:
    from z3 import UGE, UGT, ULE, ULT, And, BitVec, BitVecVal, If, Implies, LShR, Not, Or, RotateRight, Solver, URem, unsat
except ImportError:
    print("z3 is not here; .venv/bin/pip install -e 'tools[test]' brings it")
    sys.exit(77)

SOURCES = Path(__file__).resolve().parents[2] / "src"
BAG_SHIFT, GRANULE_SHIFT = 15, 4
ADDRESSES = 1 << 47  # that Linux gives to programs which do not ask for more

LINES = {
    "heap/space/address_space.h": (
        "constexpr unsigned largest_stride_shift = 43;",
        "constexpr Bytes smallest_stride = 4 * GiB;",
        "constexpr Bytes longest_region = largest_stride / 2;",
        "constexpr std::uint64_t most_bags = longest_region >> bag_shift;",
        "constexpr Bytes class_reach = 2 * most_bags;",
        "return region_in_[(address_of(p) - base_) >> stride_shift_];",
        "return base_ + (Address{slot_of_[r]} << stride_shift_);",
    ),
    "heap/space/address_space.cpp": (
        "end_offset_ = min_of(length, os::huge_page + bags_room_ + bags_bytes_);",
        "thread_heaps_bytes_ = min_of(most_bags - page, align_down((stride() - end_offset_) >> bag_shift, page));",
        "at.bags_end = min_of(end_offset_, at.bags + bags_bytes_);",
        "at.class_map = end_offset_ + thread_heaps_bytes_ + page + drawn(chance, metadata_room_, page);",
        "at.thread_heaps_end = at.class_map + class_reach;",
        "at.thread_heaps = at.thread_heaps_end - thread_heaps_bytes_ + drawn(chance, thread_heaps_room_, page);",
    ),
    "heap/space/region.h": (
        "Address bias_for(Address h) const { return (bags_before(h) << bag_shift) - start_; }",
        "std::uint64_t bound_for(Address h) const { return bags_before(h) + end_bag_.value; }",
        "std::uint64_t bags_before(Address h) const { return class_reach - (h - address_of(class_map_)); }",
    ),
    "heap/thread/thread_heap.h": (
        "const std::uint64_t j = (address_of(object) + heap->bias) >> bag_shift;",
        "if (NUMALLOC_UNLIKELY(j >= heap->bound)) return Freed::elsewhere;",
        "const auto* const byte = reinterpret_cast<const std::uint8_t*>(heap) - class_reach + j;",
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
        "unsigned i = newest_.load(std::memory_order_relaxed) + 1U;",
        "if (i >= room) i = 0;",
        "const unsigned newest = newest_.load(std::memory_order_relaxed);",
        "for (unsigned k = 0; k < policy::ring_slots; ++k) {",
        "const unsigned i = (newest - k) % policy::ring_slots;",
        "newest_.store(static_cast<std::uint8_t>((i - 1) % policy::ring_slots), std::memory_order_relaxed);",
        "std::atomic<std::uint8_t> newest_{0};",
    ),
    "heap/space/size_class.h": (
        "constexpr unsigned bag_shift = 15;",
        "constexpr unsigned granule_shift = 4;",
        "constexpr Bytes tiny_limit = 1024;",
        "constexpr Bytes medium_limit = 32 * KiB;",
        "constexpr Bytes small_limit = 512 * KiB;",
        "constexpr unsigned tiny_classes = tiny_limit / granule;",
        "constexpr unsigned medium_classes = 5 * 8;",
        "constexpr unsigned large_classes = 4 * 4;",
        "if (n <= tiny_limit) return ClassId{static_cast<unsigned>((n + granule - 1) >> granule_shift)};",
        "const Bytes m = n - 1;",
        "const unsigned e = log2_floor(m);",
        "static_cast<unsigned>(tiny_classes + 1 + (e - 10) * 8 + ((m >> (e - 3)) & 7))",
        "static_cast<unsigned>(tiny_classes + medium_classes + 1 + (e - 15) * 4 + ((m >> (e - 2)) & 3))",
        "if (c <= tiny_classes) return c * granule;",
        "return (Bytes{9} + i % 8) << (10 + i / 8 - 3);",
        "return (Bytes{5} + i % 4) << (15 + i / 4 - 2);",
        "Bytes bags = divide_up(size, bag_bytes);",
        "const Bytes tails = size > medium_limit ? policy::lost_part_of_large : policy::lost_part;",
        "while ((bags * bag_bytes) % size * tails > bags * bag_bytes) ++bags;",
        "s.inverse = static_cast<std::uint32_t>(divide_up(Bytes{1} << 31, size / granule));",
        "s.objects = static_cast<std::uint16_t>(bags * bag_bytes / size);",
        "(((static_cast<std::uint64_t>(offset) >> granule_shift) * shape_of(c).inverse) >> 31)",
    ),
    "heap/central/list_check.h": (
        "k_(static_cast<unsigned>(__builtin_ctz(shape_of(c).size)))",
        "const std::uint32_t odd = shape_of(c).size >> k_;",
        "inverse_ = odd;  // right in three bits; each step doubles them",
        "for (int i = 0; i < 4; ++i) inverse_ *= 2 - odd * inverse_;",
        "const std::uint32_t offset = static_cast<std::uint32_t>(address_of(o) - bag);",
        "const std::uint32_t product = offset * inverse_;",
        "return (product >> k_ | product << (32 - k_)) < objects_;",
    ),
}


def word(name: str):
    return BitVec(name, 64)


class Region:
    """One node's, with 2^shift bytes of addresses, and a thread's heap in it. `crowd`: times as many heaps as there may be."""

    def __init__(self, shift: int, crowd: int):
        reach = 2 * (1 << 42 >> BAG_SHIFT)
        self.stride = 1 << shift
        self.start, self.end, self.p = word("start"), word("end"), word("p")  # `end`: of the bags, from the start
        self.map, self.heaps = word("map"), word("heaps")  # where the class map begins: anywhere behind the bags
        heap, heaps = word("heap"), self.heaps
        before = reach - (heap - self.map)
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
            ULE(self.end, self.stride // 2),
            ULE(heaps, crowd * LShR(self.stride - self.end, BAG_SHIFT)),
            ULE(heaps, crowd * (reach // 2)),
            UGE(self.map - self.start, self.end + heaps),
            ULE(self.map - self.start, self.stride - reach),
            UGE(heap, self.map + reach - heaps),
            ULT(heap, self.map + reach),
        )
        self.passes = ULT(self.j, self.bound)
        self.inside = ULT(self.p - self.start, self.end)


def finds_its_byte(shift: int, fault: bool):
    r = Region(shift, crowd=1)
    byte = r.map + LShR(r.p - r.start, BAG_SHIFT) + (1 if fault else 0)
    return Implies(And(r.known, r.inside), And(r.passes, r.byte == byte))


def reads_nothing_else(shift: int, fault: bool):
    """What passes leads to the class map, or to the bytes before it: as many as the thread heaps have, and never one of a bag."""
    r = Region(shift, crowd=1)
    first = r.map - (0 if fault else r.heaps)
    there = And(UGE(r.byte, first), ULT(r.byte, r.map + LShR(r.end, BAG_SHIFT)))
    return Implies(And(r.known, r.passes), And(there, UGE(r.byte, r.start + r.end)))


def others_stay_out(shift: int, fault: bool):
    """A bag of another region never passes, and what passes beside the bags lies right before the region."""
    r = Region(shift, crowd=3 if fault else 1)
    regions = word("regions")
    other = r.start + (regions << shift)
    there = And(other != r.start, ULT(other, ADDRESSES), ULT(r.p - other, r.end))
    gap = And(ULT(r.p, r.start), ULE(r.start - r.p, r.stride - r.end))
    return Implies(r.known, And(Implies(there, Not(r.passes)), Implies(r.passes, Or(r.inside, gap))))


def node_of_an_address(shift: int, fault: bool):
    """By its slot, which a table knows the node of: that this undoes the other one is for the unit tests."""
    base, slot, offset = word("base"), word("slot"), word("offset")
    known = And(ULT(base, ADDRESSES), ULT(slot, 1025), ULE(offset, 1 << shift) if fault else ULT(offset, 1 << shift))
    return Implies(known, LShR(base + (slot << shift) + offset - base, shift) == slot)


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


def policy(name: str) -> int:
    found = re.search(rf"\b{name} = (\d+);", (SOURCES / "heap/space/policy.h").read_text())
    return int(found[1]) if found else sys.exit(f"policy.h has no number {name}")


# Sizes and classes in 32 bits: all numbers are below 2^20.
TINY_LIMIT, MEDIUM_LIMIT, SMALL_LIMIT = 1 << 10, 1 << 15, 1 << 19
TINY, MEDIUM, LARGE = TINY_LIMIT >> GRANULE_SHIFT, 5 * 8, 4 * 4
CLASSES = range(1, 1 + TINY + MEDIUM + LARGE)


def class_of(n, one_less: int = 1):
    """Of the solver's numbers."""
    m = n - one_less
    found = LShR(n + (1 << GRANULE_SHIFT) - 1, GRANULE_SHIFT)
    for e in range(10, 20):
        if 1 << e < MEDIUM_LIMIT:
            of = TINY + 1 + (e - 10) * 8 + (LShR(m, e - 3) & 7)
        else:
            of = TINY + MEDIUM + 1 + (e - 15) * 4 + (LShR(m, e - 2) & 3)
        found = If(And(UGT(n, TINY_LIMIT), UGE(m, 1 << e), ULT(m, 2 << e)), of, found)
    return found


def size_of(c):
    medium, large = c - TINY - 1, c - TINY - MEDIUM - 1
    of_medium = (9 + (medium & 7)) << (10 + LShR(medium, 3) - 3)
    of_large = (5 + (large & 3)) << (15 + LShR(large, 2) - 2)
    return If(ULE(c, TINY), c << GRANULE_SHIFT, If(ULE(c, TINY + MEDIUM), of_medium, of_large))


def size_of_class(c: int) -> int:
    """Of Python's."""
    if c <= TINY:
        return c << GRANULE_SHIFT
    if c <= TINY + MEDIUM:
        return (9 + (c - TINY - 1) % 8) << (10 + (c - TINY - 1) // 8 - 3)
    return (5 + (c - TINY - MEDIUM - 1) % 4) << (15 + (c - TINY - MEDIUM - 1) // 4 - 2)


def smallest_class_that_fits(_: int, fault: bool):
    n, c = BitVec("n", 32), BitVec("c", 32)
    found = class_of(n, one_less=0 if fault else 1)
    known = And(UGE(n, 1), ULE(n, SMALL_LIMIT), UGE(c, 1), ULE(c, CLASSES[-1]))
    return Implies(known, And(UGE(found, 1), ULE(found, CLASSES[-1]), UGE(c, found) == UGE(size_of(c), n)))


def rounded_sizes_are_aligned(shift: int, fault: bool):
    """To 2^shift, up to the alignment of a bag; and so are all objects of it: each lies behind a multiple of the size."""
    n = BitVec("n", 32)
    step = 1 << (shift - 1 if fault else shift)  # the fault rounds to half of it
    rounded = (n + step - 1) & ~BitVecVal(step - 1, 32)
    known = And(UGE(n, 1), ULE(n, SMALL_LIMIT), ULE(rounded, SMALL_LIMIT))
    return Implies(known, size_of(class_of(rounded)) & ((1 << shift) - 1) == 0)


def steps_of_sizes(_: int, fault: bool):
    """All are of whole granules; above 1 KiB the size s in [2^e, 2^(e+1)) is a multiple of 2^(e-3), of 2^(e-2) above 32 KiB."""
    c = BitVec("c", 32)
    size = size_of(c)
    holds_of = [size & ((1 << GRANULE_SHIFT) - 1) == 0]
    for e in range(10, 20):
        part = 2 if (1 << e >= MEDIUM_LIMIT) != fault else 3
        holds_of.append(Implies(And(UGE(size, 1 << e), ULT(size, 2 << e)), size & ((1 << (e - part)) - 1) == 0))
    return Implies(And(UGE(c, 1), ULE(c, CLASSES[-1])), And(*holds_of))


class Shape:
    """A class's row of the table, as shape_of_class() makes it."""

    def __init__(self, c: int):
        self.size = size_of_class(c)
        bag, tails = 1 << BAG_SHIFT, policy("lost_part_of_large" if size_of_class(c) > MEDIUM_LIMIT else "lost_part")
        self.bags = -(-self.size // bag)
        while self.bags * bag % self.size * tails > self.bags * bag:
            self.bags += 1
        self.objects = self.bags * bag // self.size
        self.inverse = -(-(1 << 31) // (self.size >> GRANULE_SHIFT))


def only_starts_of_objects_pass(c: int, fault: bool):
    """For every offset of 32 bits, also those beyond the bag."""
    shape, offset = Shape(c), BitVec("offset", 32)
    k = (shape.size & -shape.size).bit_length() - 1
    odd = inverse = shape.size >> k
    for _ in range(4):
        inverse = inverse * (2 - odd * inverse) % (1 << 32)
    quotient = RotateRight(offset * inverse, k)
    passes = ULE(quotient, shape.objects) if fault else ULT(quotient, shape.objects)
    begins = And(URem(offset, BitVecVal(shape.size, 32)) == 0, ULT(offset, shape.objects * shape.size))
    return passes == begins


def object_of_an_offset(c: int, fault: bool):
    """For every offset of a bag, in granules: that of object n, and so much more. No bag is as long as 2^19."""
    shape, n, more = Shape(c), word("n"), word("more")
    granules, most = shape.size >> GRANULE_SHIFT, SMALL_LIMIT >> GRANULE_SHIFT
    error = shape.inverse * granules - (1 << 31)  # what the header says of it
    offset = n * granules + more
    known = And(ULT(n, most), ULT(more, granules), ULT(offset, most))
    found = LShR(offset * shape.inverse, 30 if fault else 31)
    return And(shape.bags << BAG_SHIFT <= SMALL_LIMIT, 0 <= error < granules < 1 << 16, Implies(known, found == n))


def slots_of_a_ring(_: int, fault: bool):
    """Of the last `room` lists that were pushed, pop looks at the newest first; push takes an empty slot or the oldest's."""
    slots = policy("ring_slots") - (4 if fault else 0)
    assert slots <= 256  # newest_ is a byte
    newest, room, younger, older, k, then = (BitVec(name, 32) for name in ("newest", "room", "younger", "older", "k", "then"))

    def looked_at(at):
        return URem(newest - at, BitVecVal(slots, 32))

    def slot_of(pushes):  # so many pushes ago
        return If(UGE(newest, pushes), newest - pushes, newest + room - pushes)

    def turn_of(pushes):
        return URem(newest - slot_of(pushes), BitVecVal(slots, 32))

    pushed = If(UGE(newest + 1, room), BitVecVal(0, 32), newest + 1)
    known = And(UGE(room, 1), ULE(room, slots), ULT(newest, slots), ULT(k, slots), ULT(then, slots))
    return Implies(
        known,
        And(
            ULT(pushed, room),
            Implies(k != then, looked_at(k) != looked_at(then)),
            URem(looked_at(k) - 1, BitVecVal(slots, 32)) == looked_at(k + 1),  # what is the newest after a pop
            Implies(And(ULT(newest, room), ULT(younger, older), ULT(older, room)), ULT(turn_of(younger), turn_of(older))),
            Implies(ULT(newest, room), pushed == slot_of(room - 1)),
        ),
    )


STRIDES = range(32, 44) if sys.argv[1:] == ["all"] else (32, 38, 43)
CLAIMS = {
    finds_its_byte: STRIDES,
    reads_nothing_else: STRIDES,
    others_stay_out: STRIDES,
    node_of_an_address: STRIDES,
    freed_objects_in_a_word: (0,),
    batch_in_a_slot: (0,),
    smallest_class_that_fits: (0,),
    rounded_sizes_are_aligned: range(GRANULE_SHIFT + 1, BAG_SHIFT + 1),
    steps_of_sizes: (0,),
    only_starts_of_objects_pass: CLASSES,
    object_of_an_offset: CLASSES,
    slots_of_a_ring: (0,),
}


def holds(claim) -> bool:
    solver = Solver()
    solver.add(Not(claim))
    return solver.check() == unsat


def faults() -> Iterator[str]:
    for name, lines in LINES.items():
        text = (SOURCES / name).read_text()
        yield from (f"{name} has no longer the line that a claim is about: {line}" for line in lines if line not in text)
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
