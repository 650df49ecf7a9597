#include "heap/node/process_heap.h"

#include <cstring>
#include <new>

#include "base/atomic.h"
#include "base/text.h"
#include "base/tracepoints.h"
#include "heap/node/big_quarantine.h"
#include "heap/space/mark.h"
#include "os/clock.h"
#include "os/huge_page_cost.h"
#include "os/sysfs.h"

namespace numalloc {

namespace policy::huge_pages {

// Where the system leaves huge pages to programs, thp=auto requests them beyond the first 64 MiB: a partly used huge
// page is then at most 1/32 of what is resident.
constexpr Bytes normal_unless_asked = 64 * MiB;

}  // namespace policy::huge_pages

constinit ProcessHeap process_heap;
NUMALLOC_THREAD_LOCAL const os::NodeMask* thread_spill_limit = nullptr;

namespace {

bool says(const char* path, const char* word) {
    char text[64];
    return os::read_file(path, text, sizeof text) > 0 && strstr(text, word) != nullptr;
}

// Whether `word` is the system's setting for huge pages of this size. Since Linux 6.8 each size has a setting, which
// may inherit the global one; before, only the global one exists.
bool system_says(const char* word, Bytes huge_page) {
    constexpr const char* all = "/sys/kernel/mm/transparent_hugepage/enabled";
    Text<96> path;
    path << "/sys/kernel/mm/transparent_hugepage/hugepages-" << std::uint64_t{huge_page / KiB} << "kB/enabled";
    const char* const this_size = path.c_str();
    return says(this_size, word) || (says(all, word) && (says(this_size, "[inherit]") || !says(this_size, "[")));
}

// With `always`, untouched memory becomes huge pages without a request. With `madvise`, the default of most
// distributions, a program must request them: `automatic` does so beyond the first part of the heap, which small
// programs do not leave. The part is longer if the system's huge pages are larger.
RegionPages huge_pages_of(HugePages option) {
    if (option == HugePages::on) return {.huge_pages = os::HugePages::on, .huge_by_itself = true, .huge = true};
    if (option == HugePages::off) return {.huge_pages = os::HugePages::off};
    const Bytes huge_page = os::huge_page_size();
    if (system_says("[always]", huge_page)) return {.huge_by_itself = true, .huge = true};
    if (option == HugePages::system || !system_says("[madvise]", huge_page)) return {};
    const Bytes normal_first = policy::huge_pages::normal_unless_asked / os::huge_page * huge_page;
    return {.huge_pages = os::HugePages::on, .normal_first = normal_first, .huge = true, .huge_if_worth_it = true};
}

}  // namespace

bool ProcessHeap::start(const HeapOptions& options) {
    options_ = options;
    if (options.names_nodes) inheritance_.store(Inheritance::bound, std::memory_order_relaxed);
    choose_freed_key();
    nodes_ = os::topology().nodes();
#if defined(NUMALLOC_EXPERIMENTS)
    mechanisms_.start(options.ablations, nodes_);
#endif
    if (os::topology().user_policy_rules()) options_.memory_binding = MemoryBinding::none;
    balances_ = nodes_ > 1 && options_.memory_binding == MemoryBinding::preferred && options.kernel_balances;
    const unsigned regions = nodes_ == 1 ? 1 : nodes_ + 1 + (balances_ ? nodes_ : 0);
    open_ = static_cast<std::atomic<NodeHeap*>*>(os::map(align_up(regions * sizeof *open_, os::page_size())));
    if (open_ == nullptr) return false;
    pages_ = huge_pages_of(options.huge_pages);
    return space_.choose(regions, NodeHeap::bytes, options.space);
}

RegionPages ProcessHeap::pages_of(NodeId n) const {
    RegionPages pages = pages_;
    if (nodes_ == 1) return pages;
    pages.nodes = &options_.bound_nodes;
    if (n == interleaved()) {
        pages.place = RegionPages::Place::interleaved;
        // With huge pages most objects would lie on one node, so the interleaved heap has them only if thp=on.
        if (options_.huge_pages != HugePages::on) pages.huge_pages = os::HugePages::off;
    } else {
        pages.os_node = os::topology().os_node(counted_as(n));
        pages.balanced = n.value > nodes_;
        if (pages.balanced) pages.normal_first = 0;  // small programs have no such blocks
        if (options_.memory_binding == MemoryBinding::preferred)
            pages.place =
                options_.bound_nodes.test(pages.os_node) ? RegionPages::Place::within : RegionPages::Place::preferred;
        if (options_.memory_binding == MemoryBinding::strict) pages.place = RegionPages::Place::strict;
    }
    return pages;
}

NodeHeap* ProcessHeap::open(NodeId n) {
    os::Guard guard(lock_);
    NodeHeap* const existing = opened(n);
    return existing != nullptr ? existing : make(n);
}

NodeHeap* ProcessHeap::make(NodeId n) {
    const RegionPages pages = pages_of(n);
    const Address place = space_.region(n.value) + space_.node_heap_offset();
    MetadataPages node_pages{place};
    auto* node = reinterpret_cast<NodeHeap*>(place);
    if (!node_pages.map_up_to(node->shards().end_of(0), space_, pages)) return nullptr;
    new (node) NodeHeap{.node = counted_as(n), .balanced = n.value > nodes_, .mapped = node_pages};
    if (!node->pages.region().open(space_, n.value, pages)) {
        node_pages.give_back(space_);
        return nullptr;
    }
    PageHeapOptions options;
    options.purge_delay = options_.purge_delay;
    options.huge_pages = pages.huge && pages.huge_pages != os::HugePages::off;
    options.populate = pages.place == RegionPages::Place::strict;
    if (pages.huge_if_worth_it && !options.populate) {
        options.huge_on_evidence = true;
        options.touch_is_dear = os::touch_is_dear;
    }
    options.os_node = static_cast<std::uint16_t>(pages.os_node);
    options.page_owners = mechanisms_.page_owners();
    const auto share = [&](std::uint32_t most) {
        const std::uint32_t of_balanced = balances_ ? most / policy::balancing::part_of_mappings : 0;
        return (node->balanced ? of_balanced : most - of_balanced) / nodes_;
    };
    options.most_moved = share(policy::moving::most_mappings);
    options.most_advice_changes = share(policy::evidence::most_changes);
    node->pages.start(options);
    node->slots.start(options_.thread_slot);
    open_[n.value].store(node, std::memory_order_release);
    return node;
}

// One shard for each CPU of the node, for the thread heap with that number. With one node the number of CPUs is
// estimated by the highest one on which a thread got its heap: without a system call, which a filter might forbid. If
// that is unknown (aarch64 before glibc 2.35), each thread heap counts: a process of many threads then has more shards
// than it needs.
unsigned ProcessHeap::shards_of(NodeHeap* node, std::uint32_t number) const {
    unsigned cpus = 0;
    if (nodes_ > 1) {
        os::CpuMask mask;
        os::topology().cpus_of(node->node, mask);
        cpus = mask.count();
    } else {
        const int cpu = os::cpu_without_call();
        node->cpus_known = max_of(node->cpus_known, (cpu >= 0 ? static_cast<std::uint32_t>(cpu) : number) + 1);
        cpus = node->cpus_known;
    }
    return min_of(max_of(cpus, policy::shards::least), policy::shards::most);
}

unsigned ProcessHeap::open_shard(NodeHeap* node, std::uint32_t n) {
    unsigned shard = n < policy::shards::least ? n : n % shards_of(node, n);
    // Without memory for its own shard the thread shares the first.
    if (!node->mapped.map_up_to(node->shards().end_of(shard), space_, pages_of(node->node))) shard = 0;
    node->shards().open(shard);
    return shard;
}

// The heap for the k-th try: `n` itself, then the nodes, nearest first. nullptr if spilling to that node is not
// allowed, or if its heap cannot be opened.
NodeHeap* ProcessHeap::candidate(NodeId n, unsigned k) {
    if (k == 0) return node(n);
    const os::Topology& topology = os::topology();
    const NodeId other = n.value < nodes_     ? topology.nearest(n, k)
                         : n == interleaved() ? topology.nearest(os::current_node(), k - 1)
                                              : topology.nearest(counted_as(n), k - 1);
    if (thread_spill_limit != nullptr && !thread_spill_limit->test(other.value)) return nullptr;
    return node(other);
}

unsigned ProcessHeap::candidates(NodeId n) const {
    if (options_.memory_binding == MemoryBinding::strict) return 1;
    return n.value < nodes_ ? nodes_ : nodes_ + 1;
}

void ProcessHeap::note_spill(NodeId n, NodeId served_by, Bytes bytes) {
    trace::spill(n.value, served_by.value, bytes);
    if (NodeHeap* const full = opened(n); full != nullptr) full->spills.fetch_add(1, std::memory_order_relaxed);
}

Supply ProcessHeap::take_small(NodeId n, ClassId c, std::uint32_t want, unsigned shard) {
    const unsigned tries = candidates(n);
    for (unsigned k = 0; k < tries; ++k) {
        NodeHeap* from = candidate(n, k);
        if (from == nullptr) continue;
        // A spilled object is taken alone: a thread's lists hold objects of its own node only, and its shard number is
        // valid only there.
        const Supply supply = k == 0 ? from->of(c).take(want, shard) : from->of(c).take(1);
        if (supply.count == 0) continue;
        if (k > 0) note_spill(n, from->node, shape_of(c).size);
        if (k > 0 && supply.count > 1) {
            // The ring returns whole lists. All objects but the first go back.
            from->of(c).give_to_bags({supply.list->next, supply.count - 1});
            return {supply.list, nullptr, 1, false};
        }
        return supply;
    }
    if constexpr (hardened)
        if (big_quarantine::empty()) return take_small(n, c, want, shard);
    return {};
}

void* ProcessHeap::take_alone(NodeId n, ClassId c) {
    const Supply supply = take_small(n, c, 1);
    if (supply.count == 0) return nullptr;
    if (supply.fresh != nullptr) return supply.fresh;
    if (supply.count > 1) owner(supply.list)->of(c).give_to_bags({supply.list->next, supply.count - 1});
    return hand_out(supply.list, c);
}

void ProcessHeap::give_alone(void* p, ClassId c) {
    auto* const object = static_cast<Object*>(p);
    object->next = nullptr;
    make_freed(object, shape_of(c).size);
    owner(p)->of(c).give_to_bags({object, 1});
}

void* ProcessHeap::take_big(NodeId n, Bytes bytes, Bytes alignment, BagState state, ClassId c) {
    const std::uint32_t bags = state == BagState::big ? bags_for_big(bytes) : bags_for(bytes);
    const Bytes alignment_bags = max_of<Bytes>(1, alignment >> bag_shift);
    if (bags == 0 || alignment > longest_region) return nullptr;
    const unsigned tries = candidates(n);
    for (unsigned k = 0; k < tries; ++k) {
        NodeHeap* from = candidate(n, k);
        if (from == nullptr) continue;
        const BagIndex run = from->pages.take(bags, static_cast<std::uint32_t>(alignment_bags), state, c);
        if (run == PageHeap::none) continue;
        if (k > 0 && from->node != counted_as(n)) note_spill(counted_as(n), from->node, bytes);
        void* const p = from->pages.region().address(run);
        if (state != BagState::big) return p;
        trace::big_allocate(from->node.value, p, bytes);
        if constexpr (hardened)
            set_tail(p, Bytes{PageHeap::whole_pages(bags)} << bag_shift, origin_of(Form::malloc, 0));
        return p;
    }
    if constexpr (hardened)
        if (big_quarantine::empty()) return take_big(n, bytes, alignment, state, c);
    return nullptr;
}

void ProcessHeap::give_back_thread_heaps() {
    for (unsigned n = 0; n < heaps(); ++n) {
        NodeHeap* const node = opened(NodeId{n});
        if (node == nullptr || !node->slots.has_unused()) continue;
        os::Guard guard(node->attaching);
        node->slots.give_back_unused(node->pages.region());
    }
}

void ProcessHeap::drain() {
    for (unsigned n = 0; n < heaps(); ++n) {
        NodeHeap* const node = opened(NodeId{n});
        if (node == nullptr) continue;
        node->drain(false);
        if constexpr (experiments) node->pages.give_rests();
    }
}

Bytes ProcessHeap::purge(bool all) {
    Bytes bytes = 0;
    for (unsigned n = 0; n < heaps(); ++n) {
        NodeHeap* const node = opened(NodeId{n});
        if (node == nullptr) continue;
        bytes += node->pages.purge(all);
        NodeHeap* const of_blocks = opened(heap_for_block(node->node, policy::balancing::from));
        const Bytes blocks = of_blocks != nullptr && of_blocks != node ? of_blocks->pages.in_use() : 0;
        node->list_budget.set_in_use(node->pages.in_use() + blocks);
    }
    return bytes;
}

Bytes ProcessHeap::mapped_free() {
    Bytes bytes = 0;
    for (unsigned n = 0; n < heaps(); ++n) {
        NodeHeap* const node = opened(NodeId{n});
        if (node == nullptr) continue;
        const Region& region = node->pages.region();
        const Bytes mapped = Bytes{region.committed() - region.first_bag().value} << bag_shift;
        const Bytes in_use = node->pages.in_use();
        bytes += mapped - min_of(mapped, in_use);
    }
    return bytes;
}

void ProcessHeap::set_purge_delay(std::int32_t delay) {
    os::Guard guard(lock_);
    store_relaxed(options_.purge_delay, delay);
    for (unsigned n = 0; n < heaps(); ++n)
        if (NodeHeap* const node = opened(NodeId{n}); node != nullptr) node->pages.set_purge_delay(delay);
}

Bytes ProcessHeap::purge_due() { return purge(false); }

Bytes ProcessHeap::purge_all() {
    give_back_thread_heaps();
    drain();
    Bytes bytes = 0;
    for (unsigned n = 0; n < heaps(); ++n)
        if (NodeHeap* const node = opened(NodeId{n}); node != nullptr)
            bytes += node->return_free_pages(os::milliseconds());
    return bytes + purge(true);
}

}  // namespace numalloc
