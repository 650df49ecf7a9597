#include "heap/space/invalid.h"

#include "os/fork_gate.h"
#include "os/messages.h"

namespace numalloc {

void die_of_invalid_pointer(const char* call, const void* p, const char* why) {
    os::Line line;
    line << "invalid pointer in " << call << '(' << p << "): it " << why;
    os::die(line, call);
}

void die_of_wrong_call(const char* call, const void* p, const char* why) {
    os::fork_gate.leave_altogether();
    die_of_invalid_pointer(call, p, why);
}

void die_of_damage(const void* object) {
    os::Line line;
    line << "memory at " << object << " was written to after it was freed: a list of free objects is damaged there";
    os::die(line);
}

}  // namespace numalloc
