#include "statistics/occasions.h"

#include <atomic>
#include <cerrno>

#include "base/atomic.h"
#include "heap/thread/housekeeping.h"
#include "options/parse.h"
#include "os/fork_gate.h"
#include "os/messages.h"
#include "os/signal.h"
#include "statistics/page.h"
#include "statistics/report.h"

namespace numalloc {

namespace {

// A signal came while its thread held a lock, or during a fork: the next housekeeping or the program's end writes.
std::atomic<bool> asked_for{false};

const char* destination() { return load_acquire(options().statistics); }

void write(const char* file) {
    const os::WritesAreHarmless also_the_line_below;
    const int error = write_statistics(file);
    // EBADF: there is no stderr to complain on.
    if (error == 0 || error == EBADF) return;
    os::Line line;
    line << "statistics cannot be written to " << file << ": error " << error;
    os::say(line);
}

void write_asked_for() {
    if (!asked_for.load(std::memory_order_relaxed) || !asked_for.exchange(false, std::memory_order_relaxed)) return;
    const char* const file = destination();
    write(file != nullptr ? file : "exit");
}

void on_signal(int) {
    asked_for.store(true, std::memory_order_relaxed);
    if (os::lock_holder.depth > 0) return;
    // During a fork, housekeeping writes them later.
    if (const os::Inside inside; inside) write_asked_for();
}

void every_period() {
    write_asked_for();
    if (options().statistics_page) refresh_statistics_page();
}

}  // namespace

void start_statistics() {
    if (destination() != nullptr && same(destination(), "exit")) keep_standard_error();
    if (options().statistics_page) refresh_statistics_page();
    if (options().statistics_signal != 0) os::handle_signal(options().statistics_signal, on_signal);
    if (options().statistics_page || options().statistics_signal != 0)
        at_housekeeping.store(every_period, std::memory_order_release);
}

void end_statistics() {
    if (!process_heap.started()) return;
    at_housekeeping.store(nullptr, std::memory_order_release);  // it would make the page again
    remove_statistics_page();
    // A signal handler may end the program in the middle of malloc or free: nobody will ever release that lock.
    if (os::lock_holder.depth > 0) return;
    write_asked_for();
    if (destination() != nullptr) write(destination());
}

void fork_child_statistics() { leave_statistics_page(); }

}  // namespace numalloc
