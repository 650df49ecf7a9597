// Tags of memory (MTE of aarch64): each 16 bytes have one of 0 to 15, and an access by a pointer that has another in its bits
// 56 to 59 is a fault.
#pragma once

namespace numalloc::os {

// From now on pages that commit(), map() and their like make can have tags, 0 at first. Accesses of the calling thread are
// checked, and those of threads and processes that it begins. false, and all is as it was, where the processor or the system cannot.
bool begin_tags();

// What pages are mapped with: PROT_READ, PROT_WRITE, and PROT_MTE once there are tags.
extern int page_access;

}  // namespace numalloc::os
