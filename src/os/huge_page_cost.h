// The cost of a huge page on this machine.
#pragma once

#include "base/bits.h"

namespace numalloc::os {

// Touches a huge page that was not touched before. The caller owns its first `own` bytes, at least 512, which
// this zeroes. Returns whether the touch took much longer than clearing a huge page. In a virtual machine whose host
// takes back free memory (a balloon with free page reporting) the host must find 512 pages for each huge page; normal
// pages come from smaller pieces, which the host leaves alone. Uses the coarse clock, which needs no system call. A
// single true result may be an accident of that clock or of preemption; several in a row are evidence.
bool touch_is_dear(void* huge_page, Bytes own);

}  // namespace numalloc::os
