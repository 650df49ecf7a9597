#include "api/malloc/process_profile.h"

#include <dlfcn.h>
#include <gnu/libc-version.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "api/export.h"
#include "heap/guarded/guarded.h"
#include "heap/profile/busy.h"
#include "heap/profile/profile.h"
#include "heap/profile/say_stack.h"
#include "heap/profile/stack.h"
#include "heap/profile/write.h"
#include "heap/thread/deferred.h"
#include "numalloc/numalloc.h"
#include "options/options.h"
#include "os/affinity.h"
#include "os/brief_wait.h"
#include "os/ending_signals.h"
#include "os/messages.h"

namespace numalloc::api {

namespace {

int first_process = 0;

void complain(const char* path, long error) {
    os::Line line;
    line << "the heap profile could not be written to " << path << ": error " << static_cast<int>(-error);
    os::say(line);
}

// A child of fork() has a profile of its own, which begins with its parent's. It writes a file only if the pattern has
// a %p.
void write_as_the_option_says(const char* why) {
    if (!profile::on() || options().profile_file == nullptr) return;
    const char* const pattern = options().profile_file;
    if (os::process_id() != first_process && !profile::names_process(pattern)) return;
    profile::Path path;
    if (!profile::make_path(pattern, path)) return complain(pattern, -ENAMETOOLONG);
    if (const long error = profile::write(path.text, why); error != 0) complain(path.text, error);
}

// The process in which a thread writes the last profile; with `written`, has written it and is about to end the
// process. A child of vfork(), which shares this word, is another process.
constinit std::atomic<std::uint32_t> last_of{0};
constexpr std::uint32_t written = std::uint32_t{1} << 31;
NUMALLOC_THREAD_LOCAL bool writes_last = false;

std::uint32_t this_process() { return static_cast<std::uint32_t>(os::process_id()); }

// false if a thread is writing the last profile, because two would write into one file, or has written it; only the
// exit goes on after that (wait_for_the_end()).
bool write_last(const char* why, bool at_exit = false) {
    const std::uint32_t process = this_process();
    std::uint32_t now = last_of.load(std::memory_order_relaxed);
    do
        if (now == process || (now == (process | written) && !at_exit)) return false;
    while (!last_of.compare_exchange_weak(now, process, std::memory_order_acq_rel));
    writes_last = true;
    write_as_the_option_says(why);
    writes_last = false;
    last_of.store(process | written, std::memory_order_release);
    return true;
}

constexpr std::uint32_t sleeps_for_profile = 10'000;  // about ten seconds
constexpr std::uint32_t sleeps_for_end = 100;

// A thread that a signal has made write ends the process then. Not the first process of a container, which the kernel
// does not end so.
void wait_for_the_end() {
    std::uint32_t sleeps = sleeps_for_profile;
    (void)os::wait_for_change(last_of, this_process(), sleeps);
    sleeps = sleeps_for_end;
    (void)os::wait_for_change(last_of, this_process() | written, sleeps);
}

// Nothing is written after _exit(), exec, or a signal other than those of profile_signals.
__attribute__((destructor)) void write_at_exit() {
    if (!profile::on()) return;
    (void)try_catch_up();  // frees that threads recorded during a fork
    // In a handler that interrupted the writer.
    if (writes_last) return;
    wait_for_the_end();
    if (write_last("at exit", true)) last_of.store(0, std::memory_order_release);
}

// A static program's unwinder may be used from its constructors on (stack.h).
#if defined(NUMALLOC_STATIC)
constinit std::atomic<bool> constructed{false}, need_stacks{false};
__attribute__((constructor)) void begin_stacks() {
    constructed.store(true, std::memory_order_seq_cst);
    if (need_stacks.load(std::memory_order_seq_cst)) profile::allow_stacks(nullptr);
}
void allow_stacks() {
    need_stacks.store(true, std::memory_order_seq_cst);
    if (constructed.load(std::memory_order_seq_cst)) profile::allow_stacks(nullptr);
}
#else
// By name, because a reference would keep the library from an older glibc, where a look-up would fail and call malloc.
void allow_stacks() {
    const bool has = strverscmp(gnu_get_libc_version(), "2.35") >= 0;
    profile::allow_stacks(has ? reinterpret_cast<profile::FindObject>(dlsym(RTLD_DEFAULT, "_dl_find_object"))
                              : nullptr);
}
#endif

constinit std::atomic<int> ending_by{0};

void write_and_end() {
    const int signal = ending_by.load(std::memory_order_relaxed);
    if (write_last("when a signal ended the program")) os::end_by(signal);
}

// A thread that is working on the profile ends the process when it is done.
bool write_before_end(int signal) {
    ending_by.store(signal, std::memory_order_relaxed);
    if (profile::put_off(write_and_end)) return false;
    return write_last("when a signal ended the program");
}

}  // namespace

void start_profile() {
    first_process = os::process_id();
    os::Line line;
    if (!profile::start(options().profile)) {
        line << "no memory for the heap profile";
        os::say(line);
        return;
    }
    if (options().profile_signals) os::before_ending_signals(write_before_end);
    allow_stacks();
    if (profile::has_unwinder() || !options().verbose) return;
    line << "the heap profile has no stacks: preload libgcc_s.so.1 as well";
    os::say(line);
}

void start_guarded() {
    os::Line line;
    if (profile::on()) line << "nothing is guarded while the heap profile is on";
    else if (!guarded::start(options().guarded)) line << "no memory for guarded objects";
    if (line.size() > 0) return os::say(line);
    allow_stacks();
}

void start_backtraces() {
    os::set_say_caller(profile::say_caller);
    allow_stacks();
}

}  // namespace numalloc::api

using namespace numalloc;

extern "C" NUMALLOC_EXPORT int numalloc_profile_dump(const char* path) noexcept {
    long error = -ENOTSUP;
    if (profile::on()) {
        (void)try_catch_up();
        profile::Path by_option;
        error = -EINVAL;
        if (path == nullptr && options().profile_file != nullptr &&
            profile::make_path(options().profile_file, by_option))
            path = by_option.text;
        if (path != nullptr) error = profile::write(path, "by numalloc_profile_dump()");
    }
    if (error == 0) return 0;
    errno = static_cast<int>(-error);
    return -1;
}
