// The pages of a range, a block or a heap, counted by node.
#include "api/export.h"
#include "api/extension/error.h"
#include "api/malloc/initialise.h"
#include "heap/program_heaps/any_object.h"
#include "heap/program_heaps/bound_heap.h"
#include "heap/thread/deferred.h"
#include "numalloc/numalloc.h"
#include "os/page_histogram.h"
#include "os/topology.h"

using namespace numalloc;
using namespace numalloc::api;

namespace {

struct Counted {
    os::PageHistogram pages;
    int error = 0;

    Counted(size_t* on_node, int nodes)
        : pages{on_node, on_node == nullptr || nodes < 0 ? 0U : static_cast<unsigned>(nodes)} {}
    void add(const void* p, Bytes bytes) {
        const os::Topology& topology = os::topology();
        if (error != 0) return;
        if (topology.machine_has_one_node()) os::count_resident(p, bytes, topology.os_node(NodeId{0}), pages);
        else error = os::count_pages(p, bytes, pages);
    }
    long long result() const { return error == 0 ? static_cast<long long>(pages.found) : fail(error); }
};

}  // namespace

extern "C" {

NUMALLOC_EXPORT long long numalloc_pages_of_range(const void* p, size_t bytes, size_t* on_node, int nodes) noexcept {
    wake();
    if (bytes > ~address_of(p) + 1 && address_of(p) != 0) return fail(EINVAL);
    Counted counted(on_node, nodes);
    counted.add(p, bytes);
    return counted.result();
}

NUMALLOC_EXPORT long long numalloc_pages_of_block(const void* p, size_t* on_node, int nodes) noexcept {
    wake();
    const Location at = locate(p);
    if (at.found == Found::foreign || at.found == Found::unused || why_invalid(at, p) != nullptr) return fail(EINVAL);
    Counted counted(on_node, nodes);
    counted.add(p, bytes_of(at));
    return counted.result();
}

NUMALLOC_EXPORT long long numalloc_pages_of_heap(const numalloc_heap* h, size_t* on_node, int nodes) noexcept {
    catch_up();
    Counted counted(on_node, nodes);
    reinterpret_cast<const BoundHeap*>(h)->each_run(
        [](void* context, void* start, Bytes bytes) { static_cast<Counted*>(context)->add(start, bytes); }, &counted);
    return counted.result();
}

}  // extern "C"
