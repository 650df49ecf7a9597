// A library for opening.cpp: allocates, frees and opens as the program tells it to.
#include <dlfcn.h>

#include <cstdlib>

extern "C" {

void* opened_malloc(std::size_t n) { return std::malloc(n); }
void* opened_which_malloc() { return reinterpret_cast<void*>(&std::malloc); }
void opened_free(void* p) { std::free(p); }
// Not as the last thing that it does: a jump would make its caller the one who opens.
void* opened_open(const char* file, int mode) {
    void* volatile handle = dlopen(file, mode);
    return handle;
}

}  // extern "C"
