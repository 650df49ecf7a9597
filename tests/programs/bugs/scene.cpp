#include "scene.h"

#include <malloc.h>
#include <sys/mman.h>

#include <atomic>
#include <initializer_list>
#include <thread>

#include "check.h"

namespace bugs {

namespace {

constexpr int warming_steps = 500000;  // a malloc and a free each
constexpr int warming_blocks = 1000;
constexpr std::size_t edge = 64;  // of a block: what is filled and looked at, at either end
constexpr int most_objects = 4096;
constexpr std::size_t mebibyte = std::size_t{1} << 20;

struct Range {
    std::uintptr_t begin, end;
    bool meets(Range other) const { return begin < other.end && other.begin < end; }
};
struct Used {
    char* p;
    std::size_t bytes;
    unsigned char fill;
};

std::size_t bytes_wanted;
Heat heat_wanted;
Used used[most_objects];
int used_count;
Range forbidden[8];
int forbidden_count;

Range range_of(const void* p, std::size_t n) {
    const auto begin = reinterpret_cast<std::uintptr_t>(p);
    return {begin, begin + n};
}

// A thread that does one thing at a time, and is waited for.
struct Worker {
    std::atomic<int> turn{0};  // odd: the worker's
    void (*function)(void*);
    void* argument;
    bool last = false;
    std::thread thread;

    void work() {
        for (int now = 1;; now += 2) {
            for (int seen; (seen = turn.load()) != now;) turn.wait(seen);
            if (last) return;
            function(argument);
            ++turn;
            turn.notify_all();
        }
    }
    void run(void (*f)(void*), void* a) {
        function = f;
        argument = a;
        const int answered = ++turn + 1;
        turn.notify_all();
        for (int seen; (seen = turn.load()) != answered;) turn.wait(seen);
    }
    void end() {
        if (!thread.joinable()) return;
        last = true;
        ++turn;
        turn.notify_all();
        thread.join();
    }
};
Worker owner;   // of the objects
Worker helper;  // of the bug

// Of many sizes: mostly small ones, some large, a few of whole pages. No block ever holds an address.
std::size_t any_size(testing_support::Random& random) {
    const auto kind = random.below(4096);
    if (kind == 0) return (512 << 10) + random.below(4 << 20);
    if (kind < 64) return (32 << 10) + random.below(480 << 10);
    if (kind < 512) return 1024 + random.below(31 << 10);
    return sizeof(int) + random.below(1024);
}

void warm_up(int steps, unsigned seed) {
    static void* blocks[2][warming_blocks];
    testing_support::Random random(seed);
    for (int i = 0; i < steps; ++i) {
        void*& block = blocks[seed % 2][random.below(warming_blocks)];
        free(block);
        block = hide(std::malloc(any_size(random)));
        *static_cast<int*>(block) = i;
    }
}

void fill(const Used& u) {
    const std::size_t n = u.bytes < edge ? u.bytes : edge;
    std::memset(u.p, u.fill, n);
    std::memset(u.p + u.bytes - n, u.fill, n);
}

void check(const Used& u) {
    const std::size_t n = u.bytes < edge ? u.bytes : edge;
    for (std::size_t i = 0; i < n; ++i)
        for (const char* byte : {u.p + i, u.p + u.bytes - 1 - i})
            if (static_cast<unsigned char>(*hide(byte)) != u.fill) end("corrupted", "an object in use was changed");
}

void check_all() {
    for (int i = 0; i < used_count; ++i) check(used[i]);
}

// What malloc returned is in use from now on, if it may be.
char* enter(void* allocated, std::size_t bytes) {
    auto* const p = hide(static_cast<char*>(allocated));
    CHECK(used_count < most_objects);
    if (p == nullptr) end("corrupted", "malloc has nothing, where there is memory");
    const Range range = range_of(p, bytes);
    for (int i = 0; i < forbidden_count; ++i)
        if (range.meets(forbidden[i])) end("corrupted", "malloc returned an address of the attacker's choice");
    for (int i = 0; i < used_count; ++i)
        if (range.meets(range_of(used[i].p, used[i].bytes))) end("corrupted", "malloc returned memory that is in use");
    used[used_count] = {p, bytes, static_cast<unsigned char>(0x80 + used_count % 64)};
    fill(used[used_count++]);
    return p;
}

// Of one size, all at once: more than the allocator's nearest lists hold. Then they are freed.
void use_many(std::size_t bytes, int count) {
    const int before = used_count;
    for (int i = 0; i < count; ++i) enter(std::malloc(bytes), bytes);
    check_all();
    while (used_count > before) free(used[--used_count].p);
}

}  // namespace

void set_scene(std::size_t bytes, Heat heat) {
    bytes_wanted = bytes;
    heat_wanted = heat;
    if (heat == Heat::cold) return;
    warm_up(warming_steps, 1);
    if (heat != Heat::other) return;
    owner.thread = std::thread([] { owner.work(); });
    owner.run([](void*) { warm_up(warming_steps / 10, 2); }, nullptr);
}

std::size_t object_bytes() { return bytes_wanted; }
int enough() { return bytes_wanted <= 1024 ? 1200 : bytes_wanted <= 512 << 10 ? 40 : 8; }

char* make_by(void* (*allocate)(std::size_t)) {
    struct Call {
        void* (*allocate)(std::size_t);
        void* result;
    } call{allocate, nullptr};
    const auto run = [](void* c) { static_cast<Call*>(c)->result = static_cast<Call*>(c)->allocate(bytes_wanted); };
    if (heat_wanted == Heat::other) owner.run(run, &call);
    else run(&call);
    return enter(call.result, bytes_wanted);
}

char* make() {
    return make_by([](std::size_t n) { return hide(std::malloc(n)); });
}

void drop(char* p) {
    forget(p);
    free(hide(p));
}

void forget(char* p) {
    for (int i = 0; i < used_count; ++i) {
        if (used[i].p != p) continue;
        used[i] = used[--used_count];
        return;
    }
    CHECK(!"an object in use");
}

std::size_t usable(char* p) { return malloc_usable_size(p); }

void claim(void* p, std::size_t bytes) {
    if (p != nullptr) enter(p, bytes);
}

void never_return(const void* begin, std::size_t bytes) { forbidden[forbidden_count++] = range_of(begin, bytes); }

Pair neighbours() {
    const int begin = used_count;
    while (used_count < begin + enough() || used_count < begin + 16) {
        make();
        const int last = used_count - 1;
        if (last < begin + 15) continue;
        for (int i = begin; i <= last; ++i)
            for (int j = begin; j <= last; ++j) {
                const std::ptrdiff_t gap = used[j].p - (used[i].p + usable(used[i].p));
                if (gap >= 0 && gap <= 32) return {used[i].p, used[j].p};  // a header may lie between them
            }
    }
    return {used[begin].p, used[begin + 1].p};
}

void start_thread() {
    helper.thread = std::thread([] { helper.work(); });
    helper.run([](void*) {}, nullptr);
}
void by_thread(void (*function)(void*), void* argument) { helper.run(function, argument); }

bool is_address(std::uintptr_t word) {
    constexpr std::uintptr_t page = 4096;
    unsigned char resident;
    return word >= page && mincore(reinterpret_cast<void*>(word / page * page), 1, &resident) == 0;
}

void end(const char* verdict, const char* why) {
    char line[200];
    const int n = std::snprintf(line, sizeof line, why == nullptr ? "%s\n" : "%s: %s\n", verdict, why);
    if (write(1, line, static_cast<std::size_t>(n)) != n) _exit(1);
    _exit(0);
}

void live_on() {
    const std::size_t bytes = bytes_wanted;
    check_all();
    use_many(bytes, enough());
    for (std::size_t other : {bytes / 4, 2 * bytes, 4 * bytes}) use_many(other, enough() / 4);
    malloc_trim(0);
    for (int round = 0; round < 4; ++round)
        for (std::size_t size :
             {bytes, std::size_t{48}, std::size_t{1000}, std::size_t{5000}, std::size_t{100000}, 2 * mebibyte})
            use_many(size, size <= 5000 ? 200 : 4);
    while (used_count > 0) {
        check(used[used_count - 1]);
        free(used[--used_count].p);
    }
    malloc_trim(0);
    use_many(bytes, enough());
    owner.end();
    helper.end();
    use_many(bytes, enough());
    end("survived");
}

}  // namespace bugs
