// Whether the calling thread is at work on the profile: then what it allocates meanwhile (an unwinder might) is not
// recorded, and what a signal's handler wants of the profile has to wait, because the thread may hold its lock.
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

    // The thread was not busy before.
    bool first() const { return first_; }

private:
    friend bool put_off(Call call);
    static void call_put_off();

    static NUMALLOC_THREAD_LOCAL unsigned depth;
    static NUMALLOC_THREAD_LOCAL Call put_off_until_now;
    bool first_;
};

// In a signal's handler: false, and nothing happens, unless the thread is busy; else `call` is called as soon as it is
// no longer.
bool put_off(Call call);

}  // namespace numalloc::profile
