// bugs NAME small|medium|big cold|warm|other: a program with one bug. See scene.h for how it ends.
//
//   bugs              the names, a line each
//   bugs --malloc     the file that malloc comes from
//
//   cold     the bug is the first thing that the program does
//   warm     after 10^6 mallocs and frees of many sizes
//   other    as warm, and the objects were allocated by a second thread, which is alive
#include <malloc.h>
#include <sys/mman.h>

#include <initializer_list>
#include <new>

#include "check.h"
#include "scene.h"

namespace {

using namespace bugs;

constexpr std::size_t page = 4096;
constexpr std::size_t mebibyte = std::size_t{1} << 20;

// Where an attacker would have malloc point to: zeros, as most memory that nobody has used.
alignas(page) char target[8 * mebibyte];
char* const aim = target + 4 * page;

using Word = std::uintptr_t;
Word word_of(const void* p) { return reinterpret_cast<Word>(p); }
Word* words(char* p) { return reinterpret_cast<Word*>(hide(p)); }

// An object with others around it.
char* one_of_many() { return neighbours().second; }

void overflow(std::size_t n) {
    char* const p = neighbours().first;
    std::memset(hide(p + usable(p)), 0x41, n);
}

void underflow(std::size_t n) { std::memset(hide(one_of_many() - n), 0x41, n); }

// The newest of four freed objects: the others are what its link may lead to.
char* newest_of_freed() {
    char* const last = one_of_many();
    for (int i = 0; i < 3; ++i) drop(make());
    drop(last);
    return last;
}

void wrong_free(void* p) { free(hide(p)); }

// Freed while malloc must not return any of it.
void free_foreign(char* p, char* begin, std::size_t bytes) {
    never_return(begin, bytes);
    wrong_free(p);
}

char* mapping() {
    void* const p = mmap(nullptr, 8 * mebibyte, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(p != MAP_FAILED);
    return static_cast<char*>(p);
}

// What a header of glibc's says of a block for n bytes.
Word header_for(std::size_t n) { return ((n + sizeof(Word) + 15) & ~Word{15}) | 1; }

char* made_by_new() {
    return make_by([](std::size_t n) { return hide(::operator new(n)); });
}
char* made_by_new_array() {
    return make_by([](std::size_t n) { return hide(::operator new[](n)); });
}
char* made_by_aligned_new() {
    return make_by([](std::size_t n) { return hide(::operator new(n, std::align_val_t{256})); });
}

// The freeing call is the bug, of an object that was in use.
char* ended(char* p) {
    forget(p);
    return hide(p);
}

// Of a function that a C library or an allocator may not have yet.
template <class Function>
Function* function_named(const char* name) {
    void* const f = dlsym(RTLD_DEFAULT, name);
    if (f == nullptr) end("absent", "no such function");
    return reinterpret_cast<Function*>(f);
}

void scan_for_addresses(char* p, std::size_t bytes) {
    const std::size_t n = bytes < 64 ? bytes : 64;
    for (char* from : {p, p + bytes - n})
        for (std::size_t i = 0; i < n / sizeof(Word); ++i)
            if (is_address(words(from)[i])) end("leaked", "an address was read that the program never wrote");
}

// Freed and allocated again, not written to.
void read_uninitialised() {
    constexpr int count = 32;
    char* freed[count];
    for (char*& p : freed) p = make();
    for (char* p : freed) drop(p);
    char* again[count];
    for (char*& p : again) p = hide(static_cast<char*>(malloc(object_bytes())));
    for (char* p : again)
        for (char* old : freed)
            if (p == old) scan_for_addresses(p, object_bytes());
    for (char* p : again) free(p);
}

// The object's memory serves another pointer by now, which is in use.
char* freed_and_reused() {
    char* const p = one_of_many();
    drop(p);
    for (int i = 0; i < 2 * enough(); ++i) {
        char* const q = hide(static_cast<char*>(malloc(object_bytes())));
        claim(q, object_bytes());
        if (q == p) return p;
    }
    return p;  // never reused: what follows is done to a freed object
}

// Byte by byte, because where memset() begins depends on the machine, and a report says which byte was the first.
void write_to_freed(char* p) {
    volatile char* const freed = hide(p);
    for (int i = 0; i < 64; ++i) freed[i] = 0x41;
}

struct Bug {
    const char* name;
    void (*run)();
};

const Bug table[] = {
    {"no_bug", [] { drop(one_of_many()); }},  // must survive: else the scene is wrong, or the allocator

    {"overflow_1", [] { overflow(1); }},
    {"overflow_8", [] { overflow(8); }},
    {"overflow_16", [] { overflow(16); }},
    {"underflow_1", [] { underflow(1); }},
    {"underflow_8", [] { underflow(8); }},
    {"underflow_16", [] { underflow(16); }},

    {"read_after_free", [] { scan_for_addresses(newest_of_freed(), object_bytes()); }},
    {"write_after_free", [] { write_to_freed(newest_of_freed()); }},
    {"write_after_reuse", [] { write_to_freed(freed_and_reused()); }},
    {"read_uninitialised", read_uninitialised},

    {"double_free",
     [] {
         char* p = one_of_many();
         drop(p);
         wrong_free(p);
     }},
    {"double_free_others_between",
     [] {
         char* const p = one_of_many();
         char* others[3];
         for (char*& q : others) q = make();
         drop(p);
         for (char* q : others) drop(q);
         wrong_free(p);
     }},
    {"double_free_many_between",
     [] {
         char* const p = one_of_many();
         char* others[1200];
         for (int i = 0; i < enough(); ++i) others[i] = make();
         drop(p);
         for (int i = 0; i < enough(); ++i) drop(others[i]);
         wrong_free(p);
     }},
    {"double_free_by_thread",
     [] {
         start_thread();
         char* const p = one_of_many();
         drop(p);
         by_thread(wrong_free, p);
     }},
    {"double_free_after_reuse", [] { wrong_free(freed_and_reused()); }},

    {"free_inside", [] { wrong_free(one_of_many() + object_bytes() / 2 / 16 * 16); }},
    {"free_inside_by_16", [] { wrong_free(one_of_many() + 16); }},
    {"free_misaligned", [] { wrong_free(one_of_many() + 1); }},
    {"free_stack",
     [] {
         alignas(64) char bytes[512] = {};
         free_foreign(hide(bytes) + 128, bytes, sizeof bytes);
         live_on();
     }},
    {"free_global", [] { free_foreign(aim, target, sizeof target); }},
    {"free_mapping",
     [] {
         char* p = mapping();
         free_foreign(p, p, 8 * mebibyte);
     }},
    {"free_inside_mapping",
     [] {
         char* p = mapping();
         free_foreign(p + page, p, 8 * mebibyte);
     }},
    {"free_forged_header",
     [] {
         words(aim)[-1] = header_for(object_bytes());
         words(aim + (header_for(object_bytes()) & ~Word{15}))[-1] = header_for(object_bytes());
         free_foreign(aim, target, sizeof target);
     }},

    {"sized_delete_too_small", [] { ::operator delete(ended(made_by_new()), object_bytes() / 4); }},
    {"sized_delete_too_large",
     [] {
         one_of_many();
         ::operator delete(ended(made_by_new()), 4 * object_bytes());
     }},
    {"free_sized_too_small",
     [] { function_named<void(void*, std::size_t)>("free_sized")(ended(one_of_many()), object_bytes() / 4); }},
    {"free_sized_too_large",
     [] { function_named<void(void*, std::size_t)>("free_sized")(ended(one_of_many()), 4 * object_bytes()); }},
    {"free_aligned_sized_of_malloc",
     [] {
         const auto call = function_named<void(void*, std::size_t, std::size_t)>("free_aligned_sized");
         call(ended(one_of_many()), 4 * page, object_bytes());
     }},
    {"delete_with_wrong_alignment", [] { ::operator delete(ended(made_by_new()), std::align_val_t{4 * page}); }},
    {"delete_without_alignment", [] { ::operator delete(ended(made_by_aligned_new())); }},
    {"delete_of_new_array", [] { ::operator delete(ended(made_by_new_array())); }},
    {"delete_array_of_new", [] { ::operator delete[](ended(made_by_new())); }},
    {"delete_of_malloc", [] { ::operator delete(ended(make())); }},
    {"free_of_new", [] { wrong_free(ended(made_by_new())); }},

    {"realloc_of_freed", [] { claim(realloc(hide(newest_of_freed()), 2 * object_bytes()), 2 * object_bytes()); }},
    {"realloc_inside", [] { claim(realloc(hide(one_of_many() + 16), 2 * object_bytes()), 2 * object_bytes()); }},
    {"realloc_of_stack",
     [] {
         alignas(64) char bytes[512] = {};
         never_return(bytes, sizeof bytes);
         claim(realloc(hide(hide(bytes) + 128), object_bytes()), object_bytes());
         live_on();
     }},
    {"usable_size_of_freed",
     [] {
         volatile std::size_t n = malloc_usable_size(hide(newest_of_freed()));
         (void)n;
     }},

    // The attacker writes to a freed object, or past the end of one in use, and knows what allocators put there.
    {"attack_link",
     [] {
         never_return(target, sizeof target);
         words(newest_of_freed())[0] = word_of(aim);
     }},
    {"attack_link_masked",
     [] {  // as glibc masks its links
         never_return(target, sizeof target);
         char* const p = newest_of_freed();
         words(p)[0] = word_of(aim) ^ word_of(p) >> 12;
     }},
    {"attack_all_links",
     [] {
         never_return(target, sizeof target);
         Word* const w = words(newest_of_freed());
         for (int i = 0; i < 8; ++i) w[i] = word_of(aim);
     }},
    {"attack_forged_mark",
     [] {  // numalloc's: what stands in a freed object's second word tells the key of all marks
         never_return(target, sizeof target);
         char* const p = newest_of_freed();
         const Word key = words(p)[1] ^ word_of(p);
         words(aim)[1] = word_of(aim) ^ key;
         words(p)[0] = word_of(aim);
     }},
    {"attack_freed_neighbour",
     [] {
         never_return(target, sizeof target);
         const Pair pair = neighbours();
         for (int i = 0; i < 3; ++i) drop(make());
         drop(pair.second);
         for (char* w = pair.first + usable(pair.first); w < pair.second + 16; w += sizeof(Word))
             *words(w) = word_of(aim);
     }},
    {"attack_header",
     [] {  // glibc's: the next block is said to be twice as long, where anything lies between two blocks
         const Pair pair = neighbours();
         if (pair.second == pair.first + usable(pair.first)) return;
         words(pair.second)[-1] = header_for(2 * object_bytes());
         drop(pair.second);
     }},
};

template <class Value>
struct Choice {
    const char* name;
    Value value;
};
// Sizes that most allocators round to nothing larger: an overflow within the rounding harms nobody. Of each, numalloc
// puts several into a row.
constexpr Choice<std::size_t> sizes[] = {{"small", 64}, {"medium", 104 << 10}, {"big", 3 * mebibyte}};
constexpr Choice<Heat> heats[] = {{"cold", Heat::cold}, {"warm", Heat::warm}, {"other", Heat::other}};

template <class Row, std::size_t n>
const Row& chosen(const Row (&rows)[n], const char* name) {
    for (const Row& row : rows)
        if (std::strcmp(row.name, name) == 0) return row;
    std::fprintf(stderr, "bugs: '%s' is unknown; accepted: bugs NAME small|medium|big cold|warm|other\n", name);
    _exit(2);
}

}  // namespace

int main(int argc, char** argv) {
    if (argc == 1) {
        for (const Bug& bug : table) std::puts(bug.name);
    } else if (std::strcmp(argv[1], "--malloc") == 0) {
        std::puts(testing_support::malloc_file());
    } else {
        alarm(200);  // a broken list may be a ring
        const Bug& bug = chosen(table, argv[1]);
        set_scene(chosen(sizes, argc > 2 ? argv[2] : "").value, chosen(heats, argc > 3 ? argv[3] : "").value);
        bug.run();
        live_on();
    }
}
