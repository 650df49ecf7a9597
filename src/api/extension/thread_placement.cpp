// Where malloc's memory comes from, and moving existing blocks and threads.
#include <cerrno>

#include "api/export.h"
#include "api/extension/error.h"
#include "api/extension/node_sets.h"
#include "api/extension/nodes.h"
#include "api/malloc/initialise.h"
#include "heap/node/locate.h"
#include "numalloc/numalloc.h"
#include "os/topology.h"
#include "placement/memory_home.h"
#include "placement/placement.h"

using namespace numalloc;
using namespace numalloc::api;

namespace {

int result_of(int error) { return error == 0 ? 0 : fail(error); }

}  // namespace

extern "C" {

NUMALLOC_EXPORT int numalloc_set_thread_placement(const char* text) noexcept {
    wake();
    MemoryPlacement wanted;
    if (text != nullptr && !parse_memory_placement(text, wanted)) return result_of(EINVAL);
    const int error = placement::set_thread_memory(text == nullptr ? nullptr : &wanted);
    if (error == 0 && names_nodes(wanted)) process_heap.name_nodes();
    settle_heap();
    return result_of(error);
}

NUMALLOC_EXPORT int numalloc_move(void* p, int node) noexcept {
    const NodeId n = named_node(node);
    if (n == no_node) return -1;
    return result_of(process_heap.move_big(locate(p), n));
}

NUMALLOC_EXPORT int numalloc_rehome_thread(pthread_t thread, int node) noexcept {
    const NodeId n = named_node(node);
    if (n == no_node) return -1;
    const int error = placement::rehome_thread(thread, static_cast<unsigned>(node));
    settle_heap();
    return result_of(error);
}

NUMALLOC_EXPORT int numalloc_set_thread_policy(enum numalloc_policy policy, const numalloc_node_set* set) noexcept {
    MemoryPlacement wanted;
    ChosenNodes chosen;
    const bool any = policy == NUMALLOC_LOCAL || (policy == NUMALLOC_INTERLEAVE && set == nullptr);
    if (any ? policy == NUMALLOC_LOCAL && set != nullptr : set == nullptr) return fail(EINVAL);
    if (!any && !chosen.choose(*set)) return -1;
    switch (policy) {
        case NUMALLOC_LOCAL: break;
        case NUMALLOC_INTERLEAVE:
            if (!any && !chosen.all_usable()) return fail(ENOTSUP);
            wanted.kind = MemoryPlacement::Kind::interleave;
            break;
        case NUMALLOC_BIND: wanted.kind = MemoryPlacement::Kind::bind; break;
        case NUMALLOC_PREFER: wanted.kind = MemoryPlacement::Kind::preferred; break;
        default: return fail(EINVAL);
    }
    if (policy == NUMALLOC_BIND || policy == NUMALLOC_PREFER) wanted.nodes = chosen.of_kernel;
    wake();
    const int error = placement::set_thread_memory(&wanted);
    settle_heap();
    return result_of(error);
}

NUMALLOC_EXPORT int numalloc_thread_policy(enum numalloc_policy* policy, numalloc_node_set* set) noexcept {
    const MemoryPlacement* const said = placement::thread_memory();
    if (said == nullptr) return 0;
    using Kind = MemoryPlacement::Kind;
    *policy = said->kind == Kind::local        ? NUMALLOC_LOCAL
              : said->kind == Kind::interleave ? NUMALLOC_INTERLEAVE
              : said->kind == Kind::bind       ? NUMALLOC_BIND
                                               : NUMALLOC_PREFER;
    *set = set_of(said->kind == Kind::interleave ? usable_nodes() : said->nodes);
    return 1;
}

NUMALLOC_EXPORT long long numalloc_rehome_with_blocks(int node) noexcept {
    if (numalloc_rehome_thread(pthread_self(), node) != 0) return -1;
    const ThreadHeap* const h = attached_heap;
    if (h == &no_heap) return 0;
    return static_cast<long long>(process_heap.move_blocks_of(h->thread, named_node(node)));
}

}  // extern "C"
