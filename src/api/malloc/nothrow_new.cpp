// The nothrow forms of new: each calls its throwing form and turns an exception into nullptr. This library is built
// without exceptions, but the run-time library's own nothrow forms do just that, around a call of the process's
// throwing form. The static library leaves all forms to them.
#include <atomic>
#include <new>

#include "api/export.h"
#include "api/malloc/allocate.h"
#include "api/malloc/make_room.h"
#include "api/malloc/promises.h"
#include "api/malloc/replaced.h"
#include "api/malloc/runtime.h"

using namespace numalloc;
using namespace numalloc::api;

namespace {

using New = void* (*)(std::size_t, const std::nothrow_t&);
using NewAligned = void* (*)(std::size_t, std::align_val_t, const std::nothrow_t&);

// One of the run-time library's forms, looked up at its first use.
struct RuntimeForm {
    const char* name;
    std::atomic<void*> address{nullptr};

    void* find() {
        void* f = address.load(std::memory_order_relaxed);
        if (f == nullptr) {
            f = find_in_libraries(name);
            address.store(f, std::memory_order_relaxed);
        }
        return f;
    }
};
constinit RuntimeForm runtime_new{"_ZnwmRKSt9nothrow_t"};
constinit RuntimeForm runtime_new_array{"_ZnamRKSt9nothrow_t"};
constinit RuntimeForm runtime_new_aligned{"_ZnwmSt11align_val_tRKSt9nothrow_t"};
constinit RuntimeForm runtime_new_array_aligned{"_ZnamSt11align_val_tRKSt9nothrow_t"};

// Whether `p` is the result. If no form is replaced, only a new_handler throws: without one the run-time library is not
// needed.
bool served(void* p) {
    if (p != nullptr) return true;
    no_memory();
    return current_new_handler() == nullptr;
}

// `throwing` is for a process without a run-time library, in which nothing can throw.
__attribute__((noinline)) void* nothrow_slow(Bytes n, RuntimeForm& form, void* (*throwing)(std::size_t)) {
    if (NUMALLOC_LIKELY(!operators_replaced())) {
        void* p = allocate_slow(n).p;
        if (NUMALLOC_UNLIKELY(p == nullptr)) p = after_making_room(n, [n] { return allocate_slow(n).p; });
        if (served(p)) return p;
    }
    auto* const by_runtime = reinterpret_cast<New>(form.find());
    return by_runtime != nullptr ? by_runtime(n, std::nothrow_t{}) : throwing(n);
}
__attribute__((noinline)) void* nothrow_aligned_slow(Bytes n, std::align_val_t a, RuntimeForm& form,
                                                     void* (*throwing)(std::size_t, std::align_val_t)) {
    const Bytes alignment = static_cast<Bytes>(a);
    if (NUMALLOC_LIKELY(!operators_replaced())) {
        if (NUMALLOC_UNLIKELY(!is_power_of_two(alignment))) return no_memory();
        if (void* p = allocate_aligned(n, alignment); served(p)) return p;
    }
    auto* const by_runtime = reinterpret_cast<NewAligned>(form.find());
    return by_runtime != nullptr ? by_runtime(n, a, std::nothrow_t{}) : throwing(n, a);
}

}  // namespace

NUMALLOC_EXPORT void* operator new(std::size_t n, const std::nothrow_t&) noexcept {
    void* p = allocate_fast(n, this_thread_operators);
    if (NUMALLOC_UNLIKELY(p == nullptr))
        p = nothrow_slow(n, runtime_new, [](std::size_t m) { return ::operator new(m); });
    return made_by_new(p, Form::single);
}
NUMALLOC_EXPORT void* operator new[](std::size_t n, const std::nothrow_t&) noexcept {
    void* p = allocate_fast(n, this_thread_operators);
    if (NUMALLOC_UNLIKELY(p == nullptr))
        p = nothrow_slow(n, runtime_new_array, [](std::size_t m) { return ::operator new[](m); });
    return made_by_new(p, Form::array);
}
NUMALLOC_EXPORT void* operator new(std::size_t n, std::align_val_t a, const std::nothrow_t&) noexcept {
    void* p = allocate_aligned_fast(n, static_cast<Bytes>(a), this_thread_operators);
    if (NUMALLOC_UNLIKELY(p == nullptr))
        p = nothrow_aligned_slow(n, a, runtime_new_aligned,
                                 [](std::size_t m, std::align_val_t b) { return ::operator new(m, b); });
    return made_by_new(p, Form::single, static_cast<Bytes>(a));
}
NUMALLOC_EXPORT void* operator new[](std::size_t n, std::align_val_t a, const std::nothrow_t&) noexcept {
    void* p = allocate_aligned_fast(n, static_cast<Bytes>(a), this_thread_operators);
    if (NUMALLOC_UNLIKELY(p == nullptr))
        p = nothrow_aligned_slow(n, a, runtime_new_array_aligned,
                                 [](std::size_t m, std::align_val_t b) { return ::operator new[](m, b); });
    return made_by_new(p, Form::array, static_cast<Bytes>(a));
}
