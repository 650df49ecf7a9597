#include "heap/thread/budget.h"

#include "heap/thread/lists.h"

namespace numalloc {

namespace {

// A new thread's, at first; then what one that was refused waits.
constexpr std::uint32_t slow_paths_to_double = 48;
constexpr std::uint32_t slow_paths_to_ask_again = 16;
// Classes looked at in one slow path, and those of them in use that are passed over in search of one that is not.
constexpr unsigned most_looks = 16;
constexpr unsigned most_spared = 4;

// false: it is not yet time, or the pool is empty.
bool grow(ThreadHeap* h) {
    const std::uint32_t wait = is_new(h) ? slow_paths_to_double : h->refused ? slow_paths_to_ask_again : 0;
    if (h->slow_paths - h->budget_grew < wait) return false;
    h->budget_grew = h->slow_paths;
    BudgetPool& pool = h->home->budgets;
    const std::uint32_t lent = pool.take(h->budget);
    const std::uint32_t own = h->budget < BudgetPool::least ? min_of(h->budget, BudgetPool::least - h->budget) : 0;
    h->lent += lent;
    h->budget += max_of(lent, own);
    h->refused = lent == 0;
    if (h->refused) pool.ask(h->budget);
    return max_of(lent, own) != 0;
}

void give_half(ThreadHeap* h) {
    const std::uint32_t part = min_of(h->lent, h->budget / 2);
    h->home->budgets.give(part);
    h->lent -= part;
    h->budget -= part;
}

// The next class that may have objects, in turn, or no_class.
ClassId next_filled(ThreadHeap* h) {
    unsigned c = h->filled.next(h->next_to_look_at);
    if (c >= class_count) c = h->filled.first();
    if (c >= class_count) return no_class;
    h->next_to_look_at = c + 1 < class_count ? c + 1 : 1;
    return ClassId{c};
}

}  // namespace

// Each slow path adds one class's claim and each class given removes one: one is given a slow path, on average.
void keep_within_budget(ThreadHeap* h, ClassId busy_with) {
    if (grow(h)) return;
    unsigned spared = 0;
    for (unsigned i = 0; i < most_looks && h->claim > h->budget; ++i) {
        const ClassId c = next_filled(h);
        if (c == no_class) return;
        if (c == busy_with) continue;
        ThreadHeap::Lists& s = h->lists[c.value];
        const bool empty = h->head[c.value] == &end_of_list;
        if (!empty && s.seen != h->head[c.value] && spared < most_spared) {
            s.seen = h->head[c.value];
            ++spared;
            continue;
        }
        if (!empty) give_list(h, c.value, is_new(h) ? To::bags : To::ring);
        // Its pages are for the next class: one that tries every size once uses few.
        if (is_new(h)) h->home->of(c).give_carved(h->shard);
        s.capacity = 0;
        h->filled.remove(c.value);
    }
}

void return_spare_budget(ThreadHeap* h) {
    if (h->claim <= h->budget / 4 && h->budget / 2 >= BudgetPool::least) give_half(h);
}

void share_budget(ThreadHeap* h) {
    if (h->home->budgets.asked_by_less_than(h->budget / 2)) give_half(h);
}

void return_budget(ThreadHeap* h) {
    h->home->budgets.give(h->lent);
    h->lent = 0;
    h->budget = min_of(h->budget, BudgetPool::least);
}

}  // namespace numalloc
