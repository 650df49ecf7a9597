// Interposed: the exec family, and execve and execveat by syscall(). The new program inherits the user's affinity mask,
// not numalloc's binding. This file makes system calls and looks nothing up in libc: between fork or vfork and exec
// only async-signal-safe functions may be called. Where another library has such a function behind numalloc's, which
// may record or redirect what is executed, that one is called.
#include <alloca.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdarg>
#include <cstdlib>
#include <cstring>

#include "api/export.h"
#include "api/interpose/library.h"
#include "api/interpose/next.h"
#include "base/bits.h"
#include "os/execute.h"
#include "os/program_calls.h"
#include "placement/placement.h"

namespace {

using namespace numalloc;

int fail(long result) {
    errno = static_cast<int>(-result);
    return -1;
}

template <class Exec>
auto as_the_user_set_it(Exec exec) {
    const placement::AsTheUserSetIt widened;
    api::before_exec();
    const auto result = exec();
    api::after_exec();
    return result;
}

// Returns from the interposed function by another library's of that name, if there is one.
#define NUMALLOC_LEAVE_TO_OTHERS(name, ...)                                                                       \
    if (const auto others = NUMALLOC_OTHERS(name)) return as_the_user_set_it([&] { return others(__VA_ARGS__); })

long exec_at(int directory, const char* path, char* const argv[], char* const env[], int flags) {
    return as_the_user_set_it([&] { return os::execute(directory, path, argv, env, flags); });
}

long exec(const char* path, char* const argv[], char* const env[]) { return exec_at(AT_FDCWD, path, argv, env, 0); }

// execvp() runs a file that is not an executable with a shell (POSIX).
long exec_or_shell(const char* path, char* const argv[], char* const env[]) {
    const long result = exec(path, argv, env);
    if (result != -ENOEXEC) return result;
    std::size_t n = 0;
    while (argv[n] != nullptr) ++n;
    auto* shell = static_cast<char**>(alloca((n + 3) * sizeof(char*)));
    shell[0] = const_cast<char*>("/bin/sh");
    shell[1] = const_cast<char*>(path);
    for (std::size_t i = 1; i <= n; ++i) shell[i + 1] = argv[i];
    if (n == 0) shell[2] = nullptr;
    return exec(shell[0], shell, env);
}

long exec_by_path(const char* file, char* const argv[], char* const env[]) {
    if (*file == '\0') return -ENOENT;
    if (std::strchr(file, '/') != nullptr) return exec_or_shell(file, argv, env);
    const std::size_t length = strnlen(file, NAME_MAX + 1);
    if (length > NAME_MAX) return -ENAMETOOLONG;
    const char* path = std::getenv("PATH");
    if (path == nullptr) path = "/bin:/usr/bin";
    // The stack may be small.
    auto* const whole = static_cast<char*>(alloca(min_of<std::size_t>(std::strlen(path), PATH_MAX) + length + 2));

    bool denied = false;
    long result = -ENOENT;
    for (;;) {
        const char* end = std::strchr(path, ':');
        const std::size_t directory = end == nullptr ? std::strlen(path) : static_cast<std::size_t>(end - path);
        if (directory < PATH_MAX) {
            auto* at = static_cast<char*>(mempcpy(whole, path, directory));
            if (directory > 0) *at++ = '/';
            std::memcpy(at, file, length + 1);
            result = exec_or_shell(whole, argv, env);
            switch (result) {
                case -EACCES: denied = true; break;
                case -ENOENT:
                case -ENOTDIR:
                case -ENODEV:
                case -ESTALE:
                case -ETIMEDOUT: break;
                default: return result;
            }
        }
        if (end == nullptr) return denied ? -EACCES : result;
        path = end + 1;
    }
}

// libc's header declares such parameters as not null, so a compiler may drop a comparison.
bool is_null(const void* p) {
    __asm__("" : "+r"(p));
    return p == nullptr;
}

char* const* pointers(long argument) { return reinterpret_cast<char* const*>(argument); }

}  // namespace

long numalloc::os::execute_for_program(const ProgramCall& c) {
    return exec(reinterpret_cast<const char*>(c.argument[0]), pointers(c.argument[1]), pointers(c.argument[2]));
}

long numalloc::os::execute_at_for_program(const ProgramCall& c) {
    return exec_at(static_cast<int>(c.argument[0]), reinterpret_cast<const char*>(c.argument[1]),
                   pointers(c.argument[2]), pointers(c.argument[3]), static_cast<int>(c.argument[4]));
}

extern "C" NUMALLOC_EXPORT int execve(const char* path, char* const argv[], char* const env[]) noexcept {
    NUMALLOC_LEAVE_TO_OTHERS(execve, path, argv, env);
    return fail(exec(path, argv, env));
}

extern "C" NUMALLOC_EXPORT int execv(const char* path, char* const argv[]) noexcept {
    NUMALLOC_LEAVE_TO_OTHERS(execv, path, argv);
    return fail(exec(path, argv, environ));
}

extern "C" NUMALLOC_EXPORT int execvp(const char* file, char* const argv[]) noexcept {
    NUMALLOC_LEAVE_TO_OTHERS(execvp, file, argv);
    return fail(exec_by_path(file, argv, environ));
}

extern "C" NUMALLOC_EXPORT int execvpe(const char* file, char* const argv[], char* const env[]) noexcept {
    NUMALLOC_LEAVE_TO_OTHERS(execvpe, file, argv, env);
    return fail(exec_by_path(file, argv, env));
}

extern "C" NUMALLOC_EXPORT int execveat(int directory, const char* path, char* const argv[], char* const env[],
                                        int flags) noexcept {
    NUMALLOC_LEAVE_TO_OTHERS(execveat, directory, path, argv, env, flags);
    return fail(exec_at(directory, path, argv, env, flags));
}

extern "C" NUMALLOC_EXPORT int fexecve(int fd, char* const argv[], char* const env[]) noexcept {
    NUMALLOC_LEAVE_TO_OTHERS(fexecve, fd, argv, env);
    if (fd < 0 || is_null(argv) || is_null(env)) return fail(-EINVAL);
    return fail(as_the_user_set_it([&] { return os::execute_file(fd, argv, env); }));
}

// Number of pointers before the nullptr that ends an execl function's arguments.
static std::size_t count_arguments(const char* first, va_list rest) {
    if (first == nullptr) return 0;
    std::size_t n = 1;
    while (va_arg(rest, char*) != nullptr) ++n;
    return n;
}

constexpr std::size_t most_passed_on = 32;

// Copies these arguments to an array on the function's own stack. `rest` is then behind the nullptr, where execle has
// its environment; the array has room for that.
#define NUMALLOC_COLLECT(first, argv, rest)                                  \
    va_list rest;                                                            \
    va_start(rest, first);                                                   \
    const std::size_t count = count_arguments(first, rest);                  \
    va_end(rest);                                                            \
    const std::size_t room = max_of<std::size_t>(count + 2, most_passed_on); \
    auto* argv = static_cast<char**>(alloca(room * sizeof(char*)));          \
    std::memset(argv, 0, room * sizeof(char*));                              \
    va_start(rest, first);                                                   \
    argv[0] = const_cast<char*>(first);                                      \
    for (std::size_t i = 1; i <= count; ++i) argv[i] = va_arg(rest, char*)

// Leaves them to another library's function, which gets what is behind them in the array, too.
#define NUMALLOC_FOUR(a, i) a[i], a[(i) + 1], a[(i) + 2], a[(i) + 3]
#define NUMALLOC_ALL(a)                                                                                        \
    NUMALLOC_FOUR(a, 0), NUMALLOC_FOUR(a, 4), NUMALLOC_FOUR(a, 8), NUMALLOC_FOUR(a, 12), NUMALLOC_FOUR(a, 16), \
        NUMALLOC_FOUR(a, 20), NUMALLOC_FOUR(a, 24), NUMALLOC_FOUR(a, 28)
#define NUMALLOC_LEAVE_ALL_TO_OTHERS(name, path, argv)                                        \
    if (count + 2 <= most_passed_on) NUMALLOC_LEAVE_TO_OTHERS(name, path, NUMALLOC_ALL(argv))

extern "C" NUMALLOC_EXPORT int execl(const char* path, const char* first, ...) noexcept {
    NUMALLOC_COLLECT(first, argv, rest);
    va_end(rest);
    NUMALLOC_LEAVE_ALL_TO_OTHERS(execl, path, argv);
    return fail(exec(path, argv, environ));
}

extern "C" NUMALLOC_EXPORT int execlp(const char* file, const char* first, ...) noexcept {
    NUMALLOC_COLLECT(first, argv, rest);
    va_end(rest);
    NUMALLOC_LEAVE_ALL_TO_OTHERS(execlp, file, argv);
    return fail(exec_by_path(file, argv, environ));
}

extern "C" NUMALLOC_EXPORT int execle(const char* path, const char* first, ...) noexcept {
    NUMALLOC_COLLECT(first, argv, rest);
    char* const* env = va_arg(rest, char* const*);
    va_end(rest);
    argv[count + 1] = const_cast<char*>(reinterpret_cast<const char*>(env));
    NUMALLOC_LEAVE_ALL_TO_OTHERS(execle, path, argv);
    return fail(exec(path, argv, env));
}
