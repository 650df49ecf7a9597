// C++ new and delete, every form of the standard. Each derived form calls the one below it by its public name, as in
// libstdc++, so that a program may replace any of them. new and delete themselves call malloc and free:
//
//   new[]                   -> new -> malloc      sized and nothrow delete[] -> delete[] -> delete
//   sized, nothrow delete   -> delete -> free     nothrow new and new[]: see nothrow_new.cpp
//
// The aligned forms do the same, down to aligned_alloc and free. As long as none of these names is replaced, the usual
// case, all forms work on the thread's heap directly. Otherwise this_thread_operators is no_heap.
#include <cstdlib>
#include <new>

#include "api/export.h"
#include "api/malloc/allocate.h"
#include "api/malloc/make_room.h"
#include "api/malloc/promises.h"
#include "api/malloc/replaced.h"
#include "api/malloc/runtime.h"
#include "os/messages.h"

using namespace numalloc;
using namespace numalloc::api;

namespace {

// Whether operators new accept it. 0: no alignment was named.
bool is_alignment(Bytes alignment) { return alignment == 0 || is_power_of_two(alignment); }

// Allocates by malloc, and aligned_alloc or posix_memalign, as libstdc++'s operators do, or directly if no operator is
// replaced. errno is ENOMEM without memory.
void* try_new(Bytes n, Bytes alignment) {
    if (NUMALLOC_UNLIKELY(!is_alignment(alignment))) return no_memory();
    n = max_of<Bytes>(n, 1);
    if (NUMALLOC_LIKELY(!operators_replaced())) {
        void* p = alignment == 0 ? allocate_slow(n).p : allocate_aligned(n, alignment);
        if (NUMALLOC_UNLIKELY(p == nullptr && alignment == 0))
            p = after_making_room(n, [n] { return allocate_slow(n).p; });
        return NUMALLOC_LIKELY(p != nullptr) ? p : no_memory();
    }
    if (alignment == 0) return std::malloc(n);
#if !defined(NUMALLOC_STATIC)
    if (aligned_by_posix_memalign()) {
        void* p = nullptr;
        return ::posix_memalign(&p, max_of(alignment, sizeof(p)), n) == 0 ? p : no_memory();
    }
#endif
    return n <= largest_request ? std::aligned_alloc(alignment, align_up(n, alignment)) : no_memory();
}

// The loop of [new.delete.single]: the handler makes room, throws, or ends the program. Without a handler, throws
// std::bad_alloc. `caller`: code of the object that called; if no run-time library is found, its own operator does all
// this.
NUMALLOC_COLD void* new_failed(Bytes n, Bytes alignment, [[maybe_unused]] const void* caller) {
    for (;;) {
        const NewHandler handler = is_alignment(alignment) ? current_new_handler() : nullptr;
        if (handler == nullptr) break;
        handler();
        if (void* p = try_new(n, alignment)) return p;
    }
    throw_bad_alloc();
#if !defined(NUMALLOC_STATIC)
    if (alignment == 0) {
        if (void* const its = find_beside(caller, "_Znwm")) return reinterpret_cast<void* (*)(Bytes)>(its)(n);
    } else if (void* const its = find_beside(caller, "_ZnwmSt11align_val_t")) {
        return reinterpret_cast<void* (*)(Bytes, Bytes)>(its)(n, alignment);
    }
#endif
    os::Line line;
    line << "out of memory in operator new(" << std::uint64_t{n}
         << "), and there is no C++ run-time library to throw std::bad_alloc";
    os::die(line, "operator new");
}

__attribute__((noinline)) void* new_slow(Bytes n, Bytes alignment, const void* caller) {
    void* p = try_new(n, alignment);
    return NUMALLOC_LIKELY(p != nullptr) ? p : new_failed(n, alignment, caller);
}
__attribute__((noinline)) void* new_array_slow(Bytes n, Bytes alignment, const void* caller) {
    if (NUMALLOC_LIKELY(!operators_replaced())) return new_slow(n, alignment, caller);
    return alignment == 0 ? ::operator new(n) : ::operator new(n, std::align_val_t{alignment});
}
#define NUMALLOC_CALLER __builtin_return_address(0)

// Frees an object that the fast path did not. Returns false if operators are replaced: the caller then calls the next
// form.
bool freed_by_us(void* p, Pushed pushed, const char* call) {
    if (NUMALLOC_UNLIKELY(operators_replaced())) return false;
    free_slow(p, pushed, call);
    return true;
}

#define NUMALLOC_DELETE "operator delete"
#define NUMALLOC_DELETE_ARRAY "operator delete[]"

__attribute__((noinline)) void delete_slow(void* p, Pushed pushed) {
    if (!freed_by_us(p, pushed, NUMALLOC_DELETE)) std::free(p);
}
__attribute__((noinline)) void derived_delete_slow(void* p, Pushed pushed) {
    if (!freed_by_us(p, pushed, NUMALLOC_DELETE)) ::operator delete(p);
}
__attribute__((noinline)) void delete_array_slow(void* p, Pushed pushed) {
    if (!freed_by_us(p, pushed, NUMALLOC_DELETE_ARRAY)) ::operator delete(p);
}
__attribute__((noinline)) void derived_delete_array_slow(void* p, Pushed pushed) {
    if (!freed_by_us(p, pushed, NUMALLOC_DELETE_ARRAY)) ::operator delete[](p);
}
__attribute__((noinline)) void derived_delete_aligned_slow(void* p, std::align_val_t a, Pushed pushed) {
    if (!freed_by_us(p, pushed, NUMALLOC_DELETE)) ::operator delete(p, a);
}
__attribute__((noinline)) void delete_array_aligned_slow(void* p, std::align_val_t a, Pushed pushed) {
    if (!freed_by_us(p, pushed, NUMALLOC_DELETE_ARRAY)) ::operator delete(p, a);
}
__attribute__((noinline)) void derived_delete_array_aligned_slow(void* p, std::align_val_t a, Pushed pushed) {
    if (!freed_by_us(p, pushed, NUMALLOC_DELETE_ARRAY)) ::operator delete[](p, a);
}

// The common part of each delete: the fast path, or `slow`, which knows the next form.
template <class Slow>
NUMALLOC_INLINE void delete_by(Slow slow, void* p, [[maybe_unused]] Origin origin, [[maybe_unused]] const char* call) {
    const Pushed pushed = push(this_thread_operators, p, origin);
    if (NUMALLOC_LIKELY(pushed == Pushed::done)) return;
    if constexpr (hardened)
        if (!operators_replaced()) end_if_not_of_origin(p, origin, call);
    slow(pushed);
}
#define NUMALLOC_DELETE_BY(slow, form, alignment, call, ...)                                                     \
    delete_by([&](Pushed pushed) { slow(p, ##__VA_ARGS__, pushed); }, p, origin_of(Form::form, alignment), call)

}  // namespace

// In a static link, a program's own operators replace these.
#if defined(NUMALLOC_STATIC)
#define NUMALLOC_OPERATOR NUMALLOC_EXPORT __attribute__((weak))
#else
#define NUMALLOC_OPERATOR NUMALLOC_EXPORT
#endif

NUMALLOC_OPERATOR void* operator new(std::size_t n) {
    void* p = allocate_fast(n, this_thread_operators);
    return NUMALLOC_LIKELY(p != nullptr) ? made_fast(p, n, Form::single)
                                         : made_by_new(new_slow(n, 0, NUMALLOC_CALLER), Form::single);
}
NUMALLOC_OPERATOR void* operator new[](std::size_t n) {
    void* p = allocate_fast(n, this_thread_operators);
    return NUMALLOC_LIKELY(p != nullptr) ? made_fast(p, n, Form::array)
                                         : made_by_new(new_array_slow(n, 0, NUMALLOC_CALLER), Form::array);
}
NUMALLOC_OPERATOR void* operator new(std::size_t n, std::align_val_t a) {
    void* p = allocate_aligned_fast(n, static_cast<Bytes>(a), this_thread_operators);
    const Bytes alignment = static_cast<Bytes>(a);
    if (NUMALLOC_LIKELY(p != nullptr)) return made_fast(p, round_up(n, alignment), Form::single, alignment);
    return made_by_new(new_slow(n, alignment, NUMALLOC_CALLER), Form::single, alignment);
}
NUMALLOC_OPERATOR void* operator new[](std::size_t n, std::align_val_t a) {
    void* p = allocate_aligned_fast(n, static_cast<Bytes>(a), this_thread_operators);
    const Bytes alignment = static_cast<Bytes>(a);
    if (NUMALLOC_LIKELY(p != nullptr)) return made_fast(p, round_up(n, alignment), Form::array, alignment);
    return made_by_new(new_array_slow(n, alignment, NUMALLOC_CALLER), Form::array, alignment);
}

NUMALLOC_OPERATOR void operator delete(void* p) noexcept {
    NUMALLOC_DELETE_BY(delete_slow, single, 0, NUMALLOC_DELETE);
}
NUMALLOC_OPERATOR void operator delete(void* p, std::size_t n) noexcept {
    end_if_not_new_of_size(p, n, 1, NUMALLOC_DELETE);
    NUMALLOC_DELETE_BY(derived_delete_slow, single, 0, NUMALLOC_DELETE);
}
NUMALLOC_OPERATOR void operator delete(void* p, const std::nothrow_t&) noexcept {
    NUMALLOC_DELETE_BY(derived_delete_slow, single, 0, NUMALLOC_DELETE);
}
NUMALLOC_OPERATOR void operator delete[](void* p) noexcept {
    NUMALLOC_DELETE_BY(delete_array_slow, array, 0, NUMALLOC_DELETE_ARRAY);
}
NUMALLOC_OPERATOR void operator delete[](void* p, std::size_t n) noexcept {
    end_if_not_new_of_size(p, n, 1, NUMALLOC_DELETE_ARRAY);
    NUMALLOC_DELETE_BY(derived_delete_array_slow, array, 0, NUMALLOC_DELETE_ARRAY);
}
NUMALLOC_OPERATOR void operator delete[](void* p, const std::nothrow_t&) noexcept {
    NUMALLOC_DELETE_BY(derived_delete_array_slow, array, 0, NUMALLOC_DELETE_ARRAY);
}
NUMALLOC_OPERATOR void operator delete(void* p, std::align_val_t a) noexcept {
    NUMALLOC_DELETE_BY(delete_slow, single, static_cast<Bytes>(a), NUMALLOC_DELETE);
}
NUMALLOC_OPERATOR void operator delete(void* p, std::size_t n, std::align_val_t a) noexcept {
    end_if_not_new_of_size(p, n, static_cast<Bytes>(a), NUMALLOC_DELETE);
    NUMALLOC_DELETE_BY(derived_delete_aligned_slow, single, static_cast<Bytes>(a), NUMALLOC_DELETE, a);
}
NUMALLOC_OPERATOR void operator delete(void* p, std::align_val_t a, const std::nothrow_t&) noexcept {
    NUMALLOC_DELETE_BY(derived_delete_aligned_slow, single, static_cast<Bytes>(a), NUMALLOC_DELETE, a);
}
NUMALLOC_OPERATOR void operator delete[](void* p, std::align_val_t a) noexcept {
    NUMALLOC_DELETE_BY(delete_array_aligned_slow, array, static_cast<Bytes>(a), NUMALLOC_DELETE_ARRAY, a);
}
NUMALLOC_OPERATOR void operator delete[](void* p, std::size_t n, std::align_val_t a) noexcept {
    end_if_not_new_of_size(p, n, static_cast<Bytes>(a), NUMALLOC_DELETE_ARRAY);
    NUMALLOC_DELETE_BY(derived_delete_array_aligned_slow, array, static_cast<Bytes>(a), NUMALLOC_DELETE_ARRAY, a);
}
NUMALLOC_OPERATOR void operator delete[](void* p, std::align_val_t a, const std::nothrow_t&) noexcept {
    NUMALLOC_DELETE_BY(derived_delete_array_aligned_slow, array, static_cast<Bytes>(a), NUMALLOC_DELETE_ARRAY, a);
}

#if defined(NUMALLOC_STATIC)
// These names stay numalloc's if the program's linker takes another operator. replaced.cpp compares the two.
#define NUMALLOC_OWN(symbol) __asm__(".globl numalloc_own" #symbol "\n.set numalloc_own" #symbol ", " #symbol)
NUMALLOC_OWN(_Znwm);
NUMALLOC_OWN(_Znam);
NUMALLOC_OWN(_ZnwmSt11align_val_t);
NUMALLOC_OWN(_ZnamSt11align_val_t);
NUMALLOC_OWN(_ZdlPv);
NUMALLOC_OWN(_ZdaPv);
NUMALLOC_OWN(_ZdlPvSt11align_val_t);
NUMALLOC_OWN(_ZdaPvSt11align_val_t);
#endif
