// Statistics in shared memory that other processes of the same user may read: for `numalloc stat` and `top`.
//
//   /dev/shm/numalloc-UID-PID
//
//   0    magic "NUMASTAT"                    8 bytes
//   8    version, header bytes               these and the next four are 32-bit numbers. The sizes let a
//   16   node records, bytes of one            reader of one version parse a file of another
//   24   class records, bytes of one
//   32   process start                       from /proc/PID/stat: tells apart processes with the same PID
//   40   sequence                            odd during a write: read it, copy, read it again
//   48   updated at                          nanoseconds of CLOCK_MONOTONIC
//   56   bytes of the process record, 0      32-bit numbers, as are the bytes of names
//   64   bytes of names, then names          of a node record's numbers, an empty one, of a class
//                                            record's, an empty one, of the process record's; each
//                                            ends with NUL
//        process record                      a u64 for each name; begins at a multiple of 8
//        node records                        i64 node (-1: not in use, -2: interleaved), a u64 for each name
//        class records                       u32 index of the node record, u32 object bytes, a u64 for each name
//
// One thread at a time writes the page, at housekeeping: at most 10 times a second, and at most 1/100 of the time.
#pragma once

namespace numalloc {

// Makes the page if the process has none, and updates it if it is due. Does nothing without /dev/shm.
void refresh_statistics_page();
void remove_statistics_page();
// After an exec that failed, for which the page was removed: the next housekeeping makes a new one.
void remake_statistics_page();
// In the child of a fork: its first housekeeping makes a page of its own.
void leave_statistics_page();

}  // namespace numalloc
