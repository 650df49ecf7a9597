#include "heap/guarded/misuse.h"

#include <cstdlib>

#include "heap/profile/say_stack.h"
#include "os/fork_gate.h"
#include "os/messages.h"

namespace numalloc::guarded {

namespace {

// `from`: the instruction that faulted, or 0.
void say_stacks(const Slot& slot, const char* what, Address from) {
    profile::CodeMappings code;
    profile::say_own_stack(code, what, from);
    const State state = slot.state.load(std::memory_order_acquire);
    if (state == State::unused) return;
    profile::say_stack(code, "allocated", slot.allocated.thread, slot.allocated.frame, slot.allocated.depth);
    if (state == State::freed) profile::say_stack(code, "freed", slot.freed.thread, slot.freed.frame, slot.freed.depth);
}

void name_object(os::Line& line, const Slot& slot) {
    line << " the " << std::uint64_t{slot.bytes} << "-byte object at " << reinterpret_cast<const void*>(slot.object);
}

// The slot that a fault belongs to. On a guard page between two slots, a slot in use comes first, then one that was
// used, then the one whose object is nearer.
const Slot& slot_of_fault(Address a) {
    const unsigned n = slots->near(a);
    const Slot& behind = slots->slot[n];
    if (n == 0 || a >= slots->page_of(n)) return behind;
    const Slot& before = slots->slot[n - 1];
    const auto state = [](const Slot& s) { return s.state.load(std::memory_order_acquire); };
    if ((state(behind) == State::used) != (state(before) == State::used))
        return state(before) == State::used ? before : behind;
    if ((state(behind) == State::unused) != (state(before) == State::unused))
        return state(before) != State::unused ? before : behind;
    return a - (before.object + before.bytes) < behind.object - a ? before : behind;
}

}  // namespace

bool explain(const os::Fault& fault) {
    const auto* const p = reinterpret_cast<const void*>(fault.address);
    if (!contains(p)) return false;
    const Slot& slot = slot_of_fault(fault.address);
    const State state = slot.state.load(std::memory_order_acquire);
    // Within an object in use: the program has protected its page, or runs it as code.
    if (state == State::used && fault.address - slot.object < slot.bytes) return false;
    os::begin_explanation();
    const char* const access = fault.access == os::Access::write  ? "write"
                               : fault.access == os::Access::read ? "read"
                                                                  : "access";
    const Address end = slot.object + slot.bytes;
    os::Line line;
    line << "guarded: ";
    if (state == State::unused) line << access << " at " << p << ", where nothing was allocated";
    else {
        const bool in_page = state == State::freed && fault.address / slots->page == slot.object / slots->page;
        line << (in_page                ? "use after free"
                 : fault.address >= end ? "overflow"
                                        : "underflow")
             << ": " << access << " at " << p << ", byte ";
        if (fault.address >= end) line << std::uint64_t{fault.address - end + 1} << " after";
        else if (fault.address < slot.object) line << std::uint64_t{slot.object - fault.address} << " before";
        else line << std::uint64_t{fault.address - slot.object} << " of";
        name_object(line, slot);
        if (state == State::freed && !in_page) line << ", which was freed";
    }
    os::say(line);
    say_stacks(slot, access, fault.instruction);
    return true;
}

void die_of(const char* call, const void* p, const char* why) {
    const Slot& slot = slot_near(p);
    os::Line line;
    line << "guarded: invalid pointer in " << call << '(' << p << "): it " << why;
    if (slot.state.load(std::memory_order_acquire) != State::unused) {
        line << ';';
        name_object(line, slot);
    }
    os::say(line);
    say_stacks(slot, call, 0);
    os::fork_gate.leave_altogether();  // as die_of_wrong_call()
    abort();
}

}  // namespace numalloc::guarded
