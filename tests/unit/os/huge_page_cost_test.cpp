// A touch that takes the system long: the made-up clock advances at the touch, in a signal handler, and by what
// clearing takes after that.
#include "os/huge_page_cost.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include "os/memory.h"

namespace {

std::uint32_t now, touch_takes, clearing_takes;  // milliseconds
bool touched;

}  // namespace

// The linker's name for what the sources call os::milliseconds().
extern "C" std::uint32_t __wrap__ZN8numalloc2os12millisecondsEv() {
    const std::uint32_t result = now;
    if (touched) now += clearing_takes;
    return result;
}

namespace numalloc {
namespace {

void on_first_touch(int, siginfo_t* info, void*) {
    now += touch_takes;
    touched = true;
    void* const page = reinterpret_cast<void*>(align_down(address_of(info->si_addr), os::huge_page));
    if (mprotect(page, os::huge_page, PROT_READ | PROT_WRITE) != 0) _exit(1);
}

// `clearing`: of as much as a huge page.
bool is_dear(std::uint32_t touch, std::uint32_t clearing) {
    touch_takes = touch;
    clearing_takes = clearing;
    touched = false;
    void* const page = os::hold(os::huge_page, os::huge_page);
    struct sigaction mine{}, before{};
    mine.sa_sigaction = on_first_touch;
    mine.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &mine, &before);
    const bool dear = os::touch_is_dear(page, 32 * KiB);
    sigaction(SIGSEGV, &before, nullptr);
    EXPECT_TRUE(touched);
    EXPECT_EQ(*static_cast<char*>(page), 0);
    os::unmap(page, os::huge_page);
    return dear;
}

TEST(HugePageCost, ATouchThatTakesLongIsDear) { EXPECT_TRUE(is_dear(4, 0)); }

// Below two milliseconds none is dear: the clock may have moved on by chance.
TEST(HugePageCost, AShortOneIsNot) {
    EXPECT_FALSE(is_dear(0, 0));
    EXPECT_FALSE(is_dear(1, 0));
    EXPECT_TRUE(is_dear(2, 0));
}

// In emulation everything takes long: eight times what clearing the whole page takes.
TEST(HugePageCost, ALongOneIsNotWhereClearingTakesLongToo) {
    EXPECT_FALSE(is_dear(8 * 6, 6));
    EXPECT_TRUE(is_dear(8 * 6 + 1, 6));
}

TEST(HugePageCost, TheClockMayWrapMeanwhile) {
    now = 0xFFFFFFFE;
    EXPECT_TRUE(is_dear(4, 0));
    now = 0xFFFFFFFE;
    EXPECT_FALSE(is_dear(4, 4));
}

}  // namespace
}  // namespace numalloc
