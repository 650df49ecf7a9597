// The library itself: its version, its options at run time, the destination of its messages.
#include <cstring>

#include "api/export.h"
#include "api/extension/error.h"
#include "api/malloc/initialise.h"
#include "base/atomic.h"
#include "heap/node/process_heap.h"
#include "numalloc/numalloc.h"
#include "options/print.h"
#include "os/messages.h"

using namespace numalloc;
using namespace numalloc::api;

namespace {

// Truncates to `bytes`; `length` is the full length.
struct Cut {
    char* text;
    size_t bytes;
    size_t length = 0;

    Cut& operator<<(const char* s) {
        for (; *s != '\0'; ++s, ++length)
            if (length + 1 < bytes) text[length] = *s;
        return *this;
    }
    template <class T>
    Cut& operator<<(T value) {
        Text<32> piece;
        piece << value;
        return *this << piece.c_str();
    }
};

}  // namespace

extern "C" {

NUMALLOC_EXPORT int numalloc_version(void) noexcept { return NUMALLOC_VERSION; }

NUMALLOC_EXPORT void numalloc_set_output(void (*take)(const char* line, void* argument), void* argument) noexcept {
    os::set_output(take, argument);
}

NUMALLOC_EXPORT int numalloc_option_get(const char* name, char* text, size_t bytes) noexcept {
    wake();
    Cut value{text, bytes};
    bool found = false;
    for_each_option([&](const char* option, bool, auto print) {
        if (!is_called(option, name)) return;
        print(value);
        found = true;
    });
    if (!found) return fail(EINVAL);
    if (bytes > 0) text[min_of(value.length, bytes - 1)] = '\0';
    return static_cast<int>(value.length);
}

NUMALLOC_EXPORT int numalloc_option_set(const char* name, const char* text) noexcept {
    wake();
    switch (set_option(name, text)) {
        case OptionSet::unknown:
        case OptionSet::not_understood: return fail(EINVAL);
        case OptionSet::fixed: return fail(EPERM);
        case OptionSet::done: break;
    }
    if (is_called("purge_delay", name) && process_heap.started())
        process_heap.set_purge_delay(load_relaxed(options().purge_delay));
    return 0;
}

}  // extern "C"
