#include "heap/space/side.h"

#include <atomic>

#include "heap/space/invalid.h"
#include "heap/space/size_class.h"
#include "os/fork_gate.h"
#include "os/libc_call.h"
#include "os/memory.h"

namespace numalloc::side {

namespace {

constexpr Bytes chunk_bytes = MiB;
constexpr Bytes largest_slot = chunk_bytes / 4;
constexpr Bytes largest = Bytes{1} << 35;  // keeps sums of sizes from overflow
constexpr unsigned most_chunks = 8192;
constexpr unsigned no_chunk = most_chunks;
constexpr unsigned most_spares = 4;
constexpr Bytes largest_spare = 4 * MiB;
// A spare chunk serves requests of at least a quarter of it.
constexpr Bytes spare_part = 4;

constexpr std::uint64_t one_live = 1;
constexpr std::uint64_t open = std::uint64_t{1} << 31;
constexpr unsigned kind_shift = 32;
constexpr std::uint64_t one_object = std::uint64_t{1} << kind_shift;
constexpr std::uint64_t left = std::uint64_t{2} << kind_shift;

constexpr std::uint64_t live_in(std::uint64_t state) { return state & (open - 1); }
constexpr std::uint64_t kind_of(std::uint64_t state) { return state >> kind_shift << kind_shift; }
constexpr bool is_unused(std::uint64_t state) { return state == kind_of(state); }

// Four classes for each doubling: 32, 40 (not used), 48, 56 (not used), 64, 80, 96, 112, 128, 160 bytes ...
constexpr unsigned class_of(Bytes room) {
    const unsigned step = log2_floor(room - 1) - 2;
    return step * 4 + static_cast<unsigned>((room - 1) >> step);
}
constexpr Bytes slot_bytes(unsigned slot_class) {
    const unsigned step = (slot_class - 4) / 4;
    return Bytes{slot_class - step * 4 + 1} << step;
}
constexpr unsigned classes = class_of(largest_slot) + 1;
static_assert(slot_bytes(class_of(32)) == 32 && slot_bytes(class_of(33)) == 40 && slot_bytes(class_of(81)) == 96);
static_assert(slot_bytes(classes - 1) == largest_slot);
constexpr std::uint64_t kind_of_class(unsigned slot_class) { return (slot_class + std::uint64_t{3}) << kind_shift; }
constexpr unsigned class_of_kind(std::uint64_t state) { return static_cast<unsigned>(state >> kind_shift) - 3; }

// At the start of a chunk with slots: a bit for each, set while it is used.
struct UsedSlots {
    std::atomic<std::uint64_t> words[chunk_bytes / 32 / 64];
};
constexpr Bytes first_slot = sizeof(UsedSlots);
constexpr std::uint64_t slots(unsigned slot_class) { return (chunk_bytes - first_slot) / slot_bytes(slot_class); }

struct Chunk {
    std::atomic<std::uint64_t> state{0};
    std::atomic<Address> begin{0};
    // Stored after `begin` and cleared before it: if `bytes` is the same before and after a read of `begin`, both are
    // one chunk's.
    std::atomic<Bytes> bytes{0};
};

constinit Chunk chunks[most_chunks];
constinit std::atomic<unsigned> ever_used{0};              // entries from this index on were never used
constinit std::atomic<unsigned> current[classes] = {};     // a class's open chunk: index + 1, or 0
constinit std::atomic<unsigned> spares[most_spares] = {};  // closed chunks without objects: index + 1, or 0
constinit std::atomic<bool> any_left{false};               // a chunk may be `left`

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

UsedSlots& used_slots(unsigned i) {
    return *reinterpret_cast<UsedSlots*>(chunks[i].begin.load(std::memory_order_relaxed));
}

// Takes a slot of a chunk whose state counts the object already, so that one is unused.
Address take_slot(unsigned i, unsigned slot_class, std::uint64_t live_before) {
    UsedSlots& used = used_slots(i);
    const std::uint64_t end = slots(slot_class);
    // While nothing was freed the first unused slot follows the `live_before` used ones.
    for (std::uint64_t word = live_before / 64;; word = (word + 1) * 64 < end ? word + 1 : 0) {
        std::uint64_t bits = used.words[word].load(std::memory_order_relaxed);
        while (~bits != 0) {
            const unsigned bit = static_cast<unsigned>(__builtin_ctzll(~bits));
            const std::uint64_t slot = word * 64 + bit;
            if (slot >= end) break;
            if (used.words[word].compare_exchange_weak(bits, bits | std::uint64_t{1} << bit, std::memory_order_acquire))
                return chunks[i].begin.load(std::memory_order_relaxed) + first_slot + slot * slot_bytes(slot_class);
        }
    }
}

void give_slot(unsigned i, unsigned slot_class, const void* p) {
    const Address header = address_of(p) - sizeof(Header);
    const Bytes from_first = header - chunks[i].begin.load(std::memory_order_relaxed) - first_slot;
    const std::uint64_t slot = from_first / slot_bytes(slot_class);
    used_slots(i).words[slot / 64].fetch_and(~(std::uint64_t{1} << slot % 64), std::memory_order_release);
}

// Allocates in an open chunk of the class with an unused slot, or, to open it, in a closed one that is half empty.
void* take(unsigned i, unsigned slot_class, bool opened, Bytes n, Bytes alignment) {
    Chunk& chunk = chunks[i];
    const std::uint64_t most = opened ? slots(slot_class) - 1 : slots(slot_class) / 2;
    std::uint64_t state = chunk.state.load(std::memory_order_acquire);
    do {
        if (kind_of(state) != kind_of_class(slot_class) || ((state & open) != 0) != opened || is_unused(state) ||
            live_in(state) > most)
            return nullptr;
    } while (!chunk.state.compare_exchange_weak(state, (state | open) + one_live, std::memory_order_acq_rel));
    return place(i, take_slot(i, slot_class, live_in(state)), n, alignment);
}

// The state of an entry from its claim on: a closed chunk with one object.
constexpr std::uint64_t claimed = one_object | one_live;

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

// Unmaps a closed chunk without objects; inside a LibcCall leaves it to trim() and take_left(), because a library's
// replacement of munmap() that allocates and frees would otherwise be called again for what it frees, without end.
void unmap_or_leave(unsigned i) {
    if (!os::in_libc_call()) return unmap(chunks[i]);
    chunks[i].state.store(left, std::memory_order_release);
    any_left.store(true, std::memory_order_release);
}

void close(unsigned i) {
    if (live_in(chunks[i].state.fetch_and(~open, std::memory_order_acq_rel)) == 0) unmap_or_leave(i);
}

void unmap_spare(std::atomic<unsigned>& spare) {
    if (const unsigned one = spare.exchange(0, std::memory_order_acq_rel); one != 0) unmap_or_leave(one - 1);
}

// Unmaps a closed chunk without objects, or during a fork keeps it as a spare.
void retire(unsigned i) {
    if (!os::fork_gate.is_closed() || chunks[i].bytes.load(std::memory_order_relaxed) > largest_spare)
        return unmap_or_leave(i);
    std::atomic<unsigned>* place = &spares[i % most_spares];
    for (std::atomic<unsigned>& spare : spares)
        if (spare.load(std::memory_order_relaxed) == 0) place = &spare;
    if (const unsigned older = place->exchange(i + 1, std::memory_order_acq_rel); older != 0) unmap_or_leave(older - 1);
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

// Makes a chunk that was left the caller's.
bool take_if_left(unsigned i) {
    std::uint64_t state = left;
    return chunks[i].state.load(std::memory_order_relaxed) == left &&
           chunks[i].state.compare_exchange_strong(state, claimed, std::memory_order_acq_rel);
}

// The index of a chunk that was left, which becomes the caller's; no_chunk if none suits.
unsigned take_left(Bytes bytes) {
    if (!any_left.load(std::memory_order_acquire)) return no_chunk;
    const unsigned end = ever_used.load(std::memory_order_acquire);
    for (unsigned i = 0; i < end; ++i) {
        if (!suits(i, bytes) || !take_if_left(i)) continue;
        if (suits(i, bytes)) return i;
        unmap_or_leave(i);
    }
    return no_chunk;
}

// Maps a closed chunk, which becomes the entry returned; no_chunk without memory.
unsigned map_chunk(Bytes bytes) {
    const unsigned i = claim();
    if (i == no_chunk) return no_chunk;
    Chunk& chunk = chunks[i];
    void* const memory = os::map(bytes);
    if (memory == nullptr) {
        give_entry(chunk);
        return no_chunk;
    }
    chunk.begin.store(address_of(memory), std::memory_order_release);
    chunk.bytes.store(bytes, std::memory_order_release);
    return i;
}

Memory allocate_alone(Bytes room, Bytes n, Bytes alignment) {
    unsigned i = take_spare(room);
    if (i == no_chunk) i = take_left(room);
    const bool mapped = i == no_chunk;
    if (mapped) i = map_chunk(rounded(room));
    if (i == no_chunk) return {};
    chunks[i].state.store(claimed, std::memory_order_release);
    return {place(i, chunks[i].begin.load(std::memory_order_relaxed), n, alignment), mapped};
}

// Opens another chunk for the class, and allocates in it.
void* open_chunk(unsigned slot_class, Bytes n, Bytes alignment) {
    const unsigned end = ever_used.load(std::memory_order_acquire);
    void* p = nullptr;
    unsigned i = 0;
    while (i < end && (p = take(i, slot_class, false, n, alignment)) == nullptr) ++i;
    if (p == nullptr) {
        i = take_left(chunk_bytes);
        if (i != no_chunk)
            for (std::atomic<std::uint64_t>& word : used_slots(i).words) word.store(0, std::memory_order_relaxed);
        else if (i = map_chunk(chunk_bytes); i == no_chunk) return nullptr;
        p = place(i, take_slot(i, slot_class, 0), n, alignment);
        chunks[i].state.store(kind_of_class(slot_class) | open | one_live, std::memory_order_release);
    }
    if (const unsigned before = current[slot_class].exchange(i + 1, std::memory_order_acq_rel); before != 0)
        close(before - 1);
    return p;
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
    if (room > largest_slot) return allocate_alone(room, n, alignment);
    const unsigned slot_class = class_of(room);
    const unsigned one = current[slot_class].load(std::memory_order_acquire);
    void* p = one == 0 ? nullptr : take(one - 1, slot_class, true, n, alignment);
    if (p == nullptr) p = open_chunk(slot_class, n, alignment);
    return {p, false};
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
    if (const char* const why = why_invalid(p)) die_of_wrong_call(call, p, why);
    std::uint32_t mark = mark_of(p, in_use);
    const unsigned i = header_of(p).chunk;
    // Detects two threads that free it at the same time.
    if (!header_of(p).mark.compare_exchange_strong(mark, mark_of(p, freed), std::memory_order_acq_rel))
        die_of_wrong_call(call, p, "was freed already");
    const std::uint64_t state = chunks[i].state.load(std::memory_order_relaxed);
    if (kind_of(state) != one_object) give_slot(i, class_of_kind(state), p);
    const std::uint64_t before = chunks[i].state.fetch_sub(one_live, std::memory_order_acq_rel);
    if (is_unused(before - one_live)) retire(i);
}

void trim() {
    for (std::atomic<unsigned>& spare : spares) unmap_spare(spare);
    for (std::atomic<unsigned>& one : current) {
        unsigned i = one.load(std::memory_order_acquire);
        if (i == 0 || live_in(chunks[i - 1].state.load(std::memory_order_relaxed)) != 0) continue;
        // Closes it also if an object was added since, which then unmaps it.
        if (one.compare_exchange_strong(i, 0, std::memory_order_acq_rel)) close(i - 1);
    }
    if (!any_left.exchange(false, std::memory_order_acq_rel)) return;
    const unsigned end = ever_used.load(std::memory_order_acquire);
    for (unsigned i = 0; i < end; ++i)
        if (take_if_left(i)) unmap_or_leave(i);
}

}  // namespace numalloc::side
