// What a huge page costs here.
#pragma once

#include "base/bits.h"

namespace numalloc::os {

// Touches a huge page that nobody has touched yet; its first `own` bytes, at least 512, are the caller's. Whether the
// system took much longer than clearing it takes. A virtual machine whose host takes back what is free (a balloon with
// free page reporting) has the host find 512 pages for each: 5 ms instead of .2. Normal pages come from smaller pieces,
// which the host leaves alone. By the coarse clock, which needs no system call: one touch in 15 looks dear by chance,
// and so does one in which the thread loses its CPU. Several in a row say more.
bool touch_is_dear(void* huge_page, Bytes own);

}  // namespace numalloc::os
