// fork at any moment in a program whose other threads allocate, free, start and end. The child
// allocates and frees what the parent had, starts threads, forks again, and must end in time: a
// lock that the fork caught held shows as a child that hangs.
// NUMALLOC_TEST_FORKS sets the number of forks.
#include <malloc.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <atomic>
#include <csignal>
#include <ctime>
#include <thread>
#include <vector>

#include "check.h"

namespace {

using testing_support::Random;

std::atomic<bool> stop{false};
std::atomic<long> allocations{0};
constexpr std::size_t shared_slots = 256;
std::atomic<unsigned char*> shared[shared_slots];

std::size_t draw(Random& random) {
    const auto die = random.below(100);
    return die < 80 ? random.below(1024) + 1 : die < 97 ? random.below(60000) + 1 : random.below(3000000) + 1;
}

void work(std::uint64_t seed, long rounds) {
    Random random(seed);
    std::vector<unsigned char*> own(64);
    for (long i = 0; (rounds == 0 && !stop.load(std::memory_order_relaxed)) || i < rounds; ++i) {
        auto*& p = own[random.below(own.size())];
        if (p != nullptr) {
            // Half the frees are of another thread's blocks.
            if (random.below(2)) p = shared[random.below(shared_slots)].exchange(p);
            free(p);
            p = nullptr;
        } else {
            const std::size_t size = draw(random);
            p = static_cast<unsigned char*>(random.below(8) ? malloc(size) : calloc(1, size));
            CHECK(p != nullptr);
            p[0] = p[size - 1] = static_cast<unsigned char>(i);
        }
        if (i % 64 == 0) allocations.fetch_add(64, std::memory_order_relaxed);
    }
    for (unsigned char* p : own) free(p);
}

void churn(std::uint64_t seed) {
    for (std::uint64_t i = 0; !stop.load(std::memory_order_relaxed); ++i) std::thread(work, seed + i, 200).join();
}

[[noreturn]] void child(std::uint64_t seed, int depth) {
    alarm(600);  // nothing is left behind, even if the parent dies
    Random random(seed);
    work(seed, 300);
    // What the parent's threads owned can be freed and reused.
    for (std::size_t i = 0; i < shared_slots; ++i) {
        if (unsigned char* p = shared[i].exchange(nullptr)) free(p);
    }
    if (random.below(4) == 0) {
        std::thread a(work, seed + 1, 300), b(work, seed + 2, 300);
        a.join();
        b.join();
    }
    if (random.below(8) == 0) malloc_trim(0);
    if (depth < 2 && random.below(4) == 0) {
        const pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) child(seed * 31 + 7, depth + 1);
        int status = -1;
        CHECK(waitpid(pid, &status, 0) == pid);
        CHECK(status == 0);
    }
    work(seed + 3, 100);
    _exit(0);
}

// False when the child has not ended in time.
bool wait_for(pid_t pid, int* status) {
    const int fd = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
    if (fd >= 0) {
        pollfd event{fd, POLLIN, 0};
        const int ready = poll(&event, 1, 600000);
        close(fd);
        if (ready == 0) return false;
    }
    return waitpid(pid, status, 0) == pid;
}

}  // namespace

int main() {
    testing_support::require_library();
    const long forks = testing_support::number_from_environment("NUMALLOC_TEST_FORKS",
                                                                std::getenv("NUMALLOC_TEST_LONG") ? 50000 : 2000);
    const auto seed =
        static_cast<std::uint64_t>(testing_support::number_from_environment("NUMALLOC_TEST_SEED", getpid()));
    std::printf("NUMALLOC_TEST_SEED=%llu\n", static_cast<unsigned long long>(seed));
    std::fflush(stdout);
    std::vector<std::thread> threads;
    for (std::uint64_t i = 0; i < 3; ++i) threads.emplace_back(work, seed + i, 0);
    threads.emplace_back(churn, seed + 100);

    // Forks from main and from a thread of its own at once.
    std::atomic<long> left{forks};
    auto forker = [&](std::uint64_t from) {
        Random random(from);
        for (std::uint64_t i = 0; left.fetch_sub(1) > 0; ++i) {
            // Not always at the same place of the others' work.
            for (auto spin = random.below(3000); spin > 0; --spin) __asm__ volatile("");
            free(malloc(draw(random)));
            const pid_t pid = fork();
            CHECK(pid >= 0);
            if (pid == 0) child(from + i * 97, 0);
            int status = -1;
            if (!wait_for(pid, &status)) {
                std::fprintf(stderr, "child %d hangs (%ld forks were left)\n", pid, left.load());
                if (std::getenv("NUMALLOC_TEST_KEEP_HUNG")) pause();
                kill(pid, SIGKILL);
                _exit(1);
            }
            if (status != 0) {
                std::fprintf(stderr, "child ended with status %#x (%ld forks were left)\n",
                             static_cast<unsigned>(status), left.load());
                _exit(1);
            }
        }
    };
    std::thread second(forker, seed + 5000);
    forker(seed + 6000);
    second.join();
    stop = true;
    for (std::thread& t : threads) t.join();
    for (auto& slot : shared) free(slot.load());
    std::printf("%ld forks among %ld allocations\n", forks, allocations.load());
    CHECK(allocations.load() > 1000);
}
