// Takes part in check_statistics.py: allocates, and does as it is told.
//   statistics_program exit | _exit | abort | fork | signal | burst | until_closed | locked | exec | failed_exec
//                      | exit_in_handler | reuse FILE | open FILE | closed FILE
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

namespace {

void allocate(int objects, std::size_t bytes) {
    for (int i = 0; i < objects; ++i) std::memset(std::malloc(bytes), 1, bytes);
}

// Signals meet a thread that is always somewhere in malloc or free, until `over` says so.
template <class Over>
void burst(Over over) {
    std::thread sender([main = pthread_self()] {
        for (int i = 0; i < 300; ++i) {
            pthread_kill(main, SIGUSR1);
            usleep(1000);
        }
    });
    std::vector<void*> kept(4096);
    for (unsigned x = 1; !over();) {
        for (int i = 0; i < 10000; ++i) {
            x = x * 1103515245 + 12345;
            void*& slot = kept[x >> 16 & 4095];
            std::free(slot);
            slot = std::malloc(x >> 8 & 65535);
        }
    }
    sender.join();
    std::puts("done");
}

auto after(int seconds) {
    return [end = time(nullptr) + seconds] { return time(nullptr) >= end; };
}

// Whoever started it closes its stdin.
void burst_until_closed() {
    std::atomic<bool> closed{false};
    std::thread reader([&] {
        char byte;
        while (read(0, &byte, 1) > 0) {}
        closed = true;
    });
    burst([&] { return closed.load(); });
    reader.join();
}

// The handler meets malloc or free, for there is nothing else.
void exit_in_handler() {
    std::signal(SIGALRM, [](int) { std::exit(3); });
    ualarm(static_cast<useconds_t>(20000 + getpid() % 64 * 500), 0);
    std::vector<void*> kept(512);
    for (unsigned x = 1;;) {
        x = x * 1103515245 + 12345;
        void*& slot = kept[x >> 16 & 511];
        std::free(slot);
        slot = std::malloc(600000 + (x >> 8 & 15) * 65536);
    }
}

// Closes all that it did not open, and has a file of its own at every number.
void reuse(const char* file) {
    for (int fd = 3; fd < 1024; ++fd) close(fd);
    const int own = open(file, O_WRONLY | O_CREAT, 0666);
    for (int fd = 3; fd < 1024; ++fd) dup2(own, fd);
}

// A daemon without stderr: the file's number is 2.
void open_as_stderr(const char* file) {
    for (int fd = 0; fd < 1024; ++fd) close(fd);
    while (open("/dev/null", O_RDWR) < 1) {}
    open(file, O_WRONLY | O_CREAT, 0666);
}

}  // namespace

int main(int, char** argv) {
    const char* const what = argv[1];
    allocate(1000, 3000);
    if (std::strcmp(what, "_exit") == 0) _exit(0);
    if (std::strcmp(what, "abort") == 0) abort();
    if (std::strcmp(what, "signal") == 0) std::raise(SIGUSR1);
    if (std::strcmp(what, "locked") == 0) {
        void* const object = std::malloc(1 << 20);
        mlock(object, 1);  // one page: whoever runs the tests may lock that
        std::free(object);
    }
    if (std::strcmp(what, "exec") == 0) {
        char* const without_library[] = {nullptr};
        execle("/bin/cat", "cat", nullptr, without_library);
    }
    if (std::strcmp(what, "failed_exec") == 0) execlp("no-such-program", "no-such-program", nullptr);
    if (std::strcmp(what, "burst") == 0) burst(after(2));
    // Until they are killed.
    if (std::strcmp(what, "locked") == 0 || std::strcmp(what, "failed_exec") == 0) burst(after(600));
    if (std::strcmp(what, "until_closed") == 0) burst_until_closed();
    if (std::strcmp(what, "exit_in_handler") == 0) exit_in_handler();
    if (std::strcmp(what, "reuse") == 0) reuse(argv[2]);
    if (std::strcmp(what, "closed") == 0) open_as_stderr(argv[2]);
    if (std::strcmp(what, "open") == 0) std::printf("%d", open(argv[2], O_WRONLY | O_CREAT, 0666));
    if (std::strcmp(what, "fork") == 0) {
        if (fork() == 0) {
            allocate(500, 3000);
            return 0;
        }
        wait(nullptr);
    }
    return 0;
}
