// Files that the library writes, its own memory as a file, and memory that other processes may read. Nothing here
// allocates; all keep errno.
#pragma once

#include "base/bits.h"

namespace numalloc::os {

constexpr Bytes longest_path = 4096;

// Opens a file for appending; creates it with mode 0666 less the umask. Returns a descriptor, or -errno.
long open_to_append(const char* path);
// Creates the file in the same way, or truncates an existing one.
long create_file(const char* path);
// Writes all `length` bytes. Returns 0 or -errno; raises no SIGPIPE and no SIGXFSZ.
long write_all(long fd, const char* text, Bytes length);
void close_file(long fd);
constexpr long standard_error = 2;
// Duplicates a descriptor, for writing after the program has closed the original (coreutils close stderr when they
// end). The copy has a high number, so that the program's own descriptors get the numbers that they would have anyway.
// Returns -errno if no descriptor is left.
long copy_of(long fd);

// Opens the process's own memory, for reads of addresses that another thread may unmap. Returns a descriptor, or
// -errno.
long open_own_memory();
// false if not all of it is mapped and readable.
bool read_own_memory(long fd, Address from, void* to, Bytes length);

// The file that a descriptor refers to: the number may refer to another file later. `found` is false if it is closed.
struct FileIdentity {
    bool found = false;
    std::uint64_t device = 0;
    std::uint64_t inode = 0;
    bool operator==(const FileIdentity&) const = default;
};
FileIdentity identity_of(long fd);

// Creates a file of zeros that only this user may read and maps it shared. Removes an old file of the same name.
// Returns nullptr on failure.
void* share_memory(const char* path, Bytes bytes);
void remove_file(const char* path);

unsigned user_id();
// Start time of the process, field 22 of /proc/self/stat: clock ticks since boot; 0 if it cannot be read.
std::uint64_t process_start();

}  // namespace numalloc::os
