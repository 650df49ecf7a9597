#include "placement/owners.h"

#include <pthread.h>

#include <atomic>

#include "os/filter.h"
#include "os/memory.h"
#include "os/topology.h"
#include "placement/internal.h"

namespace numalloc::placement {

using detail::current;

namespace {

// The answer for each number: its place plus one, or in follow mode its node plus one; 0 if there is none yet.
using Answer = std::uint16_t;
std::atomic<std::atomic<Answer>*> answers{nullptr};

// Used where threads are not bound: numbers in the order in which threads first need one.
NUMALLOC_THREAD_LOCAL int own_number = -1;
std::atomic<int> next_own_number{1};  // 0 is main's number

// Numbers promised under one hold of the lock: some ten microseconds.
constexpr unsigned promises_at_a_time = 256;

bool in_table(int owner) { return owner >= 0 && owner < most_owners; }

// nullptr without memory. If another thread made the table first, unmaps this one and returns that.
std::atomic<Answer>* table() {
    std::atomic<Answer>* known = answers.load(std::memory_order_acquire);
    if (known != nullptr) return known;
    constexpr Bytes bytes = most_owners * sizeof(Answer);
    auto* made = static_cast<std::atomic<Answer>*>(os::map(bytes));
    if (made == nullptr) return nullptr;
    if (answers.compare_exchange_strong(known, made, std::memory_order_acq_rel)) return made;
    os::unmap(made, bytes);
    return known;
}

PlaceId place_in(std::atomic<Answer>* t, unsigned owner) {
    const Answer answer = t[owner].load(std::memory_order_relaxed);
    return answer == 0 ? no_place : PlaceId{answer - 1U};
}

bool is_promise(unsigned owner) NUMALLOC_REQUIRES(process.lock) {
    return owner >= process.numbers() && owner < process.promised_up_to;
}

void count(PlaceId id, int threads) NUMALLOC_REQUIRES(process.lock) {
    if (id != no_place) process.places[id].threads += static_cast<std::uint32_t>(threads);
}

void answer(std::atomic<Answer>* t, unsigned owner, PlaceId place) NUMALLOC_REQUIRES(process.lock) {
    if (is_promise(owner)) {
        count(place_in(t, owner), -1);
        count(place, 1);
    }
    t[owner].store(static_cast<Answer>(place == no_place ? 0 : place.value + 1U), std::memory_order_relaxed);
}

// A place on the answered node that the thread may run in: its present place if that is one; no_place without any.
PlaceId place_on_same_node(const ThreadRecord* record, PlaceId answered) NUMALLOC_REQUIRES(process.lock) {
    const NodeId node = process.places[answered].home;
    if (record->place != no_place && process.places[record->place].home == node) return record->place;
    const PlaceSet allowed = places_of(record);
    if (allowed.test(answered.value)) return answered;
    for (unsigned i = allowed.first(); i < process.places.count; i = allowed.next(i + 1))
        if (process.places[PlaceId{i}].home == node) return PlaceId{i};
    return no_place;
}

// Binds the calling thread if it is not, because an answer depends on its place.
void settle_caller(bool* moved) NUMALLOC_REQUIRES(process.lock) {
    if (current == nullptr || current->place != no_place || current->keeps_mask) return;
    renew_if_foreign(current, 0);
    settle_runner(current);
    *moved = true;
}

// Binds a thread that has not allocated yet, because others ask where it lives.
void settle_asked(ThreadRecord* record) NUMALLOC_REQUIRES(process.lock) {
    const bool runs = !record->starting;
    if (!process.at_first_use || record->place != no_place || record->keeps_mask || (runs && record->tid == 0)) return;
    if (runs) renew_if_foreign(record, record->tid);
    const PlaceSet allowed = places_of(record);
    if (record->place != no_place || allowed.count() == 0) return;
    enter(record, choose(record->number, allowed, no_place));
    if (runs) apply(record, record->tid, true);
}

// Promises at most promises_at_a_time numbers, so that threads that begin or end need not wait for 65,536 of them.
// Returns whether the owner has its promise.
bool promise_up_to(std::atomic<Answer>* t, unsigned owner) NUMALLOC_REQUIRES(process.lock) {
    process.promised_up_to = max_of(process.promised_up_to, process.numbers());
    const unsigned end = min_of(owner + 1, process.promised_up_to + promises_at_a_time);
    const PlaceSet allowed = current != nullptr ? places_of(current) : all_places();
    for (; process.promised_up_to < end; ++process.promised_up_to) {
        const unsigned number = process.promised_up_to;
        PlaceId place = place_in(t, number);  // answered before a fork, or for a thread that chose the number
        if (place == no_place) place = choose(number, allowed, no_place);
        count(place, 1);
        t[number].store(static_cast<Answer>(place == no_place ? 0 : place.value + 1U), std::memory_order_relaxed);
    }
    return process.promised_up_to > owner;
}

NodeId home_of(const ThreadRecord* record) {
    if (record->place != no_place) return process.places[record->place].home;
    const NodeId home = os::topology().home_of_os_node(record->os_node.load(std::memory_order_relaxed));
    return home == no_node ? NodeId{0} : home;
}

// Finds the first answer for a number.
NodeId ask(std::atomic<Answer>* t, int owner, bool* moved) {
    const auto number = static_cast<unsigned>(owner);
    for (;;) {
        os::Guard guard(process.lock);
        settle_caller(moved);
        ThreadRecord* const record = process.records.find_owner(owner);
        if (record != nullptr) settle_asked(record);
        if (record != nullptr) answer(t, number, record->place);
        else if (number >= process.numbers() && !promise_up_to(t, number)) continue;
        else if (place_in(t, number) == no_place) answer(t, number, choose(number, all_places(), no_place));
        const PlaceId place = place_in(t, number);
        if (place != no_place) return process.places[place].home;
        return record != nullptr ? home_of(record) : NodeId{0};
    }
}

constinit std::atomic<pthread_t> main_thread{0};  // 0: not recorded

bool is_main_thread() {
    if (os::filtered()) return main_thread.load(std::memory_order_relaxed) == pthread_self();
    return os::thread_id() == os::process_id();
}

int unbound_owner() {
    if (own_number < 0) own_number = is_main_thread() ? 0 : next_own_number.fetch_add(1, std::memory_order_relaxed);
    return own_number;
}

void note_unbound(std::atomic<Answer>* t) {
    if (t != nullptr && in_table(own_number))
        t[own_number].store(static_cast<Answer>(home_node().value + 1U), std::memory_order_relaxed);
}

constinit os::NodeMask nodes_of_start;  // constant after init()

// Where threads are not bound: the owners that have not said where they run take turns over the nodes of the process.
NodeId guess(unsigned owner) {
    const unsigned count = nodes_of_start.count();
    if (count == 0) return NodeId{owner % os::topology().nodes()};
    unsigned node = nodes_of_start.first();
    for (unsigned turn = owner % count; turn > 0; --turn) node = nodes_of_start.next(node + 1);
    return NodeId{node};
}

}  // namespace

void note_nodes_of_start() {
    os::CpuMask mask;
    if (os::get_affinity(0, mask) <= 0) return;
    for (unsigned cpu = mask.first(); cpu < os::max_cpus; cpu = mask.next(cpu + 1))
        if (const NodeId home = os::topology().node_of_cpu(cpu); home != no_node) nodes_of_start.add(home.value);
}

PlaceId answered_place(int owner) {
    std::atomic<Answer>* const t = answers.load(std::memory_order_acquire);
    return t == nullptr || !in_table(owner) ? no_place : place_in(t, static_cast<unsigned>(owner));
}

void owner_was_moved(const ThreadRecord* record) {
    std::atomic<Answer>* const t = answers.load(std::memory_order_acquire);
    if (t == nullptr || !in_table(record->owner) || record->place == no_place) return;
    const auto owner = static_cast<unsigned>(record->owner);
    if (const PlaceId before = place_in(t, owner); before != no_place && before != record->place)
        answer(t, owner, record->place);
}

void number_thread(ThreadRecord* record) {
    const unsigned number = process.numbers();
    if (is_promise(number)) count(answered_place(static_cast<int>(number)), -1);
    process.next_number.store(number + 1, std::memory_order_relaxed);
    record->number = number;
    process.records.set_owner(record, static_cast<int>(number));
}

void take_number_back(const ThreadRecord* record) {
    if (record->number + 1 != process.numbers()) return;
    process.next_number.store(record->number, std::memory_order_relaxed);
    if (is_promise(record->number)) count(answered_place(static_cast<int>(record->number)), 1);
}

void note_main_thread() {
    if (!os::filtered() && is_main_thread()) main_thread.store(pthread_self(), std::memory_order_relaxed);
}

int owner_of_caller() {
    if (process.mode != Mode::active) {
        const int owner = unbound_owner();
        if (process.mode == Mode::follow) note_unbound(table());
        return owner;
    }
    if (current == nullptr) (void)home_node();  // makes the record
    return current == nullptr ? 0 : current->owner;
}

bool register_owner(int owner, bool* moved) {
    *moved = false;
    std::atomic<Answer>* const t = in_table(owner) ? table() : nullptr;
    if (t == nullptr) return false;
    if (process.mode != Mode::active) {
        own_number = owner;
        if (process.mode == Mode::follow) note_unbound(t);
        return true;
    }
    if (current == nullptr) (void)home_node();
    if (current == nullptr) return false;
    os::Guard guard(process.lock);
    process.records.set_owner(current, owner);
    const PlaceId answered = place_in(t, static_cast<unsigned>(owner));
    if (answered == no_place) return true;
    const PlaceId target = place_on_same_node(current, answered);
    if (target == no_place || target == current->place) return true;
    move_to(current, target);
    *moved = true;
    return true;
}

NodeId node_of_owner(int owner, bool* out_of_memory, bool* moved) {
    *out_of_memory = false;
    *moved = false;
    if (process.mode == Mode::off) return in_table(owner) || (owner > 0 && owner == own_number) ? NodeId{0} : no_node;
    if (!in_table(owner)) {
        // More threads have lived than the table has numbers: looks up the thread's record.
        if (process.mode == Mode::follow && owner > 0 && owner == own_number) return home_node();
        if (owner < 0 || process.mode != Mode::active) return no_node;
        os::Guard guard(process.lock);
        const ThreadRecord* const record = process.records.find_owner(owner);
        return record == nullptr ? no_node : home_of(record);
    }
    std::atomic<Answer>* const t = table();
    if (t == nullptr) {
        *out_of_memory = true;
        return no_node;
    }
    const Answer known = t[owner].load(std::memory_order_relaxed);
    if (process.mode == Mode::active)
        return known != 0 ? process.places[PlaceId{known - 1U}].home : ask(t, owner, moved);
    if (unbound_owner() == owner) {
        note_unbound(t);
        return home_node();
    }
    return known != 0 ? NodeId{known - 1U} : guess(static_cast<unsigned>(owner));
}

}  // namespace numalloc::placement
