// The memory limit of the process's cgroup, as containers and services have one, and how much of it is in use. Beyond
// it the kernel reclaims what it can, and then kills.
//
//               limit                    in use
//   cgroup v2   memory.max               memory.current, less active_file, inactive_file and slab_reclaimable
//   cgroup v1   memory.limit_in_bytes    memory.usage_in_bytes, less total_active_file and total_inactive_file
//                                        of memory.stat
//
// Not anon of memory.stat: the kernel may bring that up to date some MiB late for each CPU.
//
// Every parent of the cgroup may have a limit: the lowest counts. In a container's own view of the cgroups the root is
// its cgroup.
#pragma once

#include "base/text.h"
#include "os/sysfs.h"

namespace numalloc::os {

class MemoryLimit {
public:
    static constexpr Bytes none = 0;

    // Finds the cgroup of the process with the lowest limit. Returns that (bytes), or `none` if there is no limit or it
    // cannot be read. Called once.
    Bytes find(const SysReader& reader);

    struct Usage {
        Bytes limit = none;
        Bytes used = 0;  // without cached files and what else the kernel reclaims first
    };
    // Reads both of that cgroup now: the limit may have been changed. false if they cannot be read.
    bool read(const SysReader& reader, Usage& usage) const;

private:
    using Path = Text<1024>;
    struct Scratch;

    void find_in(const SysReader& reader, Scratch& scratch, const char* root, const char* path, bool second);
    void try_folder(const SysReader& reader, Scratch& scratch, const char* root, const char* path, std::size_t length);
    bool read_bytes(const SysReader& reader, Scratch& scratch, const char* file, Bytes& bytes) const;

    Bytes bytes_ = none;   // these three: constant after find()
    bool second_ = false;  // cgroup v2
    Path folder_;
};

}  // namespace numalloc::os
