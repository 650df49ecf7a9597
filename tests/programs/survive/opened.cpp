// A library for opening.cpp: allocates, frees and opens as the program tells it to.
#include <dlfcn.h>

#include <cstdlib>
#include <new>

static int made;
// An operator of its own, as libraries have that bring an allocator. Deeply bound, the library uses it.
void* operator new(std::size_t n) {
    ++made;
    return std::malloc(n);
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }

extern "C" {

int opened_uses_own_operator() {
    void* (*volatile make)(std::size_t) = &operator new;
    void (*volatile unmake)(void*) = &operator delete;
    const int before = made;
    unmake(make(100));
    return made - before;
}

void* opened_malloc(std::size_t n) { return std::malloc(n); }
void* opened_which_malloc() { return reinterpret_cast<void*>(&std::malloc); }
void opened_free(void* p) { std::free(p); }
// Not as the last thing that it does: a jump would make its caller the one who opens.
void* opened_open(const char* file, int mode) {
    void* volatile handle = dlopen(file, mode);
    return handle;
}

}  // extern "C"
