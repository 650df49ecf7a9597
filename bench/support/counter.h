#pragma once

#include <cstdint>

#include "support/command.h"
#include "support/object.h"

namespace bench {

/// Counts up in each byte of an object, through memory every time: what a cache line that two threads
/// share makes slow.
inline void count_up(void* object, std::size_t bytes, std::uint64_t times) {
    auto* const byte = static_cast<volatile unsigned char*>(object);
    for (std::size_t i = 0; i < bytes; ++i) byte[i] = 0;
    for (std::uint64_t n = 0; n < times; ++n) {
        for (std::size_t i = 0; i < bytes; ++i) byte[i] = static_cast<unsigned char>(byte[i] + 1);
    }
    for (std::size_t i = 0; i < bytes; ++i) {
        if (byte[i] != (times & 0xff)) fail("byte %zu of the object at %p was overwritten", i, object);
    }
}

}  // namespace bench
