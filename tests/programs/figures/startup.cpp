// What the library costs a program that does nothing: `true` with and without it, in turn, many
// times; medians of wall time and of resident memory. Bounds: 1 ms and 1 MiB above glibc's.
// startup LIBRARY [RUNS]
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <algorithm>
#include <ctime>
#include <string>
#include <vector>

#include "check.h"

namespace {

double now_us() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<double>(t.tv_sec) * 1e6 + static_cast<double>(t.tv_nsec) / 1e3;
}

struct Cost {
    std::vector<double> wall_us, cpu_us, resident_kib;
};

// By vfork, so that this program's own size costs nothing.
void measure(Cost& cost, char* const* environment) {
    char* const arguments[] = {const_cast<char*>("true"), nullptr};
    const double start = now_us();
    const pid_t pid = vfork();
    CHECK(pid >= 0);
    if (pid == 0) {
        execve("/bin/true", arguments, environment);
        _exit(127);
    }
    int status = -1;
    rusage usage{};
    CHECK(wait4(pid, &status, 0, &usage) == pid && status == 0);
    cost.wall_us.push_back(now_us() - start);
    cost.cpu_us.push_back(static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) +
                          1e6 * static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec));
}

// The peak as the program itself sees it at its end: `cat` of its own status.
void measure_resident(Cost& cost, char* const* environment) {
    char* const arguments[] = {const_cast<char*>("cat"), const_cast<char*>("/proc/self/status"), nullptr};
    int ends[2];
    CHECK(pipe(ends) == 0);
    const pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        dup2(ends[1], 1);
        close(ends[0]);
        execve("/bin/cat", arguments, environment);
        _exit(127);
    }
    close(ends[1]);
    std::string text;
    char piece[4096];
    for (ssize_t n; (n = read(ends[0], piece, sizeof piece)) > 0;) text.append(piece, static_cast<std::size_t>(n));
    close(ends[0]);
    int status = -1;
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    const auto at = text.find("VmHWM:");
    CHECK(at != std::string::npos);
    cost.resident_kib.push_back(std::strtod(text.c_str() + at + 6, nullptr));
}

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
    CHECK(argc >= 2);
    const int runs = argc > 2 ? std::atoi(argv[2]) : 400;
    std::string preload = std::string("LD_PRELOAD=") + argv[1];
    if (!testing_support::any_allocator()) CHECK(access(argv[1], R_OK) == 0);
    char* const bare[] = {const_cast<char*>("PATH=/bin:/usr/bin"), nullptr};
    char* const loaded[] = {const_cast<char*>("PATH=/bin:/usr/bin"), preload.data(), nullptr};
    Cost without, with;
    for (int i = 0; i < 10; ++i) measure(without, bare), measure(with, loaded);  // caches
    without = with = Cost{};
    for (int i = 0; i < runs; ++i) {
        // Who goes first changes, so that neither gains by it.
        if (i % 2) measure(without, bare), measure(with, loaded);
        else measure(with, loaded), measure(without, bare);
        if (i % 8 == 0) measure_resident(without, bare), measure_resident(with, loaded);
    }
    const double wall = median(with.wall_us) - median(without.wall_us);
    const double resident = median(with.resident_kib) - median(without.resident_kib);
    std::printf("wall: %.0f us without, %.0f with, %.0f above (bound 1000)\n", median(without.wall_us),
                median(with.wall_us), wall);
    std::printf("cpu:  %.0f us without, %.0f with\n", median(without.cpu_us), median(with.cpu_us));
    std::printf("resident: %.0f KiB without, %.0f with, %.0f above (bound 1024)\n", median(without.resident_kib),
                median(with.resident_kib), resident);
    // The library must have been there: a name that cannot be preloaded costs nothing either.
    CHECK(testing_support::any_allocator() || resident > 0);
    return wall < 1000 && resident < 1024 ? 0 : 1;
}
