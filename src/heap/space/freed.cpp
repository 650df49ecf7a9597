#include "heap/space/freed.h"

#include "os/memory.h"

namespace numalloc {

constinit std::uint64_t freed_key = 0;

constinit Secrets secrets{};

void choose_freed_key() {
    freed_key = os::secret_seed();
    if constexpr (hardened) secrets = {os::secret_seed(), os::secret_seed() | 1};
}

}  // namespace numalloc
