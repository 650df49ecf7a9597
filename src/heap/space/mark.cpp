#include "heap/space/mark.h"

#include "os/seeds.h"

namespace numalloc {

constinit std::uint64_t freed_key = 0;

constinit Secrets secrets{};

void choose_freed_key() {
    freed_key = os::secret_seed(os::SeedFor::freed_key);
    if constexpr (hardened)
        secrets = {os::secret_seed(os::SeedFor::hardened_key), os::secret_seed(os::SeedFor::hardened_factor) | 1};
}

}  // namespace numalloc
