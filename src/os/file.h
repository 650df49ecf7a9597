// Files that are written, by their names, and memory that other processes may read. Nothing here allocates; errno is
// kept.
#pragma once

#include "base/bits.h"

namespace numalloc::os {

constexpr Bytes longest_path = 4096;

// For appending; made with mode 0666 less the umask where there is none. A descriptor, or -errno.
long open_to_append(const char* path);
// The same, and what was in it is gone.
long create_file(const char* path);
// Writes all of it. 0 or -errno; no signal comes of it.
long write_all(long fd, const char* text, Bytes length);
void close_file(long fd);
constexpr long standard_error = 2;
// Another descriptor of the same file, for who writes after the program has closed it (coreutils do, as they end). A
// high one, so that the program's own have the numbers that they would have. -errno where there is none left.
long copy_of(long fd);

// Which file a descriptor leads to: its number may be another file's by now. `found` is false where there is none.
struct FileIdentity {
    bool found = false;
    std::uint64_t device = 0;
    std::uint64_t inode = 0;
    bool operator==(const FileIdentity&) const = default;
};
FileIdentity identity_of(long fd);

// A new file of zeros, readable by this user only, in memory that this process shares with its readers. One of the same
// name that the user left behind goes. nullptr where that cannot be.
void* share_memory(const char* path, Bytes bytes);
void remove_file(const char* path);

unsigned user_id();
// When the process began, as /proc/self/stat says (its field 22: clock ticks since boot); 0 where it does not.
std::uint64_t process_start();

}  // namespace numalloc::os
