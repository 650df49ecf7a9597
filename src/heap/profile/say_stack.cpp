#include "heap/profile/say_stack.h"

#include "heap/profile/stack.h"
#include "os/affinity.h"
#include "os/messages.h"

namespace numalloc::profile {

namespace {

// The innermost frames tell enough of a deep recursion.
constexpr unsigned most_frames = 32;

// Writes #N ADDRESS FILE+OFFSET, with the offset in the file.
void say_frame(CodeMappings& code, unsigned n, Address frame) {
    os::Line line;
    line << "    #" << n << ' ' << reinterpret_cast<const void*>(frame);
    code.again();
    for (CodeMapping mapping; code.next(mapping);) {
        if (frame < mapping.begin || frame >= mapping.end) continue;
        line << ' ';
        line.append(mapping.path, min_of<Bytes>(mapping.path_length, 400));
        line << '+' << reinterpret_cast<const void*>(frame - mapping.begin + mapping.offset);
        break;
    }
    os::say(line);
}

}  // namespace

void say_stack(CodeMappings& code, const char* what, int thread, const Address* frame, unsigned depth) {
    os::Line line;
    line << "  " << what << " by thread " << thread << (depth == 0 ? "; its stack is unknown" : ":");
    os::say(line);
    for (unsigned n = 0; n < depth; ++n) say_frame(code, n, frame[n]);
}

void say_own_stack(CodeMappings& code, const char* what, Address from) {
    Stack here;
    capture(here, nullptr);
    unsigned skipped = 0;
    while (skipped < here.depth && here.frame[skipped] != from) ++skipped;
    if (skipped == here.depth) skipped = 0;
    say_stack(code, what, os::thread_id(), here.frame + skipped, min_of(here.depth - skipped, most_frames));
}

void say_caller(const char* what, Address from) {
    CodeMappings code;
    say_own_stack(code, what, from);
}

}  // namespace numalloc::profile
