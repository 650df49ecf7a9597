// Blocks that grow by realloc, out of mappings that the program itself has split, while calls are
// refused: what is in them survives, and once all is freed as few mappings are left as at first.
// Ends and complains as victim.cpp does.
#include <malloc.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <cerrno>

#include "check.h"

namespace {

constexpr std::size_t mib = std::size_t{1} << 20;
bool refused = false;

void write(char* p, std::size_t from, std::size_t to, char mark) {
    for (std::size_t i = from; i < to; i += 4096) p[i] = static_cast<char>(mark + static_cast<char>(i >> 12));
}
void verify(const char* p, std::size_t n, char mark) {
    for (std::size_t i = 0; i < n; i += 4096) CHECK(p[i] == static_cast<char>(mark + static_cast<char>(i >> 12)));
}

// A block behind it keeps a growing block from growing where it is. The advice stays with memory that realloc gives
// back by copying, with any malloc: so none that a later block would mind.
void grow(char mark) {
    std::size_t n = 4 * mib;
    char* p = static_cast<char*>(malloc(n));
    void* walls[4] = {};
    if (p != nullptr) {
        write(p, 0, n, mark);
        for (void*& wall : walls) {
            wall = malloc(600000);
            (void)madvise(p + mib, mib, mark % 2 == 0 ? MADV_RANDOM : MADV_DONTDUMP);
            errno = 0;
            char* q = static_cast<char*>(realloc(p, n + 2 * mib));
            verify(q != nullptr ? q : p, n, mark);
            if (q == nullptr) {
                CHECK(errno == ENOMEM);
                refused = true;
                break;
            }
            p = q;
            write(p, n, n + 2 * mib, mark);
            n += 2 * mib;
        }
        verify(p, n, mark);
    } else {
        refused = true;
    }
    free(p);
    for (void* wall : walls) free(wall);
}

int mappings() {
    FILE* file = std::fopen("/proc/self/maps", "r");
    int count = 0;
    for (int c; file != nullptr && (c = std::getc(file)) != EOF;) count += c == '\n';
    if (file != nullptr) std::fclose(file);
    return count;
}

}  // namespace

int main(int argc, char** argv) {
    testing_support::require_library();
    const bool strict = argc > 1 && std::strcmp(argv[1], "strict") == 0;
    grow('a');
    malloc_trim(0);
    const int at_first = mappings();
    for (int round = 0; round < (strict ? 20 : 1); ++round) grow(static_cast<char>('a' + round % 2));
    // The child's copy of a moved block is whole, and its heap goes on.
    char* p = static_cast<char*>(malloc(6 * mib));
    if (p != nullptr) write(p, 0, 6 * mib, 'x');
    const pid_t child = fork();
    if (child == 0) {
        if (p != nullptr) verify(p, 6 * mib, 'x');
        grow('c');
        _exit(refused ? 3 : 0);
    }
    int status = 0;
    if (child > 0) {
        CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) &&
              (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 3));
    }
    free(p);
    malloc_trim(0);
    CHECK(!strict || mappings() <= at_first + 4);
    CHECK(!strict || !refused);
    std::puts("done");
    return refused ? 3 : 0;
}
