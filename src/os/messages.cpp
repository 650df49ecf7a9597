#include "os/messages.h"

#include <linux/futex.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <ctime>

#include "base/check.h"
#include "os/signal.h"
#include "os/syscall.h"

namespace numalloc {

namespace os {

namespace {

constinit std::atomic<Output> output{nullptr};
constinit std::atomic<void*> output_argument{nullptr};
constinit std::atomic<SayStack> say_stack_of_caller{nullptr};
constinit std::atomic<std::uint32_t> stacks_being_said{0};
NUMALLOC_THREAD_LOCAL bool says_stack = false;

}  // namespace

// say() may run between these stores: it then finds no function, or a function with its own argument.
void set_output(Output take, void* argument) {
    output.store(nullptr, std::memory_order_release);
    output_argument.store(argument, std::memory_order_release);
    output.store(take, std::memory_order_release);
}

void say(const Line& line) {
    void* argument = output_argument.load(std::memory_order_acquire);
    Output take = output.load(std::memory_order_acquire);
    for (void* now; (now = output_argument.load(std::memory_order_relaxed)) != argument;) {
        argument = now;
        take = output.load(std::memory_order_acquire);
    }
    if (take != nullptr) return take(line.c_str(), argument);
    const WritesAreHarmless although_nobody_reads;
    Text<540> whole;
    whole << "numalloc: " << line.c_str() << '\n';
    const char* p = whole.c_str();
    std::size_t left = whole.size();
    while (left > 0) {
        const long n = call(SYS_write, 2, p, left);
        if (n == -EINTR) continue;
        if (n <= 0) return;
        p += n;
        left -= static_cast<std::size_t>(n);
    }
}

void set_say_caller(SayStack say_stack) { say_stack_of_caller.store(say_stack, std::memory_order_release); }

// While another thread writes its stack, this one waits until that one ends the process, at most a second: its own
// abort() would cut the stack off. It writes none itself, nor does an error inside the unwinder.
void say_caller(const char* what, Address from) {
    const SayStack say_stack = say_stack_of_caller.load(std::memory_order_acquire);
    if (say_stack == nullptr || says_stack) return;
    if (stacks_being_said.exchange(1, std::memory_order_acq_rel) != 0) {
        const timespec second{1, 0};
        call(SYS_futex, &stacks_being_said, FUTEX_WAIT_PRIVATE, 1, &second, 0, 0);
        return;
    }
    says_stack = true;
    say_stack(what, from);
    says_stack = false;
    stacks_being_said.store(0, std::memory_order_release);
}

void die(const Line& line, const char* what) {
    say(line);
    say_caller(what, 0);
    abort();
}

}  // namespace os

void assertion_failed(const char* what, const char* file, int line) {
    os::Line text;
    text << "assertion failed: " << what << " at " << file << ':' << line;
    os::die(text);
}

}  // namespace numalloc
