#include "os/report.h"

#include <csignal>
#include <cstdlib>

#include "base/check.h"
#include "os/syscall.h"

namespace numalloc {

namespace os {

void say(const Line& line) {
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
