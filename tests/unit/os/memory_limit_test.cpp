#include "os/memory_limit.h"

#include <gtest/gtest.h>

#include "support/made_up_machine.h"

namespace numalloc::os {
namespace {

using numalloc::testing::MadeUpMachine;

Bytes limit_of(MadeUpMachine machine) { return MemoryLimit().find(machine.reader()); }

MadeUpMachine second(const std::string& path) { return MadeUpMachine().file("/proc/self/cgroup", "0::" + path); }
MadeUpMachine first(const std::string& path) {
    return MadeUpMachine().file("/proc/self/cgroup", "9:cpuset:/\n4:cpu,memory:" + path + "\n1:memoryless:/x\n0::/y");
}

TEST(MemoryLimit, IsThatOfTheCgroup) {
    EXPECT_EQ(limit_of(second("/a/b").file("/sys/fs/cgroup/a/b/memory.max", "268435456")), 256 * MiB);
    EXPECT_EQ(limit_of(first("/a").file("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "1048576")), 1 * MiB);
}

TEST(MemoryLimit, IsTheLowestOfAllParents) {
    MadeUpMachine machine = second("/a/b/c");
    machine.file("/sys/fs/cgroup/a/b/c/memory.max", "max").file("/sys/fs/cgroup/a/b/memory.max", "3000");
    EXPECT_EQ(limit_of(machine), 3000u);
    EXPECT_EQ(limit_of(machine.file("/sys/fs/cgroup/a/memory.max", "2000")), 2000u);
    EXPECT_EQ(limit_of(machine.file("/sys/fs/cgroup/a/b/c/memory.max", "2500")), 2000u);
}

// In a container /proc may show the path on the host, while the root of the cgroups is the container's.
TEST(MemoryLimit, IsThatOfTheRootWhereThePathIsTheHosts) {
    EXPECT_EQ(limit_of(second("/").file("/sys/fs/cgroup/memory.max", "4096")), 4096u);
    EXPECT_EQ(limit_of(first("/docker/1").file("/sys/fs/cgroup/memory/memory.limit_in_bytes", "4096")), 4096u);
    EXPECT_EQ(limit_of(second("/a").file("/sys/fs/cgroup/unified/a/memory.max", "4096")), 4096u);
}

TEST(MemoryLimit, IsNoneWhereThereIsNone) {
    EXPECT_EQ(limit_of({}), MemoryLimit::none);
    EXPECT_EQ(limit_of(second("/a").file("/sys/fs/cgroup/a/memory.max", "max")), MemoryLimit::none);
    EXPECT_EQ(limit_of(first("/").file("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712")),
              MemoryLimit::none);
    EXPECT_EQ(limit_of(MadeUpMachine().file("/proc/self/cgroup", "no colon")), MemoryLimit::none);
    EXPECT_EQ(limit_of(second("/" + std::string(5000, 'a'))), MemoryLimit::none);
}

MemoryLimit::Usage usage_of(const MemoryLimit& limit, MadeUpMachine& machine) {
    MemoryLimit::Usage usage;
    EXPECT_TRUE(limit.read(machine.reader(), usage));
    return usage;
}

TEST(MemoryLimit, InUseIsWhatTheKernelDoesNotReclaimFirst) {
    MadeUpMachine machine = second("/a");
    machine.file("/sys/fs/cgroup/a/memory.max", "1000000").file("/sys/fs/cgroup/a/memory.current", "500000");
    MemoryLimit limit;
    limit.find(machine.reader());
    EXPECT_EQ(usage_of(limit, machine).used, 500000u);
    machine.file("/sys/fs/cgroup/a/memory.stat",
                 "anon 1\ninactive_file 100000\nactive_file 50000\nfile 170000\nslab_reclaimable 20000");
    EXPECT_EQ(usage_of(limit, machine).used, 330000u);
    machine.file("/sys/fs/cgroup/a/memory.current", "120000").file("/sys/fs/cgroup/a/memory.max", "2000");
    EXPECT_EQ(usage_of(limit, machine).used, 0u);
    EXPECT_EQ(usage_of(limit, machine).limit, 2000u);
    machine.file("/sys/fs/cgroup/a/memory.max", "max");
    EXPECT_EQ(usage_of(limit, machine).limit, MemoryLimit::none);
}

TEST(MemoryLimit, InUseOfTheFirstVersion) {
    MadeUpMachine machine = first("/a");
    machine.file("/sys/fs/cgroup/memory/memory.limit_in_bytes", "1000000")
        .file("/sys/fs/cgroup/memory/memory.usage_in_bytes", "500000")
        .file("/sys/fs/cgroup/memory/memory.stat",
              "inactive_file 7\ntotal_inactive_file 100000\ntotal_active_file 1000");
    MemoryLimit limit;
    limit.find(machine.reader());
    EXPECT_EQ(usage_of(limit, machine).used, 399000u);
}

TEST(MemoryLimit, WhatCannotBeReadIsNoLimitOfZero) {
    MadeUpMachine machine = second("/a");
    machine.file("/sys/fs/cgroup/a/memory.max", "1000000");
    MemoryLimit limit;
    EXPECT_EQ(limit.find(machine.reader()), 1000000u);
    MemoryLimit::Usage usage;
    EXPECT_FALSE(limit.read(machine.reader(), usage));
}

}  // namespace
}  // namespace numalloc::os
