// The program's own C++ run-time library: numalloc is built without one.
#pragma once

#include <dlfcn.h>

#include <cstring>
#include <initializer_list>

namespace numalloc::api {

using NewHandler = void (*)();

// Null if the program was started without them. Not looked up when memory is missing, because dlsym() waits for a
// dlopen() of another thread, and replaces what dlerror() would say.
extern "C" __attribute__((weak)) NewHandler _ZSt15get_new_handlerv();
extern "C" __attribute__((weak)) void _ZSt17__throw_bad_allocv();
extern "C" __attribute__((weak)) void _ZNSt3__117__throw_bad_allocEv();  // of libc++

#if !defined(NUMALLOC_STATIC)
// Finds a function in the run-time library. Usually it is the next function with the name, which dlsym() finds without
// a malloc. A library that was loaded with dlopen and RTLD_LOCAL (by a plugin) has no names in the global scope, but is
// found by its own name. It stays loaded from now on.
inline void* find_in_libraries(const char* name) {
    Dl_info info;
    if (void* next = dlsym(RTLD_NEXT, name);
        next != nullptr && dladdr(next, &info) != 0 &&
        (strstr(info.dli_fname, "/libstdc++.so.") != nullptr || strstr(info.dli_fname, "/libc++") != nullptr))
        return next;
    for (const char* library : {"libstdc++.so.6", "libc++.so.1", "libc++abi.so.1"}) {
        void* handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
        if (handle == nullptr) continue;
        void* found = dlsym(handle, name);
        dlclose(handle);
        if (found != nullptr) return found;
    }
    return nullptr;
}
// Finds a function in the object that the code belongs to: a plugin may have a run-time library of its own, linked
// statically, and no other object find it. nullptr if the function would be numalloc's.
inline void* find_beside(const void* code, const char* name) {
    Dl_info info, ours;
    if (dladdr(code, &info) == 0 || dladdr(reinterpret_cast<const void*>(&find_in_libraries), &ours) == 0)
        return nullptr;
    void* handle = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    if (handle == nullptr) return nullptr;
    void* found = dlsym(handle, name);
    dlclose(handle);
    return found != nullptr && dladdr(found, &info) != 0 && info.dli_fbase != ours.dli_fbase ? found : nullptr;
}
inline void* find_in_runtime(const char* name) {
    void* found = dlsym(RTLD_DEFAULT, name);
    return found != nullptr ? found : find_in_libraries(name);
}
#endif

inline NewHandler current_new_handler() {
    if (_ZSt15get_new_handlerv != nullptr) return _ZSt15get_new_handlerv();
#if !defined(NUMALLOC_STATIC)
    if (auto* const get = reinterpret_cast<NewHandler (*)()>(find_in_runtime("_ZSt15get_new_handlerv"))) return get();
#endif
    return nullptr;
}

inline void throw_bad_alloc() {
    if (_ZSt17__throw_bad_allocv != nullptr) _ZSt17__throw_bad_allocv();
    if (_ZNSt3__117__throw_bad_allocEv != nullptr) _ZNSt3__117__throw_bad_allocEv();
#if !defined(NUMALLOC_STATIC)
    for (const char* name : {"_ZSt17__throw_bad_allocv", "_ZNSt3__117__throw_bad_allocEv"})
        if (auto* const thrower = reinterpret_cast<void (*)()>(find_in_runtime(name))) thrower();
#endif
}

}  // namespace numalloc::api
