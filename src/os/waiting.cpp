#include "os/waiting.h"

#include <dlfcn.h>
#include <elf.h>
#include <gnu/libc-version.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/uio.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <ctime>

#include "base/bits.h"
#include "base/text.h"
#include "os/affinity.h"
#include "os/memory.h"
#include "os/syscall.h"
#include "os/sysfs.h"

#if defined(DLFO_EH_SEGMENT_TYPE)
// glibc 2.35 and later find an object by an address in it, without a lock.
extern "C" int _dl_find_object(void* address, dl_find_object* result) __attribute__((weak));
#endif

namespace numalloc::os {

namespace {

// A system call in which a thread is, as the kernel says it.
struct Call {
    long number = -1;
    std::uint64_t argument[6] = {};
    Address stack = 0;
    Address program_counter = 0;
};

using Path = Text<64>;

Path file_of(int thread, const char* name) {
    Path path;
    path << "/proc/self/task/" << thread << "/" << name;
    return path;
}

// 16 where it is none.
unsigned digit_of(char c) {
    return static_cast<unsigned>(c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : 16);
}

// The next number, "0x" in front of hexadecimal ones.
bool read_number(const char*& at, std::uint64_t& number) {
    while (*at == ' ') ++at;
    const bool hexadecimal = at[0] == '0' && at[1] == 'x';
    if (hexadecimal) at += 2;
    const char* const begin = at;
    for (number = 0;; ++at) {
        const unsigned digit = digit_of(*at);
        if (digit >= (hexadecimal ? 16U : 10U)) return at != begin;
        number = number * (hexadecimal ? 16 : 10) + digit;
    }
}

// false where the thread runs, or sleeps outside of system calls.
bool read_call(int thread, Call& call) {
    char text[256];
    if (read_file(file_of(thread, "syscall").c_str(), text, sizeof text) <= 0) return false;
    const char* at = text;
    std::uint64_t number;
    if (!read_number(at, number)) return false;
    call.number = static_cast<long>(number);
    for (std::uint64_t& argument : call.argument)
        if (!read_number(at, argument)) return false;
    return read_number(at, call.stack) && read_number(at, call.program_counter);
}

// Calls in which threads wait for something to do. Those that change the blocked signals meanwhile are not
// among them, nor any in which another program counter may be at work on the thread's memory (vfork).
bool only_waits(const Call& call) {
    switch (call.number) {
    case SYS_futex:
    case SYS_nanosleep:
    case SYS_clock_nanosleep:
    case SYS_read:
    case SYS_readv:
    case SYS_recvfrom:
    case SYS_recvmsg:
    case SYS_recvmmsg:
    case SYS_accept:
    case SYS_accept4:
    case SYS_semtimedop:
    case SYS_semop:
    case SYS_msgrcv:
    case SYS_mq_timedreceive:
    case SYS_io_getevents:
#if defined(SYS_poll)
    case SYS_poll:
    case SYS_select:
    case SYS_epoll_wait:
    case SYS_pause:
#endif
        return true;
    case SYS_ppoll: return call.argument[3] == 0;
    case SYS_epoll_pwait: return call.argument[4] == 0;
    case SYS_pselect6: return call.argument[5] == 0;
    default: return false;
    }
}

struct Range {
    Address begin = 0;
    Address end = 0;
    bool has(Address a) const { return a - begin < end - begin; }
};

// libc as it is mapped. Nothing where nobody tells, or where we are a part of the same file: a static program.
Range find_libc() {
#if defined(DLFO_EH_SEGMENT_TYPE)
    dl_find_object found;
    void* const in_libc = reinterpret_cast<void*>(&gnu_get_libc_version);
    if (_dl_find_object == nullptr || _dl_find_object(in_libc, &found) != 0) return {};
    const Range object{address_of(found.dlfo_map_start), address_of(found.dlfo_map_end)};
    if (!object.has(address_of(reinterpret_cast<const void*>(&find_libc)))) return object;
#endif
    return {};
}

// The vDSO, where it has the end of handlers.
Range find_kernels_page() {
#if defined(__aarch64__)
    const int kept = errno;
    const Address begin = getauxval(AT_SYSINFO_EHDR);
    errno = kept;
    return begin == 0 ? Range{} : Range{begin, begin + page_size()};
#else
    return {};
#endif
}

// What the kernel says of the process is what the program was told of itself. Not under an emulator.
bool is_as_told() {
    constexpr unsigned most = 64;
    std::uint64_t pairs[2 * most] = {};
    const long bytes = read_file(file_of(thread_id(), "auxv").c_str(), reinterpret_cast<char*>(pairs), sizeof pairs);
    bool same = false;
    const int kept = errno;
    for (long i = 0; 2 * (i + 1) * static_cast<long>(sizeof(std::uint64_t)) <= bytes && pairs[2 * i] != AT_NULL; ++i) {
        const std::uint64_t kind = pairs[2 * i];
        if (kind != AT_PHDR && kind != AT_ENTRY && kind != AT_RANDOM) continue;
        same = getauxval(kind) == pairs[2 * i + 1];
        if (!same) break;
    }
    errno = kept;
    return same;
}

// SIG_DFL and SIG_IGN as numbers.
constexpr std::uint64_t default_action = 0;
constexpr std::uint64_t ignored_signal = 1;

constexpr std::uint64_t bit_of(int signal) { return std::uint64_t{1} << (signal - 1); }
// What a thread does to itself: no function of ours raises them. Runtimes' handlers of crashes often leave them unblocked.
constexpr std::uint64_t faults = bit_of(SIGSEGV) | bit_of(SIGBUS) | bit_of(SIGFPE) | bit_of(SIGILL) | bit_of(SIGABRT);

enum class Sight : int { unknown, none, looking, clear };
std::atomic<Sight> sight{Sight::unknown};
Range libc;
Range kernels_page;

bool look_once() {
    Sight known = sight.load(std::memory_order_acquire);
    if (known == Sight::unknown && sight.compare_exchange_strong(known, Sight::looking, std::memory_order_acquire)) {
        libc = find_libc();
        kernels_page = find_kernels_page();
        known = libc.end != 0 && is_as_told() ? Sight::clear : Sight::none;
        sight.store(known, std::memory_order_release);
    }
    return known == Sight::clear;
}

// Of a thread of this process, in nanoseconds. Negative where nobody tells.
std::int64_t processor_time(int thread) {
    constexpr long scheduled_of_thread = 6;
    timespec t{};
    const long clock = static_cast<long>(static_cast<unsigned long>(~static_cast<long>(thread)) << 3 | scheduled_of_thread);
    if (failed(call(SYS_clock_gettime, static_cast<clockid_t>(clock), &t))) return -1;
    return std::int64_t{t.tv_sec} * 1000000000 + t.tv_nsec;
}

// Asleep, and in no handler.
bool sleeps_unhandled(int thread) {
    char text[4096];
    if (read_file(file_of(thread, "status").c_str(), text, sizeof text) <= 0) return false;
    const char* const state = std::strstr(text, "\nState:\t");
    const char* const blocked = std::strstr(text, "\nSigBlk:\t");
    if (state == nullptr || blocked == nullptr || state[8] != 'S') return false;
    for (const char* at = blocked + 9; digit_of(*at) < 16; ++at)
        if (*at != '0') return false;
    return true;
}

}  // namespace

void look_again_who_waits() { sight.store(Sight::unknown, std::memory_order_relaxed); }

WaitSight::WaitSight() : sees_(look_once()) {
#if defined(__SANITIZE_THREAD__)
    // What orders us and the thread that sleeps is the kernel, which this sanitizer does not see.
    sees_ = false;
#endif
    if (!sees_) return;
    for (int signal = 1; signal <= 64; ++signal) {
        // As the kernel has it: handler, flags, and two words more.
        std::uint64_t action[4] = {};
        constexpr std::size_t bytes_of_mask = 8;
        if (failed(call(SYS_rt_sigaction, signal, 0, action, bytes_of_mask))) continue;
        if (action[0] == default_action || action[0] == ignored_signal) continue;
        unsigned i = 0;
        while (i < most_ends && ends_[i] != 0 && ends_[i] != action[2]) ++i;
        if (i == most_ends) sees_ = false;
        else ends_[i] = action[2];
        if ((action[1] & SA_NODEFER) != 0 && (bit_of(signal) & faults) == 0) sees_ = false;
    }
}

bool WaitSight::is_in_a_wait(int thread, std::uint64_t& stack) const {
    Call call;
    if (!sees_ || !read_call(thread, call) || !only_waits(call) || !libc.has(call.program_counter)) return false;
    stack = call.stack;
    return true;
}

bool WaitSight::is_in_a_wait(int thread) const {
    std::uint64_t stack;
    return is_in_a_wait(thread, stack);
}

// Without an end of their own (aarch64) they return into the kernel's page.
bool WaitSight::is_end_of_handlers(std::uint64_t word) const {
    for (const std::uint64_t end : ends_)
        if (end != 0 && word == end) return true;
    return kernels_page.has(word);
}

// Whether the stack of a thread that sleeps has where a handler returns to, near its end. Read by the kernel: the thread may
// wake, and its stack go.
bool WaitSight::returns_from_a_handler(std::uint64_t stack) const {
    constexpr Bytes looked_at = 32 * KiB;
    std::uint64_t words[256];
    const int process = process_id();
    for (Bytes at = 0; at < looked_at; at += sizeof words) {
        iovec here{words, sizeof words};
        iovec there{reinterpret_cast<void*>(stack + at), sizeof words};
        const long bytes = call(SYS_process_vm_readv, process, &here, 1, &there, 1, 0);
        // Its beginning is near. Nothing at all is doubt.
        if (bytes <= 0) return at == 0;
        for (long i = 0; i < bytes / static_cast<long>(sizeof words[0]); ++i)
            if (is_end_of_handlers(words[i])) return true;
    }
    return false;
}

bool WaitSight::waits(int thread) const {
    const std::int64_t before = processor_time(thread);
    std::uint64_t stack;
    return before >= 0 && is_in_a_wait(thread, stack) && sleeps_unhandled(thread) && !returns_from_a_handler(stack) &&
           processor_time(thread) == before;
}

bool has_thread_local(int thread, const void* tls, const void* own_tls) {
    // libc keeps each thread's list of robust locks beside its thread-local memory, as far from it in each thread.
    Address list = 0;
    Address own_list = 0;
    std::size_t bytes = 0;
    if (failed(call(SYS_get_robust_list, thread, &list, &bytes))) return false;
    if (failed(call(SYS_get_robust_list, 0, &own_list, &bytes))) return false;
    return list != 0 && list - address_of(tls) == own_list - address_of(own_tls);
}

}  // namespace numalloc::os
