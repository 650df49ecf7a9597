// Prints everything of a process that a library could leave traces in: environment, descriptors,
// signals, affinity, memory policy, huge-page setting, scheduling, limits, threads. Printed by main,
// from a thread, and by children that were exec'd from main, from a thread and from a fork's child.
// Output with and without the library must be the same.
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <thread>
#include <vector>

#include "check.h"

extern char** environ;

namespace {

// Lines of /proc/thread-self/status that a library must not change.
void print_status() {
    FILE* file = std::fopen("/proc/thread-self/status", "r");
    CHECK(file != nullptr);
    char line[4096];
    while (std::fgets(line, sizeof line, file) != nullptr)
        for (const char* start : {"Umask", "Threads", "SigQ", "SigPnd", "ShdPnd", "SigBlk", "SigIgn", "SigCgt",
                                  "CapInh", "CapPrm", "CapEff", "NoNewPrivs", "Seccomp", "CoreDumping", "THP_enabled",
                                  "Cpus_allowed", "Mems_allowed", "Speculation"})
            if (std::strncmp(line, start, std::strlen(start)) == 0 && std::strncmp(line, "SigQ", 4) != 0)
                std::fputs(line, stdout);
    std::fclose(file);
}

void print_all(const char* who) {
    std::printf("== %s\n", who);
    std::vector<std::string> variables;
    for (char** p = environ; *p != nullptr; ++p)
        if (std::strncmp(*p, "LD_PRELOAD=", 11) != 0) variables.push_back(*p);
    std::sort(variables.begin(), variables.end());
    for (const std::string& v : variables) std::printf("%s\n", v.c_str());
    std::vector<std::string> files;
    DIR* folder = opendir("/proc/self/fd");
    CHECK(folder != nullptr);
    while (const dirent* entry = readdir(folder)) files.push_back(entry->d_name);
    closedir(folder);
    std::sort(files.begin(), files.end());
    for (const std::string& f : files) std::printf("fd %s\n", f.c_str());
    print_status();
    int mode = -1;
    unsigned long nodes[16] = {};
    const long result = syscall(SYS_get_mempolicy, &mode, nodes, sizeof nodes * 8, nullptr, 0);
    std::printf("policy %ld %d %lx\n", result, mode, nodes[0]);
    std::printf("nice %d scheduler %d\n", getpriority(PRIO_PROCESS, 0), sched_getscheduler(0));
    for (int limit = 0; limit < RLIM_NLIMITS; ++limit) {
        rlimit value{};
        getrlimit(static_cast<__rlimit_resource>(limit), &value);
        std::printf("limit %d %lu %lu\n", limit, static_cast<unsigned long>(value.rlim_cur),
                    static_cast<unsigned long>(value.rlim_max));
    }
    std::fflush(stdout);
}

void exec_self(const char* who) {
    char* const arguments[] = {const_cast<char*>("traces"), const_cast<char*>(who), nullptr};
    const pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        free(malloc(1000));
        execv("/proc/self/exe", arguments);
        _exit(127);
    }
    int status = -1;
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

}  // namespace

int main(int argc, char** argv) {
    // The program starts with a clean one; with glibc alone and pages of 64 KiB it does not.
    CHECK(errno == 0 || std::getenv("NUMALLOC_TEST_ANY") != nullptr);
    testing_support::require_library();
    if (argc > 1) {
        print_all(argv[1]);
        return 0;
    }
    print_all("main at the start");
    exec_self("child of main");
    std::thread([] {
        for (int i = 0; i < 1000; ++i) free(malloc(static_cast<std::size_t>(i) * 100));
        print_all("second thread");
        exec_self("child of the second thread");
    }).join();
    std::thread([] { exec_self("child of the third thread"); }).join();
    std::fflush(stdout);
    CHECK(std::system("exec /proc/$PPID/exe 'child of system'") == 0);
    print_all("main at the end");
}
