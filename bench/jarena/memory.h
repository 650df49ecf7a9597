// Who allocates a patch, how, and who writes it first: what the JArena paper compares.
//
//   psm    a thread other than the owner allocates it by psm_alloc(bytes, owner) and writes it
//   owner  the owner allocates it by malloc and writes it: "first touch", as programs are told to
//   wrong  as psm, but by malloc: what the program is without either care
//   best   psm where there is a psm_alloc, else owner: what the program would do on that allocator
//
// psm_ comes from the library that is preloaded, so that one program runs on any allocator.
#pragma once

#include <dlfcn.h>

#include <cstdlib>
#include <cstring>

#include "team.h"

namespace jarena {

class Memory {
public:
    explicit Memory(const char* name) : name_(std::strcmp(name, "best") == 0 ? best() : name) {
        name = name_;
        if (std::strcmp(name, "psm") == 0) {
            alloc_ = reinterpret_cast<Alloc*>(dlsym(RTLD_DEFAULT, "psm_alloc"));
            free_ = reinterpret_cast<Free*>(dlsym(RTLD_DEFAULT, "psm_free"));
            register_ = reinterpret_cast<Register*>(dlsym(RTLD_DEFAULT, "psm_register"));
            if (alloc_ == nullptr || free_ == nullptr || register_ == nullptr)
                die("psm needs libnumalloc: LD_PRELOAD it");
        } else if (std::strcmp(name, "owner") == 0) {
            owner_touches_ = true;
        } else if (std::strcmp(name, "wrong") != 0) {
            die("the memory is psm, owner, wrong or best");
        }
    }

    const char* name() const { return name_; }
    bool owner_touches() const { return owner_touches_; }

    // Once on every thread of the team.
    void join(int thread) const {
        if (register_ != nullptr && register_(thread) != 0) die("psm_register failed");
    }
    double* allocate(std::size_t values, int owner) const {
        void* p = alloc_ != nullptr ? alloc_(values * sizeof(double), owner) : std::malloc(values * sizeof(double));
        if (p == nullptr) die("no memory");
        return static_cast<double*>(p);
    }
    void release(double* p) const { free_ != nullptr ? free_(p) : std::free(p); }

private:
    using Alloc = void*(std::size_t, int);
    using Free = void(void*);
    using Register = int(int);

    static const char* best() { return dlsym(RTLD_DEFAULT, "psm_alloc") != nullptr ? "psm" : "owner"; }

    const char* name_;
    bool owner_touches_ = false;
    Alloc* alloc_ = nullptr;
    Free* free_ = nullptr;
    Register* register_ = nullptr;
};

}  // namespace jarena
