// glibc's functions to inspect and trim the heap: mallinfo2 and its relatives, malloc_info's XML, malloc_trim. All are
// thread-safe. Where glibc counts arenas and chunks, numalloc counts nodes and bags. The fields keep their meaning (in
// use, free, held).
#include <malloc.h>

#include <cerrno>
#include <cstdio>

#include "api/export.h"
#include "api/malloc/aside.h"
#include "api/malloc/initialise.h"
#include "heap/thread/housekeeping.h"
#include "statistics/gathering.h"
#include "statistics/report.h"

using namespace numalloc;

namespace {

// Bytes of small objects in use.
Bytes in_use_of(const NodeStatistics& s) { return s.small_live + s.small_homeward; }

struct mallinfo2 information() {
    if (const auto next = NUMALLOC_ASIDE(mallinfo2)) return next();
    struct mallinfo2 info{};
    if (!process_heap.started()) return info;
    const NodeStatistics s = Gathering(Gathering::Depth::heaps).sum();
    info.arena = s.small_bags + s.heap_bytes + s.free_bytes;
    info.ordblks = 1;
    info.hblks = s.big_objects;
    info.hblkhd = s.big_bytes;
    // The counts are read one after the other, while other threads change them.
    info.uordblks = min_of<Bytes>(in_use_of(s) + s.heap_bytes, info.arena);
    info.fordblks = info.arena - info.uordblks;
    info.keepcost = s.dirty_bytes;
    return info;
}

// Below 0 glibc keeps what is free: programs under real-time limits lock or touch their memory once. False in a signal
// handler that interrupted the heap, and if a fork takes long.
bool keep_free_memory(bool keep) {
    if (!os::ForkGate::waits()) return false;
    api::wake();
    if (!process_heap.started()) return true;
    const os::Inside inside;
    if (inside) process_heap.set_purge_delay(keep ? -1 : load_relaxed(options().purge_delay));
    return static_cast<bool>(inside);
}

// The elements that readers of glibc's output look for, for each heap and in total.
void write_totals(FILE* stream, const NodeStatistics& s) {
    using Ull = unsigned long long;
    const Ull held = s.small_bags + s.big_bytes + s.heap_bytes + s.free_bytes;
    const Ull free_small = s.small_bags - min_of<Bytes>(in_use_of(s), s.small_bags);
    fprintf(stream,
            "<total type=\"fast\" count=\"0\" size=\"%llu\"/>\n"
            "<total type=\"rest\" count=\"0\" size=\"%llu\"/>\n",
            Ull{s.small_ring}, free_small - min_of<Ull>(s.small_ring, free_small) + s.free_bytes);
    fprintf(stream, "<total type=\"mmap\" count=\"%llu\" size=\"%llu\"/>\n", Ull{s.big_objects}, Ull{s.big_bytes});
    fprintf(stream,
            "<system type=\"current\" size=\"%llu\"/>\n"
            "<system type=\"max\" size=\"%llu\"/>\n"
            "<aspace type=\"total\" size=\"%llu\"/>\n"
            "<aspace type=\"mprotect\" size=\"%llu\"/>\n",
            held, held, held, held);
}

}  // namespace

extern "C" {

NUMALLOC_EXPORT struct mallinfo2 mallinfo2(void) { return information(); }

// The old form. Its counters are ints and wrap like glibc's.
NUMALLOC_EXPORT struct mallinfo mallinfo(void) {
    const struct mallinfo2 wide = information();
    struct mallinfo info{};
    info.arena = static_cast<int>(wide.arena);
    info.ordblks = static_cast<int>(wide.ordblks);
    info.hblks = static_cast<int>(wide.hblks);
    info.hblkhd = static_cast<int>(wide.hblkhd);
    info.uordblks = static_cast<int>(wide.uordblks);
    info.fordblks = static_cast<int>(wide.fordblks);
    info.keepcost = static_cast<int>(wide.keepcost);
    return info;
}

NUMALLOC_EXPORT void malloc_stats(void) {
    if (const auto next = NUMALLOC_ASIDE(malloc_stats)) return next();
    if (!process_heap.started()) return;
    write_statistics("exit");
}

// Returns 0, or EINVAL for options other than 0, like glibc. Writes a <heap> for each node, with the kernel's number,
// and then the interleaved one if it is in use.
NUMALLOC_EXPORT int malloc_info(int options, FILE* stream) {
    if (const auto next = NUMALLOC_ASIDE(malloc_info)) return next(options, stream);
    if (options != 0) return EINVAL;
    fputs("<malloc version=\"1\">\n", stream);
    const Gathering gathered(Gathering::Depth::heaps);
    for (unsigned n = 0; n < gathered.heaps(); ++n) {
        const int number = outer_number(n);
        if (number == NUMALLOC_INTERLEAVED && !gathered.in_use(n)) continue;
        if (number != NUMALLOC_INTERLEAVED) fprintf(stream, "<heap nr=\"%d\">\n<sizes>\n", number);
        else fputs("<heap nr=\"interleaved\">\n<sizes>\n", stream);
        for (unsigned c = 1; c < class_count; ++c) {
            const unsigned long long objects = gathered.of(n).of_class[c].ring;
            if (objects == 0) continue;
            const unsigned size = shape_of(ClassId{c}).size;
            fprintf(stream, "<size from=\"%u\" to=\"%u\" total=\"%llu\" count=\"%llu\"/>\n",
                    static_cast<unsigned>(smallest_of_class(c)), size, objects * size, objects);
        }
        fputs("</sizes>\n", stream);
        write_totals(stream, gathered.of(n).node);
        fputs("</heap>\n", stream);
    }
    write_totals(stream, gathered.sum());
    fputs("</malloc>\n", stream);
    return 0;
}

// Returns free memory to the system: what the caller's lists, all remote caches and all rings hold, every free bag, and
// free pages inside bags (but of few in a shard that was looked at just before: central/free_pages.cpp). Other threads
// flush their lists at one of their next slow paths. `pad` has no effect (glibc keeps that much at the top of its
// heap). Returns 1 if dirty pages of bags went back.
NUMALLOC_EXPORT int malloc_trim(size_t pad) {
    if (const auto next = NUMALLOC_ASIDE(malloc_trim)) return next(pad);
    return process_heap.started() && return_free_memory() > 0 ? 1 : 0;
}

// Returns 1 if the program gets the requested behaviour, else 0. Most of glibc's parameters tune structures that
// numalloc does not have, so they change no result, and glibc accepts a parameter that it does not know. A negative
// M_TRIM_THRESHOLD, M_CHECK_ACTION and M_PERTURB have effects that a program can see.
NUMALLOC_EXPORT int mallopt(int parameter, int value) {
    if (const auto next = NUMALLOC_ASIDE(mallopt)) return next(parameter, value);
    switch (parameter) {
        case M_MXFAST:
            return value >= 0 && value <= static_cast<int>(80 * sizeof(size_t) / 4) ? 1 : 0;  // glibc's range
        case M_TRIM_THRESHOLD: return keep_free_memory(value < 0) ? 1 : 0;
        case M_CHECK_ACTION: return (value & 3) == 3 ? 1 : 0;  // 3: a line and abort(), which is what numalloc does
        case M_PERTURB: return value == 0 ? 1 : 0;             // blocks are never filled
        default: return 1;
    }
}

}  // extern "C"
