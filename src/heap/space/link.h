// The link from a free object to the next one of its list. In the hardened library an attacker can
// neither read an address from it nor redirect it by writing an address to it:
//
//   word == 0                              there is no next object
//   word == next ^ secret_at(its place)    otherwise; a secret's highest bit is 1, so the word is not 0
//
// In the other libraries the link is the address itself.
#pragma once

#include <type_traits>

#include "base/bits.h"

namespace numalloc {

#if defined(NUMALLOC_HARDENED)
inline constexpr bool hardened = true;
#else
inline constexpr bool hardened = false;
#endif

struct Object;

// Random, chosen once for the process before any list exists; 0 except in the hardened library.
struct Secrets {
    std::uint64_t place, factor;
};
extern Secrets secrets;

// Hides a word of memory in the hardened library; differs from place to place. Folds a product of 128 bits, so that one
// known word reveals neither of the keys, and no secret of another place.
inline std::uint64_t secret_at(Address place) {
    const auto product = static_cast<unsigned __int128>(place ^ secrets.place) * secrets.factor;
    return (static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64)) | std::uint64_t{1} << 63;
}

class HiddenLink {
public:
    constexpr HiddenLink() = default;
    HiddenLink(const HiddenLink& other) { *this = other; }
    HiddenLink& operator=(const HiddenLink& other) { return *this = static_cast<Object*>(other); }
    HiddenLink& operator=(Object* next) {
        word_ = next == nullptr ? 0 : address_of(next) ^ secret();
        return *this;
    }
    operator Object*() const { return word_ == 0 ? nullptr : reinterpret_cast<Object*>(word_ ^ secret()); }

private:
    std::uint64_t secret() const { return secret_at(address_of(this)); }

    std::uint64_t word_ = 0;
};

using Link = std::conditional_t<hardened, HiddenLink, Object*>;
static_assert(sizeof(HiddenLink) == sizeof(Address));

}  // namespace numalloc
