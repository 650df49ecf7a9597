#include "os/seeds.h"

#include <sys/auxv.h>
#include <sys/personality.h>

#include <bit>
#include <cerrno>
#include <cstring>
#include <initializer_list>

#include "os/syscall.h"

namespace numalloc::os {

namespace {

struct Key {
    std::uint64_t word[2];
};

// libc derives its stack and pointer guards from these bytes.
Key random_bytes() {
    const int kept = errno;
    const auto* const where = reinterpret_cast<const void*>(getauxval(AT_RANDOM));
    errno = kept;
    Key key{};
    if (where != nullptr) std::memcpy(&key, where, sizeof key);
    return key;
}

void mix(std::uint64_t (&v)[4]) {
    v[0] += v[1], v[1] = std::rotl(v[1], 13) ^ v[0], v[0] = std::rotl(v[0], 32);
    v[2] += v[3], v[3] = std::rotl(v[3], 16) ^ v[2];
    v[0] += v[3], v[3] = std::rotl(v[3], 21) ^ v[0];
    v[2] += v[1], v[1] = std::rotl(v[1], 17) ^ v[2], v[2] = std::rotl(v[2], 32);
}

// SipHash-2-4 (Aumasson and Bernstein 2012) of one 64-bit word.
std::uint64_t hash(Key key, std::uint64_t message) {
    std::uint64_t v[4] = {key.word[0] ^ 0x736F6D6570736575U, key.word[1] ^ 0x646F72616E646F6DU,
                          key.word[0] ^ 0x6C7967656E657261U, key.word[1] ^ 0x7465646279746573U};
    for (const std::uint64_t word : {message, std::uint64_t{8} << 56}) {
        v[3] ^= word;
        mix(v), mix(v);
        v[0] ^= word;
    }
    v[2] ^= 0xFF;
    mix(v), mix(v), mix(v), mix(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

constexpr unsigned long ask = 0xFFFFFFFF;

bool told_not_to() {
    const long now = call(SYS_personality, ask);
    return !failed(now) && (now & ADDR_NO_RANDOMIZE) != 0;
}

}  // namespace

std::uint64_t secret_seed(SeedFor what) { return hash(random_bytes(), static_cast<std::uint64_t>(what)); }

std::uint64_t layout_seed(SeedFor what) {
    return told_not_to() ? hash({}, static_cast<std::uint64_t>(what)) : secret_seed(what);
}

}  // namespace numalloc::os
