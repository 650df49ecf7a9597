// Every way to get, resize and give back a block, drawn at random: from a seed, or from the bytes of a fuzzer. What
// `random` must have is below(n), 0 to n - 1.
#pragma once

#include <dlfcn.h>

#include <cerrno>
#include <new>

#include "model/block.h"

namespace model {

using FreeSized = void (*)(void*, std::size_t);
using FreeAlignedSized = void (*)(void*, std::size_t, std::size_t);

// C23's names, where the allocator has them.
inline FreeSized free_sized = reinterpret_cast<FreeSized>(dlsym(RTLD_DEFAULT, "free_sized"));
inline FreeAlignedSized free_aligned_sized =
    reinterpret_cast<FreeAlignedSized>(dlsym(RTLD_DEFAULT, "free_aligned_sized"));

// The others are mostly small, as programs are; every doubling equally likely within its part.
template <class Random>
inline std::size_t draw_size(Random& random) {
    const auto die = random.below(1000);
    unsigned bits;
    if (large_percent != 0 && random.below(100) < static_cast<std::uint64_t>(large_percent))
        bits = 14 + static_cast<unsigned>(random.below(9));
    else if (die < 850) bits = static_cast<unsigned>(random.below(11));      // to 1 KiB
    else if (die < 985) bits = 10 + static_cast<unsigned>(random.below(6));  // to 64 KiB
    else if (die < 998) bits = 16 + static_cast<unsigned>(random.below(4));  // to 1 MiB
    else bits = 20 + static_cast<unsigned>(random.below(3));                 // to 8 MiB
    const std::size_t power = std::size_t{1} << bits;
    // A third sit exactly on or beside a power of two, where mistakes live.
    const auto shape = random.below(6);
    if (shape == 0) return power;
    if (shape == 1) return random.below(2) ? power + 1 : power - 1;
    return power + random.below(power);
}

template <class Random>
inline std::size_t draw_alignment(Random& random) {
    const auto die = random.below(100);
    if (die < 70) return std::size_t{1} << (3 + random.below(5));  // 8 to 128
    if (die < 97) return std::size_t{1} << (8 + random.below(8));  // to 32 KiB
    return std::size_t{1} << (16 + random.below(6));               // to 2 MiB
}

inline void check_new(const Block& b, std::size_t promised) {
    if (b.p == nullptr) report(b, "no memory", errno);
    if (reinterpret_cast<std::uintptr_t>(b.p) % promised != 0) report(b, "alignment", static_cast<long>(promised));
    if (malloc_usable_size(b.p) < b.size) report(b, "usable size", static_cast<long>(malloc_usable_size(b.p)));
}

inline void check_zero(const Block& b) {
    if (b.size <= whole_limit) {
        for (std::size_t i = 0; i < b.size; ++i)
            if (b.p[i] != 0) report(b, "calloc gave dirty memory", static_cast<long>(i));
        return;
    }
    std::uint64_t word;
    for (std::size_t at = 0; at + 8 <= b.size; at += at < 4096 ? 8 : 512) {
        std::memcpy(&word, b.p + at, 8);
        if (word != 0) report(b, "calloc gave dirty memory", static_cast<long>(at));
    }
}

// A new block, written, and its usable tail used too.
template <class Random>
inline Block allocate(Random& random, std::uint64_t number) {
    Block b;
    b.number = number;
    b.size = draw_size(random);
    void* p = nullptr;
    switch (random.below(24)) {
        case 0:
        case 1:
        case 2: {
            const std::size_t members = 1 + random.below(8);
            b.size = b.size / members * members;
            b.p = static_cast<unsigned char*>(calloc(members, b.size / members));
            check_new(b, 16);
            check_zero(b);
            break;
        }
        case 3:
            b.p = static_cast<unsigned char*>(reallocarray(nullptr, 1, b.size));
            check_new(b, 16);
            break;
        case 4:
        case 5:
            b.alignment = draw_alignment(random);
            b.origin = Origin::aligned;
            if (posix_memalign(&p, b.alignment, b.size) != 0) report(b, "posix_memalign failed", 0);
            b.p = static_cast<unsigned char*>(p);
            check_new(b, b.alignment);
            break;
        case 6:
            b.alignment = draw_alignment(random);
            b.origin = Origin::aligned;
            b.p = static_cast<unsigned char*>(aligned_alloc(b.alignment, b.size));
            check_new(b, b.alignment);
            break;
        case 7:
            b.alignment = draw_alignment(random);
            b.origin = Origin::aligned;
            b.p = static_cast<unsigned char*>(memalign(b.alignment, b.size));
            check_new(b, b.alignment);
            break;
        case 8:
            b.p = static_cast<unsigned char*>(valloc(b.size));
            // free_sized() is for what malloc, calloc and realloc gave.
            b.size_known = false;
            check_new(b, 4096);
            break;
        case 9:
            b.p = static_cast<unsigned char*>(pvalloc(b.size));
            b.size_known = false;
            check_new(b, 4096);
            break;
        case 10:
        case 11:
        case 12:
            b.origin = Origin::new_scalar;
            b.p = static_cast<unsigned char*>(random.below(2) ? ::operator new(b.size)
                                                              : ::operator new(b.size, std::nothrow));
            check_new(b, 16);
            break;
        case 13:
            b.origin = Origin::new_array;
            b.p = static_cast<unsigned char*>(::operator new[](b.size));
            check_new(b, 16);
            break;
        case 14:
            b.origin = Origin::new_aligned;
            b.alignment = draw_alignment(random);
            b.p = static_cast<unsigned char*>(::operator new(b.size, std::align_val_t{b.alignment}));
            check_new(b, b.alignment);
            break;
        default:
            b.p = static_cast<unsigned char*>(malloc(b.size));
            check_new(b, 16);
            break;
    }
    // What malloc_usable_size promises is the caller's too. The size asked for is lost by that, and
    // sized frees with it.
    if (random.below(4) == 0) {
        b.size = malloc_usable_size(b.p);
        b.size_known = false;
    }
    write(b);
    return b;
}

template <class Random>
inline void release(Random& random, const Block& b) {
    verify(b);
    const bool size_known = b.size_known;
    errno = 4242;
    switch (b.origin) {
        case Origin::malloc:
            if (size_known && free_sized != nullptr && random.below(4) == 0) free_sized(b.p, b.size);
            else free(b.p);
            break;
        case Origin::aligned:
            if (size_known && free_aligned_sized != nullptr && random.below(4) == 0)
                free_aligned_sized(b.p, b.alignment, b.size);
            else free(b.p);
            break;
        case Origin::new_scalar:
            if (size_known && random.below(2)) ::operator delete(b.p, b.size);
            else ::operator delete(b.p);
            break;
        case Origin::new_array:
            if (size_known && random.below(2)) ::operator delete[](b.p, b.size);
            else ::operator delete[](b.p);
            break;
        case Origin::new_aligned:
            if (size_known && random.below(2)) ::operator delete(b.p, b.size, std::align_val_t{b.alignment});
            else ::operator delete(b.p, std::align_val_t{b.alignment});
            break;
    }
    if (errno != 4242) report(b, "free changed errno", errno);
}

// Gives the block another size; only for blocks of the malloc family.
template <class Random>
inline void resize(Random& random, Block& b, std::uint64_t number) {
    verify(b);
    Block next = b;
    next.size = random.below(4) == 0 ? draw_size(random) : b.size / 2 + 1 + random.below(b.size + 16);
    if (next.size == 0) next.size = 1;  // realloc to nothing frees
    // No more than a doubling beyond what draw_size gives.
    if (next.size > (std::size_t{16} << 20)) next.size = std::size_t{16} << 20;
    next.p =
        static_cast<unsigned char*>(random.below(3) == 0 ? reallocarray(b.p, 1, next.size) : realloc(b.p, next.size));
    next.alignment = 0;
    next.origin = Origin::malloc;
    next.size_known = true;
    check_new(next, 16);
    // The old pattern, at its old places, in what both sizes share.
    Block old = b;
    old.p = next.p;
    const std::size_t common = b.size < next.size ? b.size : next.size;
    const long where = first_difference(old, common);
    if (where >= 0) report(next, "realloc lost contents", where);
    next.number = number;
    write(next);
    b = next;
}

}  // namespace model
