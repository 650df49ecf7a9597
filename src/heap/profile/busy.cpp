#include "heap/profile/busy.h"

namespace numalloc::profile {

NUMALLOC_THREAD_LOCAL unsigned Busy::depth = 0;
NUMALLOC_THREAD_LOCAL Call Busy::put_off_until_now = nullptr;

void Busy::call_put_off() {
    const Call call = put_off_until_now;
    put_off_until_now = nullptr;
    call();
}

bool put_off(Call call) {
    if (Busy::depth == 0) return false;
    Busy::put_off_until_now = call;
    return true;
}

}  // namespace numalloc::profile
