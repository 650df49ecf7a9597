#include "os/messages.h"

#include <atomic>
#include <csignal>
#include <cstdlib>

#include "base/check.h"
#include "os/syscall.h"

namespace numalloc {

namespace os {

namespace {

constinit std::atomic<Output> output{nullptr};
constinit std::atomic<void*> output_argument{nullptr};

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
    Text<540> whole;
    whole << "numalloc: " << line.c_str() << '\n';
    const char* p = whole.c_str();
    std::size_t left = whole.size();
    while (left > 0) {
        const long n = call(SYS_write, 2, p, left);
        if (n <= 0) return;
        p += n;
        left -= static_cast<std::size_t>(n);
    }
}

void die(const Line& line) {
    say(line);
    abort();
}

}  // namespace os

void assertion_failed(const char* what, const char* file, int line) {
    os::Line text;
    text << "assertion failed: " << what << " at " << file << ':' << line;
    os::die(text);
}

}  // namespace numalloc
