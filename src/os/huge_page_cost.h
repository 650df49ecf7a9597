// What a huge page costs here.
#pragma once

namespace numalloc::os {

// Touches a huge page that nobody has touched yet; its first 32 KiB are the caller's. Whether the system took much longer
// than clearing it takes. A virtual machine whose host takes back what is free (a balloon with free page reporting) has
// the host find 512 pages for each: 5 ms instead of .2. Normal pages come from smaller pieces, which the host leaves alone.
// By the processor's counter: a thread that loses its CPU during the touch makes it look dear.
bool touch_is_dear(void* huge_page);

}  // namespace numalloc::os
