// Whether the calling thread is working on the profile. Its allocations during that time (an unwinder may make some)
// are not recorded, and a signal handler must wait with its use of the profile, because the thread may hold the
// profile's lock.
#pragma once

#include "base/bits.h"

namespace numalloc::profile {

using Call = void (*)();

class Busy {
public:
    Busy() : first_(depth++ == 0) {}
    ~Busy() {
        if (--depth == 0 && put_off_until_now != nullptr) call_put_off();
    }
    Busy(const Busy&) = delete;
    Busy& operator=(const Busy&) = delete;

    // Whether the thread was not busy before.
    bool first() const { return first_; }

private:
    friend bool put_off(Call call);
    static void call_put_off();

    static NUMALLOC_THREAD_LOCAL unsigned depth;
    static NUMALLOC_THREAD_LOCAL Call put_off_until_now;
    bool first_;
};

// For signal handlers. If the thread is busy, returns true, and `call` runs as soon as the thread is no longer busy.
// Otherwise returns false and does nothing.
bool put_off(Call call);

}  // namespace numalloc::profile
