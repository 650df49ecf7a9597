// A touch that takes the system long: the made-up counter advances at the touch, in a signal handler, and by what clearing takes
// after that.
#include "os/huge_page_cost.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include "os/memory.h"

namespace {

std::uint64_t now, touch_takes, clearing_takes;  // ticks, a million a millisecond
bool touched;

}  // namespace

// The linker's names for what the sources call os::ticks() and os::ticks_a_millisecond().
extern "C" std::uint64_t __wrap__ZN8numalloc2os19ticks_a_millisecondEv() { return 1'000'000; }
extern "C" std::uint64_t __wrap__ZN8numalloc2os5ticksEv() {
    const std::uint64_t result = now;
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

// `clearing`: of the 32 KiB that are cleared to compare, 1/64 of the page.
bool is_dear(std::uint64_t touch, std::uint64_t clearing) {
    touch_takes = touch;
    clearing_takes = clearing;
    touched = false;
    void* const page = os::hold(os::huge_page, os::huge_page);
    struct sigaction mine {}, before {};
    mine.sa_sigaction = on_first_touch;
    mine.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &mine, &before);
    const bool dear = os::touch_is_dear(page);
    sigaction(SIGSEGV, &before, nullptr);
    EXPECT_TRUE(touched);
    EXPECT_EQ(*static_cast<char*>(page), 0);
    os::unmap(page, os::huge_page);
    return dear;
}

TEST(HugePageCost, ATouchThatTakesLongIsDear) { EXPECT_TRUE(is_dear(4'000'000, 4'000)); }

TEST(HugePageCost, OneThatTakesWhatClearingTakesIsNot) { EXPECT_FALSE(is_dear(300'000, 4'000)); }

// Below a millisecond none is dear, however fast the processor clears.
TEST(HugePageCost, AShortOneIsNotWhateverClearingTakes) {
    EXPECT_FALSE(is_dear(1'000'000, 10));
    EXPECT_TRUE(is_dear(1'000'001, 10));
}

// In emulation everything takes long: eight times what clearing the whole page takes.
TEST(HugePageCost, ALongOneIsNotWhereClearingTakesLongToo) {
    EXPECT_FALSE(is_dear(8 * 64 * 100'000, 100'000));
    EXPECT_TRUE(is_dear(8 * 64 * 100'000 + 1, 100'000));
}

}  // namespace
}  // namespace numalloc
