/* On a stack of a page, as coroutines and signal handlers have, below which is a page without access: a thread's first
 * malloc, and affinity calls of bound threads, whose masks the library compares with its own. */
#include "check.h"

#include <pthread.h>
#include <ucontext.h>

static ucontext_t caller, inner;
static void (*function)(void);
static cpu_set_t one, all;
static pthread_t initial;

static void run_function(void) {
    function();
    swapcontext(&inner, &caller);
}

static void on_a_page(void (*called)(void)) {
    char *area = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (area == MAP_FAILED || mprotect(area, PAGE, PROT_NONE) != 0) die("no memory for a stack");
    function = called;
    getcontext(&inner);
    inner.uc_stack.ss_sp = area + PAGE;
    inner.uc_stack.ss_size = PAGE;
    inner.uc_link = NULL;
    makecontext(&inner, run_function, 0);
    swapcontext(&caller, &inner);
    munmap(area, 2 * PAGE);
}

static void use_memory(void) { free(malloc(1000)); }
static void set_own(void) { expect(sched_setaffinity(0, sizeof one, &one) == 0, "sched_setaffinity fails"); }
static void set_by_handle(void) {
    expect(pthread_setaffinity_np(pthread_self(), sizeof one, &one) == 0, "pthread_setaffinity_np fails");
}
static void get_own(void) {
    cpu_set_t set;
    expect(sched_getaffinity(0, sizeof set, &set) == 0 && CPU_EQUAL(&set, &all),
           "sched_getaffinity gives another mask");
}
static void get_others(void) {
    cpu_set_t set;
    expect(pthread_getaffinity_np(initial, sizeof set, &set) == 0 && CPU_EQUAL(&set, &all),
           "pthread_getaffinity_np gives another mask");
}

/* Not by syscall(), which the library replaces. */
static void set_unseen(void) {
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(SYS_sched_setaffinity), "D"(0), "S"(sizeof one), "d"(&one)
                     : "rcx", "r11", "memory");
    expect(result == 0, "the system call fails");
}

static void *first_malloc(void *unused) {
    on_a_page(use_memory);
    return unused;
}
static void *first_malloc_elsewhere(void *unused) {
    set_unseen();
    on_a_page(use_memory);
    return unused;
}
static void *calls(void *called) {
    use_memory();
    on_a_page(*(void (**)(void))called);
    return NULL;
}

static void run(void *(*work)(void *), void *argument) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, work, argument) != 0) die("cannot start a thread");
    pthread_join(thread, NULL);
}

int main(void) {
    static void (*called[])(void) = {get_own, get_others, set_own, set_by_handle};
    initial = pthread_self();
    CPU_SET(cpu_count() - 1, &one);
    for (int cpu = 0; cpu < cpu_count(); cpu++) CPU_SET(cpu, &all);
    /* Binds the names: that takes more stack than a page on some processors. */
    for (int i = 0; i < 4; i++) called[i](), sched_setaffinity(0, sizeof all, &all);
    use_memory();
    run(first_malloc, NULL);
    run(first_malloc_elsewhere, NULL);
    for (int i = 0; i < 4; i++) run(calls, &called[i]);
    return verdict();
}
