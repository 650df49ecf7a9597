#include "heap/space/side.h"

#include <atomic>

#include "heap/space/invalid.h"
#include "heap/space/size_class.h"
#include "os/fork_gate.h"
#include "os/memory.h"

namespace numalloc::side {

namespace {

constexpr Bytes chunk_bytes = MiB;
constexpr Bytes largest_in_chunk = chunk_bytes / 4;
constexpr Bytes largest = Bytes{1} << 35;  // a Location keeps the granules in 32 bits
constexpr unsigned most_chunks = 8192;
constexpr unsigned no_chunk = most_chunks;
constexpr unsigned most_spares = 4;
constexpr Bytes largest_spare = 4 * MiB;
// A spare chunk serves requests of at least a quarter of it.
constexpr Bytes spare_part = 4;

constexpr std::uint64_t one_live = 1;
constexpr std::uint64_t open = std::uint64_t{1} << 31;
constexpr unsigned used_shift = 32;

struct Chunk {
    std::atomic<std::uint64_t> state{0};
    std::atomic<Address> begin{0};
    // Stored after `begin` and cleared before it: if `bytes` is the same before and after a read of `begin`, both are
    // one chunk's.
    std::atomic<Bytes> bytes{0};
};

constinit Chunk chunks[most_chunks];
constinit std::atomic<unsigned> ever_used{0};  // entries from this index on were never used
constinit std::atomic<unsigned> current{no_chunk};
constinit std::atomic<unsigned> spares[most_spares] = {};  // closed chunks without objects: index + 1, or 0

// Precedes each object.
struct Header {
    Bytes bytes;
    std::uint32_t chunk;
    std::atomic<std::uint32_t> mark;
};
static_assert(sizeof(Header) == granule);

constexpr std::uint32_t in_use = 0x51DE0A11;
constexpr std::uint32_t freed = 0x51DEF4EE;
std::uint32_t mark_of(const void* p, std::uint32_t what) {
    return what ^ static_cast<std::uint32_t>(address_of(p) >> granule_shift);
}
Header& header_of(const void* p) { return *reinterpret_cast<Header*>(address_of(p) - sizeof(Header)); }

void* place(unsigned chunk, Address at, Bytes n, Bytes alignment) {
    void* const p = reinterpret_cast<void*>(align_up(at + sizeof(Header), alignment));
    Header& header = header_of(p);
    header.bytes = n;
    header.chunk = chunk;
    header.mark.store(mark_of(p, in_use), std::memory_order_release);
    return p;
}

void* take(unsigned i, Bytes room, Bytes n, Bytes alignment) {
    Chunk& chunk = chunks[i];
    std::uint64_t state = chunk.state.load(std::memory_order_acquire);
    Bytes used;
    do {
        used = (state >> used_shift) << granule_shift;
        if ((state & open) == 0 || used + room > chunk_bytes) return nullptr;
    } while (!chunk.state.compare_exchange_weak(state, state + one_live + (room >> granule_shift << used_shift),
                                                std::memory_order_acq_rel));
    return place(i, chunk.begin.load(std::memory_order_relaxed) + used, n, alignment);
}

// A closed chunk with one object. `used` is not 0, so the entry stays claimed after that object is freed.
constexpr std::uint64_t claimed = std::uint64_t{1} << used_shift | one_live;

// The index of an unused entry, which becomes the caller's; no_chunk if all are used.
unsigned claim() {
    for (unsigned i = 0; i < most_chunks; ++i) {
        std::uint64_t nothing = 0;
        if (chunks[i].state.load(std::memory_order_relaxed) != 0 ||
            !chunks[i].state.compare_exchange_strong(nothing, claimed, std::memory_order_acq_rel))
            continue;
        unsigned before = ever_used.load(std::memory_order_relaxed);
        while (before <= i && !ever_used.compare_exchange_weak(before, i + 1, std::memory_order_release)) {}
        return i;
    }
    return no_chunk;
}

void give_entry(Chunk& chunk) { chunk.state.store(0, std::memory_order_release); }

// The chunk is closed and has no objects.
void unmap(Chunk& chunk) {
    const Bytes bytes = chunk.bytes.exchange(0, std::memory_order_acq_rel);
    os::unmap(reinterpret_cast<void*>(chunk.begin.load(std::memory_order_relaxed)), bytes);
    give_entry(chunk);
}

void close(Chunk& chunk) {
    if (chunk.state.fetch_and(~open, std::memory_order_acq_rel) << used_shift == open << used_shift) unmap(chunk);
}

void unmap_spare(std::atomic<unsigned>& spare) {
    if (const unsigned one = spare.exchange(0, std::memory_order_acq_rel); one != 0) unmap(chunks[one - 1]);
}

// Unmaps a closed chunk without objects, or during a fork keeps it as a spare.
void retire(unsigned i) {
    if (!os::fork_gate.is_closed() || chunks[i].bytes.load(std::memory_order_relaxed) > largest_spare)
        return unmap(chunks[i]);
    std::atomic<unsigned>* place = &spares[i % most_spares];
    for (std::atomic<unsigned>& spare : spares)
        if (spare.load(std::memory_order_relaxed) == 0) place = &spare;
    if (const unsigned older = place->exchange(i + 1, std::memory_order_acq_rel); older != 0) unmap(chunks[older - 1]);
    // trim(), which follows each fork, may have been here before.
    if (!os::fork_gate.is_closed()) unmap_spare(*place);
}

// The length of a chunk for one object. A quarter longer at most, so that it also suits objects a little larger.
Bytes rounded(Bytes room) {
    Bytes step = os::page_size();
    while (step * 8 <= room) step *= 2;
    return align_up(room, step);
}

bool suits(unsigned i, Bytes bytes) {
    const Bytes has = chunks[i].bytes.load(std::memory_order_relaxed);
    return has >= bytes && has / spare_part <= bytes;
}

// The index of a spare chunk, which becomes the caller's; no_chunk if none suits.
unsigned take_spare(Bytes bytes) {
    for (std::atomic<unsigned>& spare : spares) {
        unsigned one = spare.load(std::memory_order_acquire);
        if (one == 0 || !suits(one - 1, bytes) || !spare.compare_exchange_strong(one, 0, std::memory_order_acq_rel))
            continue;
        // It may have been taken, unmapped and replaced by another in between.
        if (suits(one - 1, bytes)) return one - 1;
        retire(one - 1);
    }
    return no_chunk;
}

// Maps a closed chunk, which becomes entry `i`, and allocates its first object.
void* map_chunk(Bytes bytes, Bytes n, Bytes alignment, unsigned& i) {
    i = claim();
    if (i == no_chunk) return nullptr;
    Chunk& chunk = chunks[i];
    void* const memory = os::map(bytes);
    if (memory == nullptr) {
        give_entry(chunk);
        return nullptr;
    }
    chunk.begin.store(address_of(memory), std::memory_order_release);
    chunk.bytes.store(bytes, std::memory_order_release);
    return place(i, address_of(memory), n, alignment);
}

unsigned chunk_of(const void* p) {
    const unsigned end = ever_used.load(std::memory_order_acquire);
    for (unsigned i = 0; i < end; ++i) {
        const Bytes bytes = chunks[i].bytes.load(std::memory_order_acquire);
        const Address begin = chunks[i].begin.load(std::memory_order_acquire);
        // Another chunk may have become the entry's in between. The chunk of an allocated object does not change.
        if (address_of(p) - begin < bytes && chunks[i].bytes.load(std::memory_order_acquire) == bytes) return i;
    }
    return no_chunk;
}

}  // namespace

Memory allocate(Bytes n, Bytes alignment) {
    alignment = max_of(alignment, granule);
    if (n > largest || alignment > largest) return {};
    n = align_up(max_of<Bytes>(n, 1), granule);
    const Bytes room = sizeof(Header) + n + (alignment - granule);
    if (room > largest_in_chunk) {
        unsigned i = take_spare(room);
        if (i == no_chunk) return {map_chunk(rounded(room), n, alignment, i), true};
        chunks[i].state.store(claimed, std::memory_order_release);
        return {place(i, chunks[i].begin.load(std::memory_order_relaxed), n, alignment), false};
    }
    unsigned i = current.load(std::memory_order_acquire);
    if (i != no_chunk)
        if (void* const p = take(i, room, n, alignment)) return {p, true};
    void* const p = map_chunk(chunk_bytes, n, alignment, i);
    if (p == nullptr) return {};
    chunks[i].state.store(room >> granule_shift << used_shift | open | one_live, std::memory_order_release);
    if (const unsigned before = current.exchange(i, std::memory_order_acq_rel); before != no_chunk)
        close(chunks[before]);
    return {p, true};
}

bool contains(const void* p) { return chunk_of(p) != no_chunk; }

const char* why_invalid(const void* p) {
    const unsigned i = chunk_of(p);
    const char* const none = "is not an allocated object";
    if (i == no_chunk || address_of(p) % granule != 0 ||
        address_of(p) < chunks[i].begin.load(std::memory_order_relaxed) + sizeof(Header))
        return none;
    const std::uint32_t mark = header_of(p).mark.load(std::memory_order_acquire);
    if (mark == mark_of(p, freed)) return "was freed already";
    return mark == mark_of(p, in_use) && header_of(p).chunk == i ? nullptr : none;
}

Bytes bytes_of(const void* p) { return header_of(p).bytes; }

void free(void* p, const char* call) {
    if (const char* const why = why_invalid(p)) die_of_invalid_pointer(call, p, why);
    std::uint32_t mark = mark_of(p, in_use);
    const unsigned i = header_of(p).chunk;
    // Detects two threads that free it at the same time.
    if (!header_of(p).mark.compare_exchange_strong(mark, mark_of(p, freed), std::memory_order_acq_rel))
        die_of_invalid_pointer(call, p, "was freed already");
    const std::uint64_t before = chunks[i].state.fetch_sub(one_live, std::memory_order_acq_rel);
    if (before << used_shift == one_live << used_shift) retire(i);
}

void trim() {
    for (std::atomic<unsigned>& spare : spares) unmap_spare(spare);
    unsigned i = current.load(std::memory_order_acquire);
    if (i == no_chunk || chunks[i].state.load(std::memory_order_relaxed) << used_shift != open << used_shift) return;
    // Closes it also if an object was added since, which then unmaps it.
    if (current.compare_exchange_strong(i, no_chunk, std::memory_order_acq_rel)) close(chunks[i]);
}

}  // namespace numalloc::side
