# The library's sources, by what links them: one file a line, sorted.

# What binds threads; it knows of no heap.
set(NUMALLOC_BINDING_SOURCES
    src/options/options.cpp
    src/os/affinity.cpp
    src/os/between_steps.cpp
    src/os/brief_wait.cpp
    src/os/clock.cpp
    src/os/execute.cpp
    src/os/filter.cpp
    src/os/fork_gate.cpp
    src/os/go_runtime.cpp
    src/os/huge_page_cost.cpp
    src/os/lock.cpp
    src/os/mapping.cpp
    src/os/memory.cpp
    src/os/messages.cpp
    src/os/numa_policy.cpp
    src/os/refusals.cpp
    src/os/seeds.cpp
    src/os/signal.cpp
    src/os/sysfs.cpp
    src/os/topology.cpp
    src/os/vdso.cpp
    src/placement/choose_place.cpp
    src/placement/first_use.cpp
    src/placement/memory_home.cpp
    src/placement/owners.cpp
    src/placement/placement.cpp
    src/placement/rule_file.cpp
    src/placement/thread_record.cpp
    src/placement/thread_start.cpp
    src/placement/user_affinity.cpp
    src/placement/user_mask.cpp)
# The heap; the unit tests link it and the above.
set(NUMALLOC_CORE_SOURCES
    src/heap/central/class_heap.cpp
    src/heap/central/free_pages.cpp
    src/heap/central/list_check.cpp
    src/heap/central/shard_bags.cpp
    src/heap/central/sort.cpp
    src/heap/guarded/guarded.cpp
    src/heap/guarded/misuse.cpp
    src/heap/node/big_objects.cpp
    src/heap/node/inherited.cpp
    src/heap/node/locate.cpp
    src/heap/node/process_heap.cpp
    src/heap/node/slot_pool.cpp
    src/heap/pages/clear.cpp
    src/heap/pages/evidence.cpp
    src/heap/pages/free_runs.cpp
    src/heap/pages/huge_page_advice.cpp
    src/heap/pages/move.cpp
    src/heap/pages/moved_mappings.cpp
    src/heap/pages/page_heap.cpp
    src/heap/pages/purger.cpp
    src/heap/pages/run_tree.cpp
    src/heap/pages/top.cpp
    src/heap/profile/busy.cpp
    src/heap/profile/code.cpp
    src/heap/profile/places.cpp
    src/heap/profile/profile.cpp
    src/heap/profile/sampling.cpp
    src/heap/profile/say_stack.cpp
    src/heap/profile/stack.cpp
    src/heap/profile/stack_table.cpp
    src/heap/profile/store.cpp
    src/heap/profile/thread_profile.cpp
    src/heap/profile/write.cpp
    src/heap/program_heaps/any_object.cpp
    src/heap/program_heaps/bound_heap.cpp
    src/heap/program_heaps/bound_heap_walk.cpp
    src/heap/program_heaps/spread.cpp
    src/heap/space/address_space.cpp
    src/heap/space/guarded_slots.cpp
    src/heap/space/invalid.cpp
    src/heap/space/mark.cpp
    src/heap/space/region.cpp
    src/heap/space/side.cpp
    src/heap/thread/attach.cpp
    src/heap/thread/deferred.cpp
    src/heap/thread/fork.cpp
    src/heap/thread/free.cpp
    src/heap/thread/hand_over.cpp
    src/heap/thread/held.cpp
    src/heap/thread/housekeeping.cpp
    src/heap/thread/limit.cpp
    src/heap/thread/refill.cpp
    src/heap/thread/remote_cache.cpp
    src/heap/thread/sampled.cpp
    src/heap/thread/thread_heap.cpp
    src/os/ending_signals.cpp
    src/os/fault.cpp
    src/os/file.cpp
    src/os/memory_limit.cpp
    src/os/node_kinds.cpp
    src/os/page_histogram.cpp
    src/os/thread_life.cpp
    src/statistics/gathering.cpp
    src/statistics/occasions.cpp
    src/statistics/page.cpp
    src/statistics/report.cpp)
if(NUMALLOC_EXPERIMENTS)
  list(APPEND NUMALLOC_CORE_SOURCES src/heap/node/ablation.cpp src/heap/pages/own_pages.cpp)
endif()
# What programs call.
set(NUMALLOC_API_SOURCES
    src/api/extension/blocks.cpp
    src/api/extension/heaps.cpp
    src/api/extension/node_sets.cpp
    src/api/extension/nodes.cpp
    src/api/extension/on_node.cpp
    src/api/extension/on_set.cpp
    src/api/extension/partitioned.cpp
    src/api/extension/settings.cpp
    src/api/extension/statistics.cpp
    src/api/extension/thread_placement.cpp
    src/api/extension/where.cpp
    src/api/interpose/fork_handlers.cpp
    src/api/malloc/allocate.cpp
    src/api/malloc/initialise.cpp
    src/api/malloc/introspection.cpp
    src/api/malloc/make_room.cpp
    src/api/malloc/malloc.cpp
    src/api/malloc/new_delete.cpp
    src/api/malloc/process_profile.cpp
    src/api/malloc/reallocarray.cpp
    src/api/malloc/replaced.cpp)
# Their functions call each other, malloc and realloc by the names that a program may replace.
set_source_files_properties(src/api/malloc/new_delete.cpp src/api/malloc/reallocarray.cpp
    PROPERTIES COMPILE_OPTIONS -fsemantic-interposition)
# Of the hardened library only.
set(NUMALLOC_HARDENED_SOURCES
    src/api/malloc/promises.cpp
    src/heap/central/link_shuffled.cpp
    src/heap/node/big_quarantine.cpp)
# Interposing pthread_create, fork and friends needs the dynamic linker.
set(NUMALLOC_INTERPOSED_SOURCES
    src/api/interpose/children.cpp
    src/api/interpose/clone.cpp
    src/api/interpose/exec.cpp
    src/api/interpose/filters.cpp
    src/api/interpose/next.cpp
    src/api/interpose/threads.cpp
    src/os/program_calls.cpp)
# Of shared libraries with a heap.
set(NUMALLOC_SHARED_SOURCES
    src/api/interpose/dlopen.cpp
    src/api/interpose/libc_symbols.cpp
    src/api/interpose/mutexes.cpp
    src/api/interpose/with_heap.cpp
    src/api/malloc/aside.cpp
    src/api/malloc/nothrow_new.cpp)
# What most programs run once at most: object files, or folders of them. It lies behind the rest of the library, because
# the kernel maps 64 KiB where a program needs a page.
set(NUMALLOC_SELDOM_RUN
    api/extension/
    api/interpose/clone.cpp
    api/interpose/exec.cpp
    api/interpose/libc_symbols.cpp
    api/malloc/introspection.cpp
    api/malloc/make_room.cpp
    api/malloc/nothrow_new.cpp
    api/malloc/process_profile.cpp
    heap/central/free_pages.cpp
    heap/guarded/
    heap/profile/code.cpp
    heap/profile/profile.cpp
    heap/profile/say_stack.cpp
    heap/profile/stack.cpp
    heap/profile/stack_table.cpp
    heap/profile/store.cpp
    heap/profile/write.cpp
    heap/program_heaps/
    heap/space/guarded_slots.cpp
    heap/space/side.cpp
    heap/thread/deferred.cpp
    heap/thread/sampled.cpp
    os/file.cpp
    os/messages.cpp
    os/node_kinds.cpp
    os/numa_policy.cpp
    placement/first_use.cpp
    placement/owners.cpp
    placement/rule_file.cpp
    placement/thread_record.cpp
    placement/user_mask.cpp
    statistics/gathering.cpp
    statistics/report.cpp)
foreach(part ${NUMALLOC_SELDOM_RUN})
  set(parts ${NUMALLOC_BINDING_SOURCES} ${NUMALLOC_CORE_SOURCES} ${NUMALLOC_API_SOURCES} ${NUMALLOC_INTERPOSED_SOURCES}
            ${NUMALLOC_SHARED_SOURCES})
  list(FILTER parts INCLUDE REGEX "/${part}")
  if(NOT parts)
    message(FATAL_ERROR "cmake/sources.cmake: NUMALLOC_SELDOM_RUN names ${part}, and the library has no such source")
  endif()
endforeach()
