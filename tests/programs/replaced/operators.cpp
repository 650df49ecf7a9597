// What a program may bring along: any of the operators new and delete, one macro each (-D R_Znwm), and with R_malloc
// the malloc family. Each says its name. With HEADER what they give begins 64 bytes behind what they were
// given, as leak trackers' does, so that a block that goes home by another way is noticed.
#include <cstdlib>
#include <cstring>
#include <new>

extern "C" void note(const char* name);
extern "C" bool refuse(bool throws);

namespace {

#if defined(HEADER)
constexpr std::size_t header = 64;
#else
constexpr std::size_t header = 0;
#endif

[[maybe_unused]] void* take(std::size_t n, std::align_val_t a = std::align_val_t{0}) {
    const auto alignment = static_cast<std::size_t>(a);
    const std::size_t bytes = header + (alignment == 0 ? n : (n + alignment - 1) / alignment * alignment);
    auto* const p = static_cast<char*>(alignment == 0 ? std::malloc(bytes) : std::aligned_alloc(alignment, bytes));
    if (p == nullptr) throw std::bad_alloc();
    if (header != 0) std::memcpy(p, "tracked", 8);
    return p + header;
}

[[maybe_unused]] void drop(void* p) {
    if (p == nullptr) return;
    char* const start = static_cast<char*>(p) - header;
    if (header != 0 && std::memcmp(start, "tracked", 8) != 0) std::abort();
    std::free(start);
}

}  // namespace

#define NEW(name)       \
    {                   \
        note(name);     \
        refuse(true);   \
        return take(n); \
    }
#define NEW_ALIGNED(name)  \
    {                      \
        note(name);        \
        refuse(true);      \
        return take(n, a); \
    }
#define NEW_NOTHROW(name)                         \
    {                                             \
        note(name);                               \
        return refuse(false) ? nullptr : take(n); \
    }
#define NEW_NOTHROW_ALIGNED(name)                    \
    {                                                \
        note(name);                                  \
        return refuse(false) ? nullptr : take(n, a); \
    }
#define DELETE(name) \
    {                \
        note(name);  \
        drop(p);     \
    }

using Size = std::size_t;
using Align = std::align_val_t;
using Nothrow = const std::nothrow_t&;

#if defined(R_Znwm)
void* operator new(Size n) NEW("new")
#endif
#if defined(R_Znam)
    void* operator new[](Size n) NEW("new[]")
#endif
#if defined(R_ZnwmSt11align_val_t)
        void* operator new(Size n, Align a) NEW_ALIGNED("new-aligned")
#endif
#if defined(R_ZnamSt11align_val_t)
            void* operator new[](Size n, Align a) NEW_ALIGNED("new[]-aligned")
#endif
#if defined(R_ZnwmRKSt9nothrow_t)
                void* operator new(Size n, Nothrow) noexcept NEW_NOTHROW("new-nothrow")
#endif
#if defined(R_ZnamRKSt9nothrow_t)
                    void* operator new[](Size n, Nothrow) noexcept NEW_NOTHROW("new[]-nothrow")
#endif
#if defined(R_ZnwmSt11align_val_tRKSt9nothrow_t)
                        void* operator new(Size n, Align a, Nothrow) noexcept NEW_NOTHROW_ALIGNED("new-aligned-nothrow")
#endif
#if defined(R_ZnamSt11align_val_tRKSt9nothrow_t)
                            void* operator new[](Size n, Align a, Nothrow) noexcept
    NEW_NOTHROW_ALIGNED("new[]-aligned-nothrow")
#endif
#if defined(R_ZdlPv)
        void operator delete(void* p) noexcept DELETE("delete")
#endif
#if defined(R_ZdaPv)
            void operator delete[](void* p) noexcept DELETE("delete[]")
#endif
#if defined(R_ZdlPvm)
                void operator delete(void* p, Size) noexcept DELETE("delete-sized")
#endif
#if defined(R_ZdaPvm)
                    void operator delete[](void* p, Size) noexcept DELETE("delete[]-sized")
#endif
#if defined(R_ZdlPvRKSt9nothrow_t)
                        void operator delete(void* p, Nothrow) noexcept DELETE("delete-nothrow")
#endif
#if defined(R_ZdaPvRKSt9nothrow_t)
                            void operator delete[](void* p, Nothrow) noexcept DELETE("delete[]-nothrow")
#endif
#if defined(R_ZdlPvSt11align_val_t)
                                void operator delete(void* p, Align) noexcept DELETE("delete-aligned")
#endif
#if defined(R_ZdaPvSt11align_val_t)
                                    void operator delete[](void* p, Align) noexcept DELETE("delete[]-aligned")
#endif
#if defined(R_ZdlPvmSt11align_val_t)
                                        void operator delete(void* p, Size, Align) noexcept
    DELETE("delete-sized-aligned")
#endif
#if defined(R_ZdaPvmSt11align_val_t)
        void operator delete[](void* p, Size, Align) noexcept DELETE("delete[]-sized-aligned")
#endif
#if defined(R_ZdlPvSt11align_val_tRKSt9nothrow_t)
            void operator delete(void* p, Align, Nothrow) noexcept DELETE("delete-aligned-nothrow")
#endif
#if defined(R_ZdaPvSt11align_val_tRKSt9nothrow_t)
                void operator delete[](void* p, Align, Nothrow) noexcept DELETE("delete[]-aligned-nothrow")
#endif

#if defined(R_malloc)
    // A malloc that never reuses anything, and knows its own.
    namespace {
    alignas(4096) char pool[64 << 20];
    std::size_t used;
    void* carve(Size n, Size alignment) {
        const Size at =
            (__atomic_fetch_add(&used, n + alignment + 16, __ATOMIC_RELAXED) + 16 + alignment - 1) & ~(alignment - 1);
        if (at + n > sizeof(pool)) std::abort();
        std::memcpy(pool + at - 8, &n, sizeof(n));
        return pool + at;
    }
    void check(void* p) {
        if (p < pool || p >= pool + sizeof(pool)) std::abort();
    }
}  // namespace
extern "C" {
void* malloc(Size n) {
    note("malloc");
    return refuse(false) ? nullptr : carve(n, 16);
}
void* calloc(Size a, Size b) { return carve(a * b, 16); }
void* realloc(void* p, Size n) {
    void* const q = carve(n, 16);
    if (p == nullptr) return q;
    check(p);
    Size old;
    std::memcpy(&old, static_cast<char*>(p) - 8, sizeof(old));
    return std::memcpy(q, p, old < n ? old : n);
}
void* memalign(Size alignment, Size n) { return carve(n, alignment); }
// libstdc++'s operators call aligned_alloc, and since gcc 14 posix_memalign: both say the same.
#if !defined(R_no_aligned_alloc)
void* aligned_alloc(Size alignment, Size n) {
    note("aligned");
    return refuse(false) ? nullptr : carve(n, alignment);
}
#endif
int posix_memalign(void** p, Size alignment, Size n) {
    note("aligned");
    if (refuse(false)) return 12;  // ENOMEM
    *p = carve(n, alignment);
    return 0;
}
void free(void* p) {
    note("free");
    if (p != nullptr) check(p);
}
}
#endif
