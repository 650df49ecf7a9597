#include "heap/profile/stack.h"

#include <elf.h>
#include <link.h>
#include <unwind.h>

#include <atomic>
#include <cstring>

#include "os/memory.h"

#pragma weak _Unwind_Backtrace
#pragma weak _Unwind_GetIPInfo
#pragma weak _Unwind_GetCFA

// For _Unwind_Find_FDE, by which the unwinder first looks itself up. It ends the program if it finds nothing.
struct dwarf_eh_bases {
    void* tbase;
    void* dbase;
    void* func;
};
extern "C" __attribute__((weak)) const void* _Unwind_Find_FDE(void* address, dwarf_eh_bases* bases);

extern "C" __attribute__((visibility("hidden"))) const ElfW(Ehdr) __ehdr_start;

namespace numalloc::profile {

namespace {

struct Range {
    Address begin = 0, end = 0;
    bool contains(Address a) const { return a - begin < end - begin; }
};

// The library's own code. Empty in a program that is linked with libnumalloc.a: there it cannot be told apart.
Range own_code() {
    const auto base = reinterpret_cast<Address>(&__ehdr_start);
    const auto* const header = reinterpret_cast<const ElfW(Phdr)*>(base + __ehdr_start.e_phoff);
    Range own{base, base};
    if (__ehdr_start.e_type != ET_DYN) return {};
    for (unsigned i = 0; i < __ehdr_start.e_phnum; ++i) {
        const ElfW(Phdr)& segment = header[i];
        if (segment.p_type == PT_INTERP) return {};
        if (segment.p_type == PT_LOAD) own.end = max_of(own.end, base + segment.p_vaddr + segment.p_memsz);
        if (segment.p_type != PT_DYNAMIC) continue;
        for (auto* d = reinterpret_cast<const ElfW(Dyn)*>(base + segment.p_vaddr); d->d_tag != DT_NULL; ++d)
            if (d->d_tag == DT_FLAGS_1 && (d->d_un.d_val & DF_1_PIE) != 0) return {};
    }
    return own;
}

struct Walk {
    Walk(Stack& s, Range code, const Trail* t) : stack(s), own(code), last(t) {}
    Stack& stack;
    Range own;
    const Trail* last;       // nullptr if there is none
    std::uint32_t seen = 0;  // calls of `last` that lie further in
    Trail now;
};

#if defined(__x86_64__)
Address word_below(Address stack) { return reinterpret_cast<const Address*>(stack)[-1]; }

// A longer part of a stack is unwound anew.
constexpr Address longest_rest = 1 * MiB;

// Copies the rest of the last stack if this call is in it and all return addresses further out are unchanged. Their
// words may be gone, with a coroutine's stack that lay there.
bool take_rest(Walk& walk, Trail::Call here) {
    const Trail& last = *walk.last;
    while (walk.seen < last.length && last.call[walk.seen].stack < here.stack) ++walk.seen;
    if (walk.seen == last.length) return false;
    const Trail::Call& same = last.call[walk.seen];
    if (same.stack != here.stack || same.returns_to != here.returns_to) return false;
    const Address rest = last.call[last.length - 1].stack - here.stack;
    if (rest > longest_rest || !os::make_readable(reinterpret_cast<const void*>(here.stack), rest)) return false;
    for (std::uint32_t i = walk.seen + 1; i < last.length; ++i)
        if (word_below(last.call[i].stack) != last.call[i].returns_to) return false;
    for (std::uint32_t i = walk.seen; i < last.length && walk.stack.depth < deepest_stack; ++i) {
        walk.stack.frame[walk.stack.depth++] = last.call[i].returns_to - 1;
        if (walk.now.length < deepest_stack) walk.now.call[walk.now.length++] = last.call[i];
    }
    return true;
}
#else
// On other machines a return address has no fixed place in its frame.
bool take_rest(Walk&, Trail::Call) { return false; }
#endif

// Only a stack on which each call lies further out than the one before can be recognised again.
void remember(Walk& walk, Trail::Call call) {
    Trail& now = walk.now;
    if (now.length > 0 && call.stack <= now.call[now.length - 1].stack) walk.last = nullptr;
    if (now.length < deepest_stack) now.call[now.length++] = call;
}

constinit std::atomic<FindObject> find_object{nullptr};

// Whether code of a file is there. Code that was made at run time may have a table that says nothing of its caller's
// frame (LuaJIT's), and the unwinder ends a program that it takes through it.
bool is_in_file(Address code) {
    alignas(16) char found[256];  // longer than libc's structure
    const FindObject find = find_object.load(std::memory_order_relaxed);
    return find == nullptr || find(reinterpret_cast<void*>(code), found) == 0;
}

_Unwind_Reason_Code take_frame(_Unwind_Context* context, void* argument) {
    Walk& walk = *static_cast<Walk*>(argument);
    int at_the_instruction = 0;
    Address address = static_cast<Address>(_Unwind_GetIPInfo(context, &at_the_instruction));
    if (address == 0) return _URC_END_OF_STACK;
    const Trail::Call call{address, static_cast<Address>(_Unwind_GetCFA(context))};
    // A return address lies behind the call, perhaps in another line or function.
    if (at_the_instruction == 0) --address;
    if (walk.stack.depth == 0 && walk.own.contains(address)) return _URC_NO_REASON;
    if (walk.last != nullptr) {
        if (at_the_instruction != 0) walk.last = nullptr;
        else if (take_rest(walk, call)) return _URC_END_OF_STACK;
        else remember(walk, call);
    }
    walk.stack.frame[walk.stack.depth++] = address;
    return walk.stack.depth < deepest_stack && is_in_file(address) ? _URC_NO_REASON : _URC_END_OF_STACK;
}

}  // namespace

bool has_unwinder() {
    return _Unwind_Backtrace != nullptr && _Unwind_GetIPInfo != nullptr && _Unwind_GetCFA != nullptr &&
           _Unwind_Find_FDE != nullptr;
}

static constinit std::atomic<bool> can_unwind{false};

void allow_stacks(FindObject find) {
    find_object.store(find, std::memory_order_relaxed);
    dwarf_eh_bases bases{};
    if (!has_unwinder() || _Unwind_Find_FDE(reinterpret_cast<char*>(&_Unwind_Backtrace) + 1, &bases) == nullptr) return;
    can_unwind.store(true, std::memory_order_relaxed);
}

void capture(Stack& stack, Trail* trail) {
    stack.depth = 0;
    if (!can_unwind.load(std::memory_order_relaxed)) return;
    Walk walk{stack, own_code(), trail};
    _Unwind_Backtrace(take_frame, &walk);
    if (trail == nullptr) return;
    // A stack that was cut off lacks its outer calls.
    const bool whole = walk.last != nullptr && stack.depth < deepest_stack;
    trail->length = whole ? walk.now.length : 0;
    std::memcpy(trail->call, walk.now.call, trail->length * sizeof *trail->call);
}

}  // namespace numalloc::profile
