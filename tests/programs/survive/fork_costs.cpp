// What a fork costs in a process of 128 threads that have worked and now wait, in counts that do not depend on the
// machine's load: the page faults that parent and child have by it, and the memory whose page tables it copies.
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <climits>

#include "check.h"

// The library's, where it is loaded.
extern "C" int numalloc_node_count() __attribute__((weak));

namespace {

constexpr int threads = 128;
constexpr int rounds = 10;
pthread_barrier_t barrier;

// Every size once.
void* work(void*) {
    for (std::size_t size = 1; size <= 32768; size += size / 8 + 16) {
        void* held[4];
        for (void*& p : held) p = malloc(size);
        for (void* p : held) free(p);
    }
    pthread_barrier_wait(&barrier);
    for (;;) pause();
}

// Of the calling thread: others may be on their way to their rest.
long faults() {
    rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_minflt;
}

}  // namespace

int main() {
    testing_support::require_library();
    // A first round, so that stdio, the heap and the stack have their pages.
    std::printf("%d threads\n", threads);
    auto* const of_child =
        static_cast<long*>(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    CHECK(of_child != MAP_FAILED);
    pthread_barrier_init(&barrier, nullptr, threads + 1);
    pthread_attr_t small_stack;
    pthread_attr_init(&small_stack);
    CHECK(pthread_attr_setstacksize(&small_stack, std::max<std::size_t>(65536, PTHREAD_STACK_MIN)) == 0);
    const long before = testing_support::resident_kib();
    for (int i = 0; i < threads; ++i) {
        pthread_t thread;
        CHECK(pthread_create(&thread, &small_stack, work, nullptr) == 0);
    }
    pthread_barrier_wait(&barrier);
    const long each = (testing_support::resident_kib() - before) / threads;

    // The least of the rounds: what a fork has to cost.
    long of_parent = 1L << 40;
    *of_child = 1L << 40;
    for (int i = 0; i < rounds; ++i) {
        const long start = faults();
        const pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) {
            // A child's count begins with 0.
            free(malloc(100));
            if (const long own = faults(); own < *of_child) *of_child = own;
            _exit(0);
        }
        if (const long own = faults() - start; own < of_parent) of_parent = own;
        CHECK(waitpid(pid, nullptr, 0) == pid);
    }
    std::printf("a thread keeps %ld KiB; page faults of a fork: parent %ld, child %ld\n", each, of_parent, *of_child);
    // libc reads and writes each thread's stack in the child. Where the processor does not mark pages as used by
    // itself, as on some aarch64, that is two faults: 306 in all under glibc with pages of 64 KiB.
    CHECK(of_parent <= 30);
#if defined(__aarch64__)
    CHECK(*of_child <= 3 * threads);
#else
    CHECK(*of_child <= 2 * threads);
#endif
    // Lists keep what the thread may hold by itself, and a share of the node's budget (heap/node/list_budget.h): 20
    // MiB, or 2 MiB for each CPU, which may lie in twice as many pages. Every node that threads run on has such a
    // budget, and bags of each size class, 3 MiB of them. Of longer pages the last of each thing that a thread has is
    // used in part: its stack, its heap, its lists. The first and the last take 30 KiB.
    const long of_lists = 192 + 20 * 1024 / threads;
    const long of_cpus = 2 * 2 * 1024 * std::clamp(sysconf(_SC_NPROCESSORS_CONF) - 10, 0L, threads - 10L) / threads;
    const long of_nodes = (numalloc_node_count == nullptr ? 0 : numalloc_node_count() - 1) * (3 + 20) * 1024 / threads;
    CHECK(each <= of_lists + 30 + of_cpus + of_nodes + 8 * (sysconf(_SC_PAGESIZE) - 4096) / 1024);
}
