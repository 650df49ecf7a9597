// A touch that takes the system long, made by a signal handler that burns the thread's time.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>

#include "os/clock.h"
#include "os/huge_page_cost.h"
#include "os/memory.h"

namespace numalloc {
namespace {

std::uint64_t burned;  // nanoseconds of each first touch

void on_first_touch(int, siginfo_t* info, void*) {
    for (const std::uint64_t begin = os::thread_nanoseconds(); os::thread_nanoseconds() - begin < burned;) {}
    void* const page = reinterpret_cast<void*>(align_down(address_of(info->si_addr), os::huge_page));
    if (mprotect(page, os::huge_page, PROT_READ | PROT_WRITE) != 0) _exit(1);
}

bool is_dear(std::uint64_t nanoseconds) {
    burned = nanoseconds;
    void* const page = os::hold(os::huge_page, os::huge_page);
    struct sigaction mine {}, before {};
    mine.sa_sigaction = on_first_touch;
    mine.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &mine, &before);
    const bool dear = os::touch_is_dear(page);
    sigaction(SIGSEGV, &before, nullptr);
    EXPECT_EQ(*static_cast<char*>(page), 0);
    os::unmap(page, os::huge_page);
    return dear;
}

TEST(HugePageCost, ATouchThatTakesLongIsDear) { EXPECT_TRUE(is_dear(200'000'000)); }

TEST(HugePageCost, OneThatTakesWhatClearingTakesIsNot) { EXPECT_FALSE(is_dear(100'000)); }

}  // namespace
}  // namespace numalloc
