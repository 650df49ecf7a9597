// The fixture of the tests on real threads: each CPU of this machine, up to four, is a node of its
// own. Memory cannot be placed there, but threads can, and everything that hides it is at work.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>
#include <wordexp.h>

#include <atomic>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "api/interpose/fork_handlers.h"
#include "options/options.h"
#include "placement/placement.h"
#include "support/made_up_machine.h"

namespace numalloc {
namespace {

using numalloc::testing::MadeUpMachine;
using Mask = cpu_set_t;

[[maybe_unused]] std::vector<int> cpus_of(const Mask& mask) {
    std::vector<int> result;
    for (int c = 0; c < CPU_SETSIZE; ++c)
        if (CPU_ISSET(c, &mask)) result.push_back(c);
    return result;
}
[[maybe_unused]] std::vector<int> seen(pid_t tid = 0) {
    Mask mask;
    EXPECT_EQ(sched_getaffinity(tid, sizeof mask, &mask), 0);
    return cpus_of(mask);
}
[[maybe_unused]] std::vector<int> seen(pthread_t thread) {
    Mask mask;
    EXPECT_EQ(pthread_getaffinity_np(thread, sizeof mask, &mask), 0);
    return cpus_of(mask);
}
// The kernel's answer, which syscall() does not give.
[[maybe_unused]] std::vector<int> in_kernel(pid_t tid = 0) {
    Mask mask;
    CPU_ZERO(&mask);
    EXPECT_GT(os::get_affinity(tid, sizeof mask, &mask), 0);
    return cpus_of(mask);
}
// What syscall() answers.
[[maybe_unused]] std::vector<int> by_syscall(pid_t tid = 0) {
    Mask mask;
    CPU_ZERO(&mask);
    EXPECT_GT(syscall(SYS_sched_getaffinity, tid, sizeof mask, &mask), 0);
    return cpus_of(mask);
}
// By a system call that the library does not see; from another process, too.
[[maybe_unused]] bool set_in_kernel(const Mask& mask, pid_t tid = 0) {
    return os::set_affinity(tid, sizeof mask, &mask) == 0;
}
[[maybe_unused]] Mask one(int cpu) {
    Mask mask;
    CPU_ZERO(&mask);
    CPU_SET(cpu, &mask);
    return mask;
}
[[maybe_unused]] int tid() { return static_cast<int>(syscall(SYS_gettid)); }

std::vector<int> all;  // this process's CPUs at start
Mask all_mask;

// The nodes are the CPUs: node n is all[n].
[[maybe_unused]] unsigned home() { return placement::home_node().value; }

class Threads : public ::testing::Test {
protected:
    static void SetUpTestSuite() { start("interleave"); }
    static void start(const char* binding) {
        sched_getaffinity(0, sizeof all_mask, &all_mask);
        all = cpus_of(all_mask);
        if (all.size() > 4) all.resize(4);
        if (all.size() < 2) return;
        CPU_ZERO(&all_mask);
        for (int c : all) CPU_SET(c, &all_mask);
        ASSERT_TRUE(set_in_kernel(all_mask));

        MadeUpMachine machine;
        std::string nodes = "0-" + std::to_string(all.size() - 1);
        machine.nodes_file("online", nodes).nodes_file("has_memory", nodes);
        for (unsigned n = 0; n < all.size(); ++n) machine.node(n, std::to_string(all[n]), "10 10 10 10");
        setenv("NUMALLOC_BINDING", binding, 1);
        init_options();
        os::init_topology(machine.reader(), machine.task_reader());
        placement::init(true);
        ASSERT_TRUE(placement::active());
        api::register_fork_handlers();
        ASSERT_EQ(in_kernel(), all) << "alone, main is not bound";
        std::thread([] {}).join();
    }
    void SetUp() override {
        if (all.size() < 2) GTEST_SKIP() << "one CPU";
    }
};

}  // namespace
}  // namespace numalloc
