// Statistics of the heaps, for the program.
#include <cstring>

#include "api/export.h"
#include "api/extension/error.h"
#include "api/extension/nodes.h"
#include "api/malloc/allocate.h"
#include "api/malloc/initialise.h"
#include "heap/node/process_heap.h"
#include "numalloc/numalloc.h"
#include "statistics/gathering.h"
#include "statistics/report.h"

using namespace numalloc;
using namespace numalloc::api;

namespace {

// The caller's struct may be of another version, shorter or longer.
template <class Struct>
void give(const Struct& s, Struct* into, size_t bytes) {
    memset(into, 0, bytes);
    memcpy(into, &s, min_of(bytes, sizeof s));
}

// The heaps that a call covers: one, or all of them.
struct Heaps {
    unsigned first = 0;
    unsigned end = 0;
};
bool heaps_of(int node, Heaps& heaps) {
    wake();
    if (node == NUMALLOC_ALL_NODES) return heaps = {0, process_heap.counted_heaps()}, true;
    const NodeId n = node == NUMALLOC_INTERLEAVED ? process_heap.interleaved() : usable_node(node);
    if (n == no_node) return false;
    heaps = {n.value, min_of(n.value + 1U, process_heap.counted_heaps())};
    return true;
}

template <class Struct>
void add(Struct& sum, const Struct& s) {
    auto* const to = reinterpret_cast<unsigned long long*>(&sum);
    const auto* const from = reinterpret_cast<const unsigned long long*>(&s);
    for (size_t i = 0; i < sizeof s / sizeof *to; ++i) to[i] += from[i];
}

struct Buffer {
    char* text;
    size_t bytes;
    size_t length;
};

}  // namespace

extern "C" {

NUMALLOC_EXPORT int numalloc_statistics(int node, struct numalloc_node_statistics* into, size_t bytes) noexcept {
    Heaps heaps;
    if (!heaps_of(node, heaps)) return -1;
    const Gathering gathered(Gathering::Depth::resident);
    NodeStatistics sum{};
    for (unsigned n = heaps.first; n < min_of(heaps.end, gathered.heaps()); ++n) add(sum, gathered.of(n).node);
    give(sum, into, bytes);
    return 0;
}

NUMALLOC_EXPORT long long numalloc_statistics_of_class(int node, size_t size, struct numalloc_class_statistics* into,
                                                       size_t bytes) noexcept {
    Heaps heaps;
    if (size > largest_small) return fail(EINVAL);
    if (!heaps_of(node, heaps)) return -1;
    const ClassId c = class_for(size);
    const Gathering gathered(Gathering::Depth::threads);
    ClassStatistics sum{};
    for (unsigned n = heaps.first; n < min_of(heaps.end, gathered.heaps()); ++n)
        for (unsigned i = 1; i < class_count; ++i)
            if (class_of(size_of_class(i)) == c) add(sum, gathered.of(n).of_class[i]);
    give(sum, into, bytes);
    return static_cast<long long>(shape_of(c).size - tail_bytes);
}

NUMALLOC_EXPORT int numalloc_statistics_of_process(struct numalloc_process_statistics* into, size_t bytes) noexcept {
    wake();
    give(process_statistics(), into, bytes);
    return 0;
}

NUMALLOC_EXPORT long long numalloc_statistics_text(enum numalloc_format format, char* text, size_t bytes) noexcept {
    if (format != NUMALLOC_TEXT && format != NUMALLOC_JSON) return fail(EINVAL);
    wake();
    Buffer buffer{text, bytes, 0};
    {
        Output out(
            [](void* context, const char* piece, size_t length) {
                Buffer& b = *static_cast<Buffer*>(context);
                if (b.length + 1 < b.bytes) memcpy(b.text + b.length, piece, min_of(length, b.bytes - 1 - b.length));
                b.length += length;
            },
            &buffer);
        report_statistics(out, format);
    }
    if (bytes > 0) text[min_of(buffer.length, bytes - 1)] = '\0';
    return static_cast<long long>(buffer.length);
}

NUMALLOC_EXPORT int numalloc_statistics_write(const char* file) noexcept {
    wake();
    const int error = write_statistics(file);
    return error == 0 ? 0 : fail(error);
}

}  // extern "C"
