#include "statistics/gathering.h"

#include "heap/node/big_quarantine.h"
#include "heap/thread/deferred.h"
#include "heap/thread/limit.h"
#include "heap/thread/lists.h"
#include "os/fork_gate.h"
#include "os/libc_call.h"
#include "os/refusals.h"
#include "os/sysfs.h"
#include "os/topology.h"
#include "placement/placement.h"

namespace numalloc {

namespace {

// The difference, at least 0: between two readings objects may have moved from one place to the other.
std::uint64_t less(std::uint64_t whole, std::uint64_t part) { return whole - min_of(whole, part); }

Bytes mapping_of(unsigned heaps) { return align_up(heaps * sizeof(Gathering::OfNode), os::page_size()); }

// Parses /proc/self/smaps line by line: a line for each mapping, then its properties.
class Mappings {
public:
    explicit Mappings(Gathering::OfNode* of) : of_(of) {}
    void line(const char* text) {
        if (const char* rest = after(text, "Rss:")) add(&NodeStatistics::resident_bytes, rest);
        else if (const char* huge = after(text, "AnonHugePages:")) add(&NodeStatistics::huge_bytes, huge);
        else if (is_range(text)) take_range(text);
    }

private:
    // The names of properties begin with a capital letter, addresses do not.
    static bool is_range(const char* text) { return (*text >= '0' && *text <= '9') || (*text >= 'a' && *text <= 'f'); }
    static const char* after(const char* text, const char* name) {
        for (; *name != '\0'; ++text, ++name)
            if (*text != *name) return nullptr;
        while (*text == ' ') ++text;
        return text;
    }
    static NodeId region_of(const void* p) { return NodeId{process_heap.space().region_of(p)}; }
    void take_range(const char* text) {
        Address start = 0;
        for (; is_range(text); ++text)
            start = start * 16 + static_cast<Address>(*text <= '9' ? *text - '0' : *text - 'a' + 10);
        const void* const p = reinterpret_cast<const void*>(start);
        mine_ = process_heap.contains(p) ? of_ + process_heap.counted_as(region_of(p)).value : nullptr;
    }
    void add(unsigned long long NodeStatistics::* what, const char* text) {
        if (mine_ == nullptr) return;
        Bytes kilobytes = 0;
        for (; *text >= '0' && *text <= '9'; ++text) kilobytes = kilobytes * 10 + static_cast<Bytes>(*text - '0');
        mine_->node.*what += kilobytes * KiB;
    }

    Gathering::OfNode* of_;
    Gathering::OfNode* mine_ = nullptr;  // the heap that the current mapping belongs to
};

PageHeapUse pages_of(NodeHeap& node) {
    const os::PassesGate passes_the_gate;
    return node.pages.use();
}

void take_classes(NodeHeap& node, Gathering::OfNode& into) {
    NodeStatistics& s = into.node;
    for (unsigned c = 1; c < class_count; ++c) {
        const ClassUse use = node.of(ClassId{c}).use();
        const Bytes size = shape_of(ClassId{c}).size;
        into.of_class[c] = {.live = use.taken, .lists = 0, .ring = use.ring, .bags = use.bags, .fetched = use.fetched};
        s.small_taken += use.taken * size;
        s.small_ring += use.ring * size;
        s.fetched_objects += use.fetched;
        s.remote_frees += use.came_home;
    }
}

// Adds what the heap holds: a balanced heap's pages are its node's, too.
void take_node(NodeHeap& node, Gathering::OfNode& into) {
    if (!node.balanced) take_classes(node, into);
    NodeStatistics& s = into.node;
    PageHeapUse use = pages_of(node);
    if constexpr (hardened) {
        const big_quarantine::Resting resting = big_quarantine::of(node);
        use.big_objects -= min_of(resting.objects, use.big_objects);
        use.big_bags -= min_of(resting.bags, use.big_bags);
        use.free_bags += resting.bags;
    }
    s.small_bags += use.small_bags << bag_shift;
    s.big_objects += use.big_objects;
    s.big_bytes += use.big_bags << bag_shift;
    s.heap_bytes += use.bound_bags << bag_shift;
    s.free_bytes += use.free_bags << bag_shift;
    s.dirty_bytes += use.dirty_bags << bag_shift;
    s.purged_bytes += (use.purged_bags << bag_shift) + use.returned_bytes;
    s.regretted_bytes += use.regretted_bags << bag_shift;
    s.big_allocations += use.big_taken;
    s.thread_heaps += node.slots.made();
    s.spills += node.spills.load(std::memory_order_relaxed);
    s.moved_bytes += node.moved_here.load(std::memory_order_relaxed);
}

// Approximate: reads another thread's list without synchronisation, while that thread may change it.
__attribute__((no_sanitize("thread"))) std::uint32_t objects_in_lists(const ThreadHeap* h, unsigned c) {
    const std::int32_t current = h->lists[c].limit - h->room[c];
    const std::uint32_t sealed = h->lists[c].sealed != nullptr ? h->lists[c].sealed_count : 0;
    return static_cast<std::uint32_t>(max_of(current, 0)) + sealed;
}

}  // namespace

Gathering::Gathering(Depth depth) {
    if (!process_heap.started()) return;
    (void)try_catch_up();  // does nothing during a fork: deferred frees then count as in use
    of_ = static_cast<OfNode*>(os::map(mapping_of(process_heap.counted_heaps())));
    if (of_ == nullptr) return;
    heaps_ = process_heap.counted_heaps();
    take_nodes();
    if (depth >= Depth::threads) take_threads();
    take_live();
    join_classes();
    if (depth >= Depth::resident) take_resident();
}

Gathering::~Gathering() {
    if (of_ != nullptr) os::unmap(of_, mapping_of(heaps_));
}

bool Gathering::in_use(unsigned n) const {
    const NodeId of_blocks = process_heap.heap_for_block(NodeId{n}, policy::balancing::from);
    return process_heap.opened(NodeId{n}) != nullptr || process_heap.opened(of_blocks) != nullptr;
}

void Gathering::take_nodes() {
    for (unsigned n = 0; n < process_heap.heaps(); ++n)
        if (NodeHeap* const node = process_heap.opened(NodeId{n}); node != nullptr)
            take_node(*node, of_[process_heap.counted_as(NodeId{n}).value]);
}

void Gathering::take_threads() {
    // A library's replacement of madvise() that asks may have interrupted its thread under the lock of a remote cache.
    if (os::in_libc_call()) return;
    for_each_thread_heap([&](ThreadHeap* h) {
        OfNode& of_home = of_[h->home->node.value];
        for (unsigned c = 1; c < class_count; ++c) of_home.of_class[c].lists += objects_in_lists(h, c);
        const os::PassesGate passes_the_gate;
        h->remote_cache.for_each_list([&](NodeId n, ClassId c, std::uint32_t objects) {
            of_[n.value].node.small_homeward += objects * Bytes{shape_of(c).size};
            auto& live = of_[n.value].of_class[c.value].live;
            live = less(live, objects);
        });
    });
}

void Gathering::take_live() {
    for (unsigned n = 0; n < heaps_; ++n) {
        NodeStatistics& s = of_[n].node;
        for (unsigned c = 1; c < class_count; ++c) {
            ClassStatistics& k = of_[n].of_class[c];
            k.lists = min_of<std::uint64_t>(k.lists, less(k.live, k.ring));
            k.live = less(k.live, k.ring + k.lists);
            s.small_lists += k.lists * shape_of(ClassId{c}).size;
            s.small_live += k.live * shape_of(ClassId{c}).size;
        }
    }
}

void Gathering::join_classes() {
    for (unsigned n = 0; n < heaps_; ++n)
        for (unsigned c = first_aligned; c < class_count; ++c) {
            if (counted_with(c) == c) continue;
            ClassStatistics& sum = of_[n].of_class[counted_with(c)];
            ClassStatistics& joins = of_[n].of_class[c];
#define NUMALLOC_CLASS_STATISTIC(name, unit, what) sum.name += joins.name;
#include "numalloc/statistics.def"
            joins = {};
        }
}

void Gathering::take_resident() {
    Mappings mappings(of_);
    os::for_each_line("/proc/self/smaps", [&](const char* text) { mappings.line(text); });
}

NodeStatistics Gathering::sum() const {
    NodeStatistics sum{};
    for (unsigned n = 0; n < heaps_; ++n) {
#define NUMALLOC_STATISTIC(name, unit, what) sum.name += of_[n].node.name;
#include "numalloc/statistics.def"
    }
    return sum;
}

ProcessStatistics process_statistics() {
    ProcessStatistics s{};
    s.nodes = os::topology().nodes();
    s.forks = os::fork_gate.generation();
#define NUMALLOC_REFUSAL(name)                                                                     \
    s.refused_##name = os::refused_##name.times.load(std::memory_order_relaxed);                   \
    s.refused_##name##_error =                                                                     \
        static_cast<unsigned long long>(os::refused_##name.error.load(std::memory_order_relaxed));
#include "os/refusals.def"
#undef NUMALLOC_REFUSAL
    s.bound_threads = placement::bound_threads();
    s.unbound_threads = placement::unbound_threads();
    s.memory_limit = known_memory_limit();
    s.limit_returns = limit_returns();
    return s;
}

int outer_number(unsigned n) {
    return n < process_heap.nodes() ? static_cast<int>(os::topology().os_node(NodeId{n})) : NUMALLOC_INTERLEAVED;
}

}  // namespace numalloc
