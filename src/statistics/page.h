// Statistics in memory that other processes of the same user may read: for `numalloc stat` and `top`.
//
//   /dev/shm/numalloc-USER-PROCESS
//
//   0    magic "NUMASTAT"                    8 bytes
//   8    version, header bytes               what follows are 32-bit numbers: so that readers of one version find their
//   way 16   node records, bytes of one            through files of another 24   class records, bytes of one 32 process
//   start                       of /proc/PID/stat: whether the file is that process's, or one's before it 40   sequence
//   odd while it is written: read it, copy, read it again 48   updated at                          nanoseconds of
//   CLOCK_MONOTONIC 56   bytes of the process record, 0 64   bytes of names, then names          of a node record's
//   numbers, an empty one, of a class record's, an empty one, of the
//                                            process record's; each ended by NUL
//        process record                      a u64 for each name; it begins at a multiple of 8
//        node records                        i64 node (-1: not in use, -2: interleaved), a u64 for each name
//        class records                       u32 place of the node's record, u32 object bytes, a u64 for each name
//
// One thread at a time writes, at housekeeping: 10 times a second at most, and at most a hundredth of its time.
#pragma once

namespace numalloc {

// Makes the page where the process has none, and writes it anew if it is time. Without /dev/shm nothing happens.
void refresh_statistics_page();
void remove_statistics_page();
// After an exec that failed, for which it was removed: there is one again at the next housekeeping.
void remake_statistics_page();
// In the child of a fork: it gets a page of its own at its first housekeeping.
void leave_statistics_page();

}  // namespace numalloc
