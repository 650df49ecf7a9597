// Big objects in use: resizing in place, moving to a longer run, moving the pages to another node.
#include <cerrno>

#include "base/random.h"
#include "base/tracepoints.h"
#include "heap/node/big_quarantine.h"
#include "heap/node/locate.h"
#include "os/clock.h"
#include "os/memory.h"
#include "os/numa_policy.h"

namespace numalloc {

namespace policy::moving {

// A growing block of 4 MiB or more moves by mremap(), unless PageHeap::move() finds a copy cheaper: the kernel moves
// page tables faster than memcpy() moves bytes.
constexpr Bytes from = 4 * MiB;
// A block that moves because it grows once more, by at most an eighth of its length, gets room of an eighth behind it.
// So a block that grows in small steps moves a number of times that is logarithmic in its length, not linear.
constexpr std::uint32_t room_part = 8;

}  // namespace policy::moving

namespace policy::balancing {

// Where a block's pages are is asked of this number of them, by one system call.
constexpr unsigned pages_asked = 64;
// If the kernel tells of none of them, this many are asked whether they are in memory at all, by a call each.
constexpr unsigned hidden_asked = 8;
// Less than that, cut off a block that shrinks, is not asked about.
constexpr Bytes cut_off = 2 * MiB;

}  // namespace policy::balancing

// Discards the pages of a moved object from its bag `from_bag` on and restores their node's own policy.
void ProcessHeap::bring_back(Location at, std::uint32_t from_bag) {
    PageHeap& pages = at.owner->pages;
    bring_back(pages, at.bag + from_bag, pages.region().bag(at.bag).run - from_bag);
}

void ProcessHeap::bring_back(PageHeap& pages, BagIndex first, std::uint32_t bags) {
    const Region& region = pages.region();
    os::discard(region.address(first), Bytes{bags} << bag_shift);
    os::unbind(region.address(first), Bytes{bags} << bag_shift);
    pages.settle(first, bags);
}

bool ProcessHeap::was_moved(Location at) const { return any_moved() && at.owner->pages.moved_to(at.bag) != no_node; }

// Whether the kernel may have moved pages of the range, which is in a balanced block, to other nodes, and their node
// has room for them: pages that came from another node because it had none would come from there again. The kernel
// hides pages to see their next touch: if all that were touched are hidden, they may be anywhere. false if it does not
// tell.
bool ProcessHeap::has_strayed(const NodeHeap& owner, const char* start, Bytes bytes) {
    using namespace policy::balancing;
    const Bytes pages = bytes / os::page_size();
    const unsigned asked = static_cast<unsigned>(min_of<Bytes>(pages, pages_asked));
    const void* page[pages_asked];
    int node[pages_asked];
    // By chance within each part: threads may share a block by columns of a matrix.
    const std::uint64_t chance = Random::mixed(address_of(start) + os::milliseconds());
    for (unsigned i = 0; i < asked; ++i) {
        const Bytes first = i * pages / asked;
        const Bytes part = (i + 1) * pages / asked - first;
        page[i] = start + (first + Random::mixed(chance + i) % part) * os::page_size();
    }
    if (!os::nodes_of_pages(page, node, asked)) return false;
    const int home = static_cast<int>(os::topology().os_node(owner.node));
    unsigned seen = 0;
    unsigned elsewhere = 0;
    for (unsigned i = 0; i < asked; ++i) {
        seen += node[i] >= 0 ? 1U : 0U;
        elsewhere += node[i] >= 0 && node[i] != home ? 1U : 0U;
    }
    if (elsewhere > 0) return os::recent_free_bytes_of_node(static_cast<unsigned>(home)) > bytes / asked * elsewhere;
    if (seen > 0) return false;
    for (unsigned i = 0; i < min_of(asked, hidden_asked); ++i)
        if (os::ask_for_page(page[i]) == 0) return true;
    return false;
}

// Discards a balanced block from its bag `from_bag` on if that has strayed: who gets the memory next would find its
// pages on the nodes of this block's users. Returns whether it did.
bool ProcessHeap::discard_if_strayed(Location at, std::uint32_t from_bag) {
    const Bytes kept = Bytes{from_bag} << bag_shift;
    const Bytes bytes = bytes_of(at);
    if (kept >= bytes) return false;
    char* const start = static_cast<char*>(at.owner->pages.region().address(at.bag)) + kept;
    return has_strayed(*at.owner, start, bytes - kept) && os::discard(start, bytes - kept);
}

bool ProcessHeap::may_stray(Location at) const {
    return at.found == Found::big && at.owner->balanced && !was_moved(at);
}

void ProcessHeap::give_big(Location at) {
    trace::big_free(at.owner->node.value, at.owner->pages.region().address(at.bag), bytes_of(at));
    at.owner->pages.learn_from(at.bag);
    bool discarded = false;
    if (was_moved(at)) {
        bring_back(at, 0);
        at.owner->pages.set_moved(at.bag, no_node);
        moved_.fetch_sub(1, std::memory_order_relaxed);
    } else if (at.owner->balanced) {
        // Moved mappings (heap/pages/moved_mappings.h) become natural ones again when they are purged.
        const Region& region = at.owner->pages.region();
        discarded = discard_if_strayed(at, 0) && region.count(BagMark::moved, at.bag, region.bag(at.bag).run) == 0;
    }
    if constexpr (hardened)
        if (big_quarantine::put(at)) return;
    at.owner->pages.give(at.bag, discarded && !hardened ? PageHeap::Contents::zero : PageHeap::Contents::any);
}

bool ProcessHeap::resize_in_place(Location at, std::uint32_t bags) {
    if (was_moved(at)) {
        // The memory behind the object has its node's policy, so the object cannot grow into it.
        const std::uint32_t length = at.owner->pages.region().bag(at.bag).run;
        if (bags > length) return false;
        if (bags < length) bring_back(at, bags);
    } else if (at.owner->balanced && bytes_of(at) >= (Bytes{bags} << bag_shift) + policy::balancing::cut_off) {
        discard_if_strayed(at, bags);
    }
    Bag& bag = at.owner->pages.region().bag(at.bag);
    const bool grows = bags > bag.run;
    if (!at.owner->pages.resize(at.bag, bags)) return false;
    bag.big.room = 0;
    bag.big.has_grown = grows || bag.big.has_grown;
    return true;
}

// Returns nullptr, with the block unchanged, if no such run is free or the pages do not move.
void* ProcessHeap::grow_elsewhere(Location at, std::uint32_t bags, bool keeps_pages) {
    using namespace policy::moving;
    using Moves = PageHeap::Moves;
    PageHeap& pages = at.owner->pages;
    const std::uint32_t old_bags = pages.region().bag(at.bag).run;
    const bool by_copy = old_bags < bags_for(from);
    const Moves how = by_copy ? Moves::by_copy : keeps_pages ? Moves::by_pages : Moves::cheaply;
    // A tail is at the exact end, and strict binding would put pages behind the room.
    const bool is_step = !hardened && pages.returns_pages() && (bags - old_bags) <= old_bags / room_part;
    const bool has_grown = pages.region().bag(at.bag).big.has_grown;
    if (bags < old_bags || was_moved(at) || (by_copy && (!is_step || at.owner->balanced))) return nullptr;
    const bool dense = pages.learn_from(at.bag);
    // Aligned to a huge page, so that the kernel moves whole page tables and splits no huge page.
    const std::uint32_t alignment = by_copy ? 1 : static_cast<std::uint32_t>(os::huge_page >> bag_shift);
    const auto take = [&](std::uint32_t length) { return pages.take_to_move(length, alignment, old_bags, dense); };
    BagIndex to = is_step && has_grown ? take(bags + old_bags / room_part) : PageHeap::none;
    if (to == PageHeap::none) to = take(bags);
    if (to == PageHeap::none) return nullptr;
    Bag::Big& big = pages.region().bag(to).big;
    big = pages.region().bag(at.bag).big;
    big.room = pages.region().bag(to).run - bags;
    big.has_grown = true;
    return pages.move(at.bag, to, old_bags, how) ? pages.region().address(to) : nullptr;
}

// Whether the block has room for that many bags, and asked for no more before.
bool ProcessHeap::grow_into_room(Location at, std::uint32_t bags) {
    Bag& bag = at.owner->pages.region().bag(at.bag);
    if (bags > bag.run || bags < bag.run - bag.big.room) return false;
    bag.big.room = bag.run - bags;
    return true;
}

void* ProcessHeap::resize_big(const Resize& resize) {
    const Location at = resize.at;
    const std::uint32_t bags = PageHeap::whole_pages(bags_for_big(resize.bytes));
    if (bags == 0) return nullptr;
    PageHeap& pages = at.owner->pages;
    const std::uint32_t before = pages.region().bag(at.bag).run;
    // The program names a node: the block goes to that node's other heap, by a copy.
    if (at.owner->balanced && !resize.may_stay) return nullptr;
    // numalloc_resize_in_place(), which has no target, gives room back.
    const bool uses_room = resize.may_stay && resize.target.node != no_node && grow_into_room(at, bags);
    const bool stays = uses_room || (resize.may_stay && resize_in_place(at, bags));
    // What a child has from its parent is to be on the node of its thread, wherever that runs. A long block keeps its
    // pages for that, others are copied (inherited.cpp).
    const bool is_elsewhere = resize.target.by_lists && resize.target.node != at.owner->node;
    const bool follows = is_elsewhere && is_inherited(at);
    const bool is_long = pages.region().bag(at.bag).run >= bags_for(policy::moving::from);
    if (stays && follows) {
        pages.unbind_run(at.bag);
        // What it grew into may have pages of its own node. (Not its room, which the program may have written to.)
        if (bags > before) os::discard(pages.region().address(at.bag + before), Bytes{bags - before} << bag_shift);
    }
    void* const q = stays                                  ? pages.region().address(at.bag)
                    : resize.target.node == at.owner->node ? grow_elsewhere(at, bags, false)
                    : follows && is_long                   ? grow_elsewhere(at, bags, true)
                                                           : nullptr;
    if (hardened && q != nullptr) set_tail(q, Bytes{bags} << bag_shift, origin_of(Form::malloc, 0));
    return q;
}

int ProcessHeap::move_big(Location at, NodeId to) {
    if (at.found != Found::big) return EINVAL;
    if (nodes_ == 1) return 0;
    PageHeap& pages = at.owner->pages;
    void* const p = pages.region().address(at.bag);
    const Bytes bytes = bytes_of(at);
    const NodeId before = pages.moved_to(at.bag);
    const bool was_elsewhere = was_moved(at);
    const bool was_there = !may_stray(at) && node_of(at) == to;
    // Noted first: the child of a fork in between restores the binding when it frees the block.
    pages.set_moved(at.bag, to);
    if (!was_elsewhere) moved_.fetch_add(1, std::memory_order_relaxed);
    // The binding is strict during the move: if the node is full, the move fails and the OOM killer does not run.
    // Afterwards the binding is only a preference.
    const int error = os::move_to_node(p, bytes, os::topology().os_node(to));
    trace::move(p, bytes, to.value, error);
    const bool nothing_happened = error != 0 && error != ENOMEM;
    if (nothing_happened) {
        pages.set_moved(at.bag, before);
        if (!was_elsewhere) moved_.fetch_sub(1, std::memory_order_relaxed);
        return error;
    }
    // A balanced block gets a policy of its own also at home, or the kernel might move it again.
    const bool is_home = to == at.owner->node && !at.owner->balanced;
    if (is_home) {
        os::unbind(p, bytes);
        pages.settle(at.bag, static_cast<std::uint32_t>(bytes >> bag_shift));
    } else {
        os::bind(p, bytes, os::topology().os_node(to), os::BindMode::preferred);
    }
    if (NodeHeap* const there = node(to); error == 0 && !was_there && there != nullptr)
        there->moved_here.fetch_add(bytes, std::memory_order_relaxed);
    if (is_home) {
        pages.set_moved(at.bag, no_node);
        moved_.fetch_sub(1, std::memory_order_relaxed);
    }
    return error;
}

Bytes ProcessHeap::move_blocks_of(std::int32_t thread, NodeId to) {
    Bytes moved = 0;
    for (unsigned n = 0; n < heaps(); ++n) {
        NodeHeap* const heap = opened(NodeId{n});
        if (heap == nullptr) continue;
        const Region& region = heap->pages.region();
        for (BagIndex b = region.first_bag(); region.is_mapped(b);) {
            const std::uint32_t length = heap->pages.foreign().has(b) ? 0 : heap->pages.big_run(b);
            if (length != 0 && region.bag(b).big.thread == thread) {
                const Location at{heap, b, no_class, Found::big};
                // A second try if pages stayed, perhaps because a huge page that reaches beyond the block must be split
                // first.
                if (move_big(at, to) == 0 || move_big(at, to) == 0) moved += bytes_of(at);
            }
            b = b + max_of<std::uint32_t>(length, 1);
        }
    }
    return moved;
}

void ProcessHeap::note_spread(Location at) {
    if (!was_moved(at)) moved_.fetch_add(1, std::memory_order_relaxed);
    at.owner->pages.set_moved(at.bag, PageHeap::spread_over);
}

bool ProcessHeap::is_spread(Location at) const {
    return at.found == Found::big && was_moved(at) && at.owner->pages.moved_to(at.bag) == PageHeap::spread_over;
}

NodeId ProcessHeap::node_of(Location at) const {
    if (at.found == Found::side) return no_node;
    if (at.found != Found::big || !was_moved(at) || is_spread(at)) return at.owner->node;
    return at.owner->pages.moved_to(at.bag);
}

}  // namespace numalloc
