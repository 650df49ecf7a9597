// What a thread may hold of its own node: ../process/budget.h says why there is a bound. A thread's claim is what its
// lists may come to hold without a slow path:
//
//   claim = sum over classes with objects of (limit + sealed_count) * size + claim_of_class()  <=  budget + what the class in use has
//
// Slow paths keep it, by the two functions through which all lists are set (lists.h). The budget doubles when it is too
// small, after some slow paths at least: a thread that tries every size once and then waits keeps little.
#pragma once

#include "heap/thread/thread_heap.h"

namespace numalloc {

// It has not yet shown that it works.
inline bool is_new(const ThreadHeap* h) { return h->budget < BudgetPool::least; }

// The claim is above the budget: a larger budget, or classes go back, those first that are not in use.
void keep_within_budget(ThreadHeap* h, ClassId busy_with);

// Lists become shorter rather than that they are given back and fetched again.
inline bool is_nearly_used(const ThreadHeap* h) { return h->claim > h->budget - h->budget / 4; }
inline bool budget_is_tight(const ThreadHeap* h) { return h->refused && is_nearly_used(h); }

inline void check_budget(ThreadHeap* h, ClassId busy_with) {
    if (NUMALLOC_UNLIKELY(is_nearly_used(h))) keep_within_budget(h, busy_with);
}

// Gives back what the thread has not needed for long.
void return_spare_budget(ThreadHeap* h);

// The same where others, who have less than half of it, were refused.
void share_budget(ThreadHeap* h);

// As a thread ends: its slot keeps what is each thread's own.
void return_budget(ThreadHeap* h);

}  // namespace numalloc
