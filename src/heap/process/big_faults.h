// What the hardened library says of a fault in memory that it keeps from everybody: guards, and big objects that were freed.
#pragma once

namespace numalloc {

void explain_faults();

}  // namespace numalloc
