#include "heap/space/region.h"

#include "os/topology.h"

namespace numalloc {

namespace {

constexpr Bytes page = 4 * KiB;
// Metadata is committed for 128 MiB of bags at a time: one page of the class map.
constexpr std::uint64_t metadata_step = page;  // in bags
// Bags are committed an eighth of the heap at a time: few system calls for a large heap, little
// slack for a small one (mlockall makes the slack resident, strict overcommit charges it).
constexpr Bytes smallest_step = 2 * MiB;
constexpr Bytes largest_step = 256 * MiB;

bool commit_pages(Address from, Address to) {
    from = align_down(from, page);
    to = align_up(to, page);
    return to <= from || os::commit(reinterpret_cast<void*>(from), to - from);
}

}  // namespace

void RegionPages::bind(void* p, Bytes bytes) const {
    if (place == Place::interleaved) {
        const os::Topology& topology = os::topology();
        os::NodeMask all;
        for (unsigned i = 0; i < topology.nodes(); ++i) all.add(topology.os_node(NodeId{i}));
        os::interleave(p, bytes, all);
    } else if (place != Place::first_touch) {
        // Where the kernel is too old for a home among several, they hold for our own spilling alone.
        if (place == Place::within && os::bind_within(p, bytes, os_node, *nodes) == 0) return;
        os::bind(p, bytes, os_node, place == Place::strict ? os::BindMode::strict : os::BindMode::preferred);
    }
}

// Huge pages as asked for above the normal pages. These, and the metadata always, stay small. Where
// the system would not give huge pages by itself, the normal pages need no advice: a small heap's bags
// then lie in one mapping, within which a block can be moved as a whole.
void Region::advise(Address from, Address to) {
    const auto advise_part = [&](Address begin, Address end, os::HugePages mode) {
        begin = max_of(begin, from);
        end = min_of(end, to);
        if (begin < end) os::advise_huge(reinterpret_cast<void*>(begin), end - begin, mode);
    };
    const Address bags = start_ + (Address{first_bag_.value} << bag_shift);
    const Address normal = start_ + (Address{huge_from_.value} << bag_shift);
    const bool by_itself = pages_.huge_by_itself || pages_.huge_pages == os::HugePages::off;
    advise_part(start_, by_itself ? normal : bags, os::HugePages::off);
    if (!to_ask_) advise_part(normal, start_ + (Address{end_bag_.value} << bag_shift), pages_.huge_pages);
}

void Region::settle(BagIndex b, Bytes bags) {
    pages_.bind(address(b), bags << bag_shift);
    advise(address_of(address(b)), address_of(address(b)) + (bags << bag_shift));
}

os::Replaced Region::renew(BagIndex b, Bytes bags) {
    const os::Replaced result = os::renew(address(b), bags << bag_shift);
    if (result != os::Replaced::lost) settle(b, bags);
    return result;
}

bool Region::open(const AddressSpace& space, unsigned region, const RegionPages& pages) {
    pages_ = pages;
    start_ = space.region(region);
    class_map_ = reinterpret_cast<std::uint8_t*>(start_ + space.class_map_offset());
    bags_ = reinterpret_cast<Bag*>(start_ + space.bag_table_offset());
    marks_ = reinterpret_cast<std::uint64_t*>(start_ + space.bag_marks_offset());
    first_bag_ = BagIndex{space.data_offset() >> bag_shift};
    end_bag_ = BagIndex{space.region_bytes() >> bag_shift};
    committed_ = first_bag_.value;
    metadata_committed_ = first_bag_.value;
    thread_heaps_ = start_ + space.thread_heaps_offset();
    thread_heaps_capacity_ = space.bag_marks_offset() - space.thread_heaps_offset();

    huge_from_ = BagIndex{min_of(space.data_offset() + pages.normal_first, space.region_bytes()) >> bag_shift};
    to_ask_ = pages.huge_pages == os::HugePages::on && !pages.huge_by_itself;
    advise(start_, start_ + space.region_bytes());
    // The guard and the whole class map may be asked, also for what is no bag of this region.
    return !space.fast_frees() || os::commit_read_only(reinterpret_cast<void*>(start_), space.thread_heaps_offset());
}

bool Region::grow_metadata(std::uint64_t up_to) {
    const std::uint64_t target = min_of<std::uint64_t>(align_up(up_to, metadata_step), end_bag_.value);
    const std::uint64_t from = metadata_committed_;
    if (!commit_pages(address_of(class_map_ + from), address_of(class_map_ + target))) return false;
    if (!commit_pages(address_of(marks_) + bag_marks_bytes(from), address_of(marks_) + bag_marks_bytes(target))) return false;
    if (!commit_pages(address_of(bags_ + from), address_of(bags_ + target))) return false;
    metadata_committed_ = target;
    return true;
}

bool Region::grow(std::uint64_t up_to) {
    if (up_to > end_bag_.value) return false;
    if (up_to <= committed_) return true;
    if (up_to > metadata_committed_ && !grow_metadata(up_to)) return false;
    const Bytes used = (committed_ - first_bag_.value) << bag_shift;
    const Bytes step = min_of(max_of(align_down(used / 8, smallest_step), smallest_step), largest_step);
    std::uint64_t target = align_up(max_of(up_to, committed_ + (step >> bag_shift)), smallest_step >> bag_shift);
    target = min_of(target, min_of<std::uint64_t>(metadata_committed_, end_bag_.value));
    if (!os::commit(address(BagIndex{committed_}), (target - committed_) << bag_shift)) {
        // The slack may be what was too much.
        target = up_to;
        if (!os::commit(address(BagIndex{committed_}), (target - committed_) << bag_shift)) return false;
    }
    __atomic_store_n(&committed_, target, __ATOMIC_RELAXED);
    // Not before: the kernel keeps a list of the processes that asked, and walks it.
    if (to_ask_ && target > huge_from_.value) {
        to_ask_ = false;
        advise(address_of(address(huge_from_)), address_of(address(end_bag_)));
    }
    return true;
}

bool Region::grow_thread_heaps(Bytes bytes) {
    if (bytes <= thread_heaps_committed_) return true;
    const Bytes target = align_up(bytes, 16 * page);
    if (target > thread_heaps_capacity_) return false;
    if (!commit_pages(thread_heaps_ + thread_heaps_committed_, thread_heaps_ + target)) return false;
    thread_heaps_committed_ = target;
    return true;
}

std::uint32_t Region::count(BagMark mark, BagIndex b, Bytes bags) const {
    std::uint32_t count = 0;
    for (std::uint64_t i = b.value, end = b.value + bags; i < end;) {
        const std::uint64_t word = __atomic_load_n(word_of(mark, i), __ATOMIC_RELAXED);
        if (i % 64 == 0 && end - i >= 64) {
            count += static_cast<std::uint32_t>(__builtin_popcountll(word));
            i += 64;
        } else {
            count += static_cast<std::uint32_t>(word >> (i % 64) & 1);
            ++i;
        }
    }
    return count;
}

void Region::set(BagMark mark, BagIndex b, Bytes bags, bool on) {
    for (std::uint64_t i = b.value, end = b.value + bags; i < end;) {
        const std::uint64_t n = min_of<std::uint64_t>(64 - i % 64, end - i);
        const std::uint64_t bits = (n == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << n) - 1) << (i % 64);
        std::uint64_t* const word = word_of(mark, i);
        __atomic_store_n(word, on ? *word | bits : *word & ~bits, __ATOMIC_RELAXED);
        i += n;
    }
}

}  // namespace numalloc
