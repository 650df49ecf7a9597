#include "heap/space/region.h"

#include <cerrno>
#include <initializer_list>

#include "os/topology.h"

namespace numalloc {

namespace policy::mapping {

// The heap grows by 1/32 of its length, up to 64 MiB, and while it is small by 1/2, up to 2 MiB. So a large heap makes
// few system calls, and the slack stays small: mlockall() makes it resident, strict overcommit charges it, and a limit
// on address space counts it.
constexpr Bytes smallest_step = 256 * KiB;
constexpr Bytes small_heap_step = 2 * MiB;
constexpr Bytes largest_step = 64 * MiB;
constexpr Bytes step_after(Bytes used) {
    const Bytes step = max_of(min_of(used / 2, small_heap_step), min_of(used / 32, largest_step));
    return max_of(align_down(step, smallest_step), smallest_step);
}
// Attempts to map the heap's next step. One may fail because os::mapping_length(), in another thread, maps a page
// behind the heap's end for a moment.
constexpr int tries = 3;

// Metadata is mapped for 128 MiB of bags at a time, thread heaps 64 KiB at a time, to save system calls.
constexpr Bytes metadata_step = 128 * MiB;
constexpr Bytes thread_heaps_step = 64 * KiB;
// Metadata for that many bags beyond the last one may stay mapped where they are refused: about 1 MiB.
constexpr Bytes few_bags = 1 * GiB;
// free() looks a pointer up in the class map before it knows that the pointer was allocated, so the map reaches 2 GiB
// of bags beyond the last one.
constexpr Bytes class_map_ahead = 2 * GiB;

}  // namespace policy::mapping

namespace {

constexpr std::uint64_t metadata_step = policy::mapping::metadata_step >> bag_shift;

// Where pages are longer than a bag, bags are mapped in whole pages.
std::uint64_t whole_pages(std::uint64_t bags) {
    return align_up(bags, max_of(os::page_size(), bag_bytes) >> bag_shift);
}

Bytes length_of(BagRange bags) { return Bytes{bags.end - bags.first} << bag_shift; }

}  // namespace

bool MetadataPages::map_up_to(Address end, const AddressSpace& space, const RegionPages& pages) {
    end = align_up(end, os::page_size());
    if (end <= end_) return true;
    if (space.map(end_, end - end_) != os::Mapped::done) return false;
    void* const p = reinterpret_cast<void*>(end_);
    pages.bind_metadata(p, end - end_);
    os::advise_huge(p, end - end_, os::HugePages::off);
    end_ = end;
    return true;
}

void MetadataPages::give_back(const AddressSpace& space) {
    if (end_ > start_) space.unmap(start_, end_ - start_);
    end_ = start_;
}

void RegionPages::bind_metadata(void* p, Bytes bytes) const {
    if (place == Place::interleaved || place == Place::first_touch) return;
    // Refused where a cpuset has taken all of `nodes` away since.
    if (place == Place::within && os::bind_within(p, bytes, os_node, *nodes) == 0) return;
    os::bind(p, bytes, os_node, place == Place::strict ? os::BindMode::strict : os::BindMode::preferred);
}

void RegionPages::bind(void* p, Bytes bytes) const {
    if (place == Place::interleaved) {
        os::interleave(p, bytes, os::topology().os_nodes());
        return;
    }
    const os::NodeMask& all = place == Place::within ? *nodes : os::topology().os_nodes();
    if (balanced && os::bind_balanced(p, bytes, os_node, all) == 0) return;
    bind_metadata(p, bytes);
}

// Advises huge pages as configured, above the normal pages. If the system does not use huge pages by itself, the normal
// pages need no advice: a small heap's bags then lie in one mapping, within which a block can move as a whole.
void Region::advise(Address from, Address to) {
    const Address normal_end = start_ + (Address{huge_from_.value} << bag_shift);
    const bool by_itself = pages_.huge_by_itself || pages_.huge_pages == os::HugePages::off;
    const auto advise_part = [](Address begin, Address end, os::HugePages mode) {
        if (begin < end) os::advise_huge(reinterpret_cast<void*>(begin), end - begin, mode);
    };
    if (by_itself) advise_part(from, min_of(to, normal_end), os::HugePages::off);
    advise_part(max_of(from, normal_end), to, pages_.huge_pages);
}

void Region::bind(BagIndex b, Bytes bags) {
    const BagRange bound{max_of(b, bound_from()), b + bags};
    if (bound.first < bound.end) pages_.bind(address(bound.first), length_of(bound));
}

void Region::settle(BagIndex b, Bytes bags) {
    bind(b, bags);
    advise(address_of(address(b)), address_of(address(b)) + (bags << bag_shift));
}

void Region::unbind(BagRange bags) {
    if (os::unbind(address(bags.first), length_of(bags)) != 0) return;
    set_bound_from(max_of(bound_from(), bags.end));
}

bool Region::bind_again(BagRange bags) {
    void* const p = address(bags.first);
    const Bytes bytes = length_of(bags);
    const int error = pages_.balanced ? os::bind_balanced(p, bytes, pages_.os_node, os::topology().os_nodes())
                                      : os::bind_and_move(p, bytes, pages_.os_node);
    if (error != EFAULT) return error == 0;
    // The kernel binds nothing of a range with a hole.
    const std::uint64_t half = whole_pages((bags.end - bags.first) / 2);
    const BagIndex middle = bags.first + half;
    if (half == 0 || middle >= bags.end) return true;
    return bind_again({bags.first, middle}) && bind_again({middle, bags.end});
}

os::Replaced Region::renew(BagIndex b, Bytes bags) {
    const os::Replaced result = os::renew(address(b), bags << bag_shift);
    if (result != os::Replaced::lost) settle(b, bags);
    return result;
}

bool Region::open(const AddressSpace& space, unsigned region, const RegionPages& pages) {
    space_ = &space;
    pages_ = pages;
    start_ = space.region(region);
    bags_ = reinterpret_cast<Bag*>(start_ + space.bag_table_offset());
    marks_ = reinterpret_cast<std::uint64_t*>(start_ + space.bag_marks_offset());
    first_bag_ = BagIndex{space.data_offset() >> bag_shift};
    end_bag_ = BagIndex{space.end_offset() >> bag_shift};
    huge_from_ = BagIndex{min_of(space.data_offset() + pages.normal_first, space.end_offset()) >> bag_shift};
    set_committed(first_bag_.value);
    class_map_pages_ = MetadataPages{start_};
    thread_heaps_pages_ = MetadataPages{thread_heaps()};
    // Bags before the first one have no entries.
    const Bytes page = os::page_size();
    marks_pages_ = MetadataPages{align_down(address_of(word_of(BagMark{}, first_bag_.value)), page)};
    table_pages_ = MetadataPages{align_down(address_of(bags_ + first_bag_.value), page)};
    if (!map_metadata(first_bag_.value + 1)) {
        // Leave the addresses free for another try.
        for (MetadataPages* part : {&class_map_pages_, &marks_pages_, &table_pages_}) part->give_back(space);
        return false;
    }
    const Bytes reserve = space.reserve();
    if (reserve != 0 && os::hold_at(address(first_bag_), reserve))
        reserve_end_ = first_bag_.value + (reserve >> bag_shift);
    return true;
}

bool Region::map_metadata(std::uint64_t up_to) {
    const std::uint64_t target = min_of<std::uint64_t>(align_up(up_to, metadata_step), end_bag_.value);
    const std::uint64_t asked =
        min_of<std::uint64_t>(target + (policy::mapping::class_map_ahead >> bag_shift), most_bags);
    return class_map_pages_.map_up_to(start_ + asked, *space_, pages_) &&
           marks_pages_.map_up_to(address_of(marks_) + bag_marks_bytes(target), *space_, pages_) &&
           table_pages_.map_up_to(address_of(bags_ + target), *space_, pages_);
}

// Maps, binds and advises bags, and their metadata. Held space is a mapping of its own and is committed instead.
// Metadata stays where the bags are refused: that of many bags is mapped after them. That of few is mapped before,
// because new bags may be the last mapping that the kernel grants (huge_page_advice.cpp).
os::Mapped Region::map_bags(std::uint64_t from, std::uint64_t to) {
    const bool are_few = to - committed() <= policy::mapping::few_bags >> bag_shift;
    if (are_few && !map_metadata(to)) return os::Mapped::refused;
    const std::uint64_t held_to = min_of(max_of(from, reserve_end_), to);
    void* const p = address(BagIndex{from});
    if (from < held_to && !os::commit(p, (held_to - from) << bag_shift)) return os::Mapped::refused;
    if (held_to < to) {
        const os::Mapped rest = space_->map(address_of(address(BagIndex{held_to})), (to - held_to) << bag_shift);
        if (rest != os::Mapped::done) {
            if (from < held_to) unmap(from, held_to);
            return rest;
        }
    }
    settle(BagIndex{from}, to - from);
    if (are_few || map_metadata(to)) return os::Mapped::done;
    unmap(from, to);
    return os::Mapped::refused;
}

std::uint64_t Region::unit_at(std::uint64_t bag) const {
    return (pages_.huge && bag > huge_from_.value ? os::huge_page : policy::mapping::smallest_step) >> bag_shift;
}

std::uint64_t Region::map_up_to(std::uint64_t up_to) {
    if (up_to > end_bag_.value) return 0;
    const Bytes used = (committed() - first_bag_.value) << bag_shift;
    const std::uint64_t wished =
        align_up(max_of(up_to, committed() + (policy::mapping::step_after(used) >> bag_shift)), unit_at(up_to));
    // The second target has no slack, which may exceed a limit or meet another mapping.
    for (const std::uint64_t target :
         {min_of<std::uint64_t>(wished, align_up(up_to, metadata_step)), whole_pages(up_to)}) {
        if (target > end_bag_.value) continue;
        os::Mapped result = os::Mapped::taken;
        for (int i = 0; i < policy::mapping::tries && result == os::Mapped::taken; ++i)
            result = map_bags(committed(), target);
        in_the_way_ = result == os::Mapped::taken;
        if (result == os::Mapped::done) return target;
    }
    return 0;
}

Region::Stretch Region::map_beyond(std::uint64_t bags) {
    if (!in_the_way_) return {};
    bags = whole_pages(bags);
    // The distance doubles with each try.
    for (std::uint64_t skip = os::huge_page >> bag_shift; committed() + skip + bags <= end_bag_.value; skip *= 2) {
        const std::uint64_t first = committed() + skip;
        const os::Mapped result = map_bags(first, first + bags);
        if (result == os::Mapped::refused) return {};
        if (result == os::Mapped::taken) continue;
        in_the_way_ = false;
        return {first, first + bags};
    }
    return {};
}

std::uint64_t Region::unmap(std::uint64_t from, std::uint64_t to) {
    // Unmaps what is beyond the reserve, then holds the part of the reserve again.
    for (const std::uint64_t part : {max_of(from, reserve_end_), from}) {
        if (part >= to) continue;
        void* const p = address(BagIndex{part});
        const Bytes bytes = (to - part) << bag_shift;
        if (!(to <= reserve_end_ ? os::hold_again(p, bytes) : space_->unmap(address_of(p), bytes))) break;
        to = part;
    }
    // What is mapped there again will be bound.
    if (to < bound_from().value) set_bound_from(BagIndex{to});
    return to;
}

bool Region::grow_thread_heaps(Bytes bytes) {
    const Bytes target = min_of(align_up(bytes, policy::mapping::thread_heaps_step), thread_heaps_capacity());
    return bytes <= target && thread_heaps_pages_.map_up_to(thread_heaps() + target, *space_, pages_);
}

std::uint32_t Region::count(BagMark mark, BagIndex b, Bytes bags) const {
    std::uint32_t count = 0;
    for (std::uint64_t i = b.value, end = b.value + bags; i < end;) {
        const std::uint64_t word = load_relaxed(*word_of(mark, i));
        if (i % 64 == 0 && end - i >= 64) {
            count += count_ones(word);
            i += 64;
        } else {
            count += static_cast<std::uint32_t>(word >> (i % 64) & 1);
            ++i;
        }
    }
    return count;
}

std::uint32_t Region::changes(BagMark mark, BagIndex from, BagIndex to) const {
    const auto is_set = [&](std::uint64_t b) { return load_relaxed(*word_of(mark, b)) >> (b % 64) & 1; };
    std::uint32_t changes = 0;
    for (std::uint64_t i = from.value; i < to.value;) {
        const std::uint64_t before = is_set(i - 1);
        if (i % 64 == 0 && to.value - i >= 64) {
            const std::uint64_t word = load_relaxed(*word_of(mark, i));
            changes += count_ones(word ^ (word << 1 | before));
            i += 64;
        } else {
            changes += before != is_set(i) ? 1 : 0;
            ++i;
        }
    }
    return changes;
}

void Region::set(BagMark mark, BagIndex b, Bytes bags, bool on) {
    for (std::uint64_t i = b.value, end = b.value + bags; i < end;) {
        const std::uint64_t n = min_of<std::uint64_t>(64 - i % 64, end - i);
        const std::uint64_t bits = (n == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << n) - 1) << (i % 64);
        std::uint64_t& word = *word_of(mark, i);
        store_relaxed(word, on ? word | bits : word & ~bits);
        i += n;
    }
}

}  // namespace numalloc
