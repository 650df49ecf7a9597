#include "heap/space/freed.h"

#include "os/memory.h"

namespace numalloc {

constinit std::uint64_t freed_key = 0;

void choose_freed_key() { freed_key = os::secret_seed(); }

}  // namespace numalloc
