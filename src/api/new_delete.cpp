// C++ new and delete, every form of the standard. The library is built without exceptions and
// without the C++ run-time library; what a failing new needs of the program's own run-time
// (the new_handler, and throwing std::bad_alloc) is looked up when it is needed.
#include <dlfcn.h>

#include <cstdlib>
#include <initializer_list>
#include <new>

#include "api/allocate.h"
#include "api/export.h"
#include "os/report.h"

using namespace numalloc;
using namespace numalloc::api;

namespace {

using NewHandler = void (*)();

#if defined(NUMALLOC_STATIC)
// In a static library the program's linker finds them, or leaves them null.
extern "C" __attribute__((weak)) NewHandler _ZSt15get_new_handlerv();
extern "C" __attribute__((weak)) void _ZSt17__throw_bad_allocv();
NewHandler current_new_handler() { return _ZSt15get_new_handlerv != nullptr ? _ZSt15get_new_handlerv() : nullptr; }
void throw_bad_alloc() {
    if (_ZSt17__throw_bad_allocv != nullptr) _ZSt17__throw_bad_allocv();
}
// Linked statically there is no second nothrow form to lean on: handlers that return work, one
// that throws ends the program at the noexcept below.
void* try_new(Bytes n, Bytes alignment);
void* nothrow_by_runtime(Bytes n, Bytes alignment) {
    while (const NewHandler handler = current_new_handler()) {
        handler();
        if (void* p = try_new(n, alignment)) return p;
    }
    return nullptr;
}
#else
// The run-time may have been loaded with dlopen and RTLD_LOCAL, as a plugin's: then its names are
// not in the global scope, but the library itself can be found by name.
void* find_in_libraries(const char* name) {
    for (const char* library : {"libstdc++.so.6", "libc++.so.1", "libc++abi.so.1"}) {
        void* handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
        if (handle == nullptr) continue;
        void* found = dlsym(handle, name);
        dlclose(handle);
        if (found != nullptr) return found;
    }
    return nullptr;
}
void* find_in_runtime(const char* name) {
    void* found = dlsym(RTLD_DEFAULT, name);
    return found != nullptr ? found : find_in_libraries(name);
}

// A handler may throw, and a nothrow form must turn that into nullptr. To catch needs what this
// library is built without; but the run-time's own nothrow form does it, around a call of the
// throwing form, which is ours.
void* nothrow_by_runtime(Bytes n, Bytes alignment) {
    if (alignment == 0) {
        using New = void* (*)(std::size_t, const std::nothrow_t&);
        auto* const form = reinterpret_cast<New>(find_in_libraries("_ZnwmRKSt9nothrow_t"));
        return form != nullptr ? form(n, std::nothrow_t{}) : nullptr;
    }
    using New = void* (*)(std::size_t, std::align_val_t, const std::nothrow_t&);
    auto* const form = reinterpret_cast<New>(find_in_libraries("_ZnwmSt11align_val_tRKSt9nothrow_t"));
    return form != nullptr ? form(n, std::align_val_t{alignment}, std::nothrow_t{}) : nullptr;
}

NewHandler current_new_handler() {
    auto* const get = reinterpret_cast<NewHandler (*)()>(find_in_runtime("_ZSt15get_new_handlerv"));
    return get != nullptr ? get() : nullptr;
}

void throw_bad_alloc() {
    for (const char* name : {"_ZSt17__throw_bad_allocv", "_ZNSt3__117__throw_bad_allocEv"})
        if (auto* const thrower = reinterpret_cast<void (*)()>(find_in_runtime(name))) thrower();
}
#endif

void* try_new(Bytes n, Bytes alignment) {
    if (alignment != 0) return allocate_aligned(n, alignment);
    void* p = allocate_fast(n);
    return p != nullptr ? p : allocate_slow(n, nullptr);
}

// The loop of [new.delete.single]: the handler makes room, throws, or ends the program; without
// one, std::bad_alloc is thrown.
NUMALLOC_COLD void* new_failed(Bytes n, Bytes alignment) {
    for (;;) {
        const NewHandler handler = current_new_handler();
        if (handler == nullptr) break;
        handler();
        if (void* p = try_new(n, alignment)) return p;
    }
    throw_bad_alloc();
    os::Line line;
    line << "out of memory in operator new(" << std::uint64_t{n} << "), and no C++ run-time library to throw std::bad_alloc";
    os::die(line);
}

__attribute__((noinline)) void* new_slow(Bytes n) {
    void* p = allocate_slow(n, nullptr);
    return NUMALLOC_LIKELY(p != nullptr) ? p : new_failed(n, 0);
}

NUMALLOC_INLINE void* new_object(Bytes n) {
    void* p = allocate_fast(n);
    return NUMALLOC_LIKELY(p != nullptr) ? p : new_slow(n);
}

NUMALLOC_INLINE void* new_aligned(Bytes n, std::align_val_t alignment) {
    void* p = allocate_aligned(n, static_cast<Bytes>(alignment));
    return NUMALLOC_LIKELY(p != nullptr) ? p : new_failed(n, static_cast<Bytes>(alignment));
}

NUMALLOC_INLINE void delete_object(void* p, const char* call) {
    const Freed freed = push(this_thread_heap, p);
    if (NUMALLOC_UNLIKELY(freed != Freed::done)) free_slow_path(p, freed, call);
}

}  // namespace

#define NUMALLOC_DELETE "operator delete"
#define NUMALLOC_DELETE_ARRAY "operator delete[]"

NUMALLOC_EXPORT void* operator new(std::size_t n) { return new_object(n); }
NUMALLOC_EXPORT void* operator new[](std::size_t n) { return new_object(n); }
NUMALLOC_EXPORT void* operator new(std::size_t n, std::align_val_t a) { return new_aligned(n, a); }
NUMALLOC_EXPORT void* operator new[](std::size_t n, std::align_val_t a) { return new_aligned(n, a); }

NUMALLOC_COLD static void* nothrow_failed(Bytes n, Bytes alignment) noexcept {
    return current_new_handler() == nullptr ? nullptr : nothrow_by_runtime(n, alignment);
}
NUMALLOC_EXPORT void* operator new(std::size_t n, const std::nothrow_t&) noexcept {
    void* p = try_new(n, 0);
    return NUMALLOC_LIKELY(p != nullptr) ? p : nothrow_failed(n, 0);
}
NUMALLOC_EXPORT void* operator new[](std::size_t n, const std::nothrow_t&) noexcept {
    void* p = try_new(n, 0);
    return NUMALLOC_LIKELY(p != nullptr) ? p : nothrow_failed(n, 0);
}
NUMALLOC_EXPORT void* operator new(std::size_t n, std::align_val_t a, const std::nothrow_t&) noexcept {
    void* p = try_new(n, static_cast<Bytes>(a));
    return NUMALLOC_LIKELY(p != nullptr) ? p : nothrow_failed(n, static_cast<Bytes>(a));
}
NUMALLOC_EXPORT void* operator new[](std::size_t n, std::align_val_t a, const std::nothrow_t&) noexcept {
    void* p = try_new(n, static_cast<Bytes>(a));
    return NUMALLOC_LIKELY(p != nullptr) ? p : nothrow_failed(n, static_cast<Bytes>(a));
}

NUMALLOC_EXPORT void operator delete(void* p) noexcept { delete_object(p, NUMALLOC_DELETE); }
NUMALLOC_EXPORT void operator delete[](void* p) noexcept { delete_object(p, NUMALLOC_DELETE_ARRAY); }
NUMALLOC_EXPORT void operator delete(void* p, std::size_t) noexcept { delete_object(p, NUMALLOC_DELETE); }
NUMALLOC_EXPORT void operator delete[](void* p, std::size_t) noexcept { delete_object(p, NUMALLOC_DELETE_ARRAY); }
NUMALLOC_EXPORT void operator delete(void* p, const std::nothrow_t&) noexcept { delete_object(p, NUMALLOC_DELETE); }
NUMALLOC_EXPORT void operator delete[](void* p, const std::nothrow_t&) noexcept { delete_object(p, NUMALLOC_DELETE_ARRAY); }
NUMALLOC_EXPORT void operator delete(void* p, std::align_val_t) noexcept { delete_object(p, NUMALLOC_DELETE); }
NUMALLOC_EXPORT void operator delete[](void* p, std::align_val_t) noexcept { delete_object(p, NUMALLOC_DELETE_ARRAY); }
NUMALLOC_EXPORT void operator delete(void* p, std::size_t, std::align_val_t) noexcept { delete_object(p, NUMALLOC_DELETE); }
NUMALLOC_EXPORT void operator delete[](void* p, std::size_t, std::align_val_t) noexcept {
    delete_object(p, NUMALLOC_DELETE_ARRAY);
}
NUMALLOC_EXPORT void operator delete(void* p, std::align_val_t, const std::nothrow_t&) noexcept {
    delete_object(p, NUMALLOC_DELETE);
}
NUMALLOC_EXPORT void operator delete[](void* p, std::align_val_t, const std::nothrow_t&) noexcept {
    delete_object(p, NUMALLOC_DELETE_ARRAY);
}
