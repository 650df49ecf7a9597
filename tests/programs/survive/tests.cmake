set(EXPECT ${CMAKE_CURRENT_SOURCE_DIR}/expect.sh)
set(HERE ${CMAKE_CURRENT_SOURCE_DIR}/survive)

# survive_test(NAME SECONDS SOURCE): one program that proves itself.
function(survive_test name seconds source)
    numalloc_program(survive_${name} ${source})
    numalloc_test(survive.${name} survive ${seconds} ${PRELOAD} ${LIBRARY} $<TARGET_FILE:survive_${name}>)
endfunction()

# survive_expect(NAME SECONDS TEXT SOURCE ARGUMENTS...): the same for one that must print TEXT, end
# well after that, and be silent on stderr.
function(survive_expect name seconds text source)
    numalloc_program(survive_${name} ${source})
    numalloc_test(survive.${name} survive ${seconds}
        ${EXPECT} ${text} ${PRELOAD} ${LIBRARY} $<TARGET_FILE:survive_${name}> ${ARGN})
endfunction()

# survive_run(NAME SECONDS TEXT COMMAND...): the same for a program that is built by hand.
function(survive_run name seconds text)
    numalloc_test(survive.${name} survive ${seconds} ${EXPECT} ${text} ${PRELOAD} ${LIBRARY} ${ARGN})
endfunction()

survive_expect(first_and_last 60 "every stage ran" survive/first_and_last.cpp)
survive_test(fork_storm 1200 survive/fork_storm.cpp)
numalloc_test(survive.fork_storm_short survive 1200 ${PRELOAD} ${LIBRARY} env NUMALLOC_TEST_FORKS=200 $<TARGET_FILE:survive_fork_storm>)
numalloc_full_only("its length" survive.fork_storm)
survive_test(fork_costs 60 survive/fork_costs.cpp)
numalloc_full_only("resident memory, page faults" survive.fork_costs)
add_executable(survive_copies survive/copies.c)
target_compile_options(survive_copies PRIVATE -fno-builtin)
survive_run(copies 120 "no copy was taken for a second free" $<TARGET_FILE:survive_copies>)
# Of what users run only: without optimisation every value is on the stack. A purged mark cannot be read.
if(NOT NUMALLOC_CHECKS AND CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64" AND NOT LIBRARY STREQUAL "none")
    add_executable(survive_leftovers survive/leftovers.c)
    target_compile_options(survive_leftovers PRIVATE -fno-builtin)
    foreach(profile off on 1000)
        survive_run(leftovers_${profile} 120 "no call leaves a mark behind"
            env NUMALLOC_PURGE_DELAY=-1 NUMALLOC_PROFILE=${profile} NUMALLOC_PROFILE_FILE=none $<TARGET_FILE:survive_leftovers>)
    endforeach()
endif()
survive_expect(children 120 "all children did what they should" survive/children.cpp)
survive_test(many_mappings 120 survive/many_mappings.cpp)
# The memory beyond the first 8 MiB, with other advice, would be one mapping more.
numalloc_test(survive.many_mappings_huge survive 120 ${PRELOAD} ${LIBRARY} env NUMALLOC_THP=on $<TARGET_FILE:survive_many_mappings>)
if(NOT LIBRARY STREQUAL "none")
    add_executable(survive_early survive/early.c)
    target_compile_options(survive_early PRIVATE -fno-builtin)
    survive_run(early_options 60 none env NUMALLOC_BINDING=none $<TARGET_FILE:survive_early>)
endif()
add_executable(survive_refused survive/refused.c)
target_compile_options(survive_refused PRIVATE -fno-builtin)
foreach(what huge moved)
    survive_run(refused_${what} 120 "nothing stays" $<TARGET_FILE:survive_refused> ${what})
endforeach()
add_executable(survive_terabytes survive/terabytes.c)
survive_run(terabytes 120 "12 TiB" $<TARGET_FILE:survive_terabytes>)
survive_test(signals 120 survive/signals.cpp)
# The registers are x86-64's. As users run it: no assertion between.
if(CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64" AND NOT NUMALLOC_CHECKS AND NOT NUMALLOC_SANITIZER)
    survive_test(stepped 1500 survive/stepped.cpp)
endif()
survive_expect(small_stacks 120 "small stacks suffice" survive/small_stacks.cpp)
# As users run it: assertions and sanitizers need more stack.
if(NOT NUMALLOC_CHECKS AND NOT NUMALLOC_SANITIZER)
    add_executable(survive_exec_stacks survive/exec_stacks.c)
    target_link_libraries(survive_exec_stacks PRIVATE Threads::Threads)
    target_link_options(survive_exec_stacks PRIVATE -Wl,-z,now)
    survive_run(exec_stacks 120 "programs started from small stacks" $<TARGET_FILE:survive_exec_stacks>)
endif()
survive_expect(own_operators 60 "own operators" survive/own_operators.cpp)

# Handlers of fork, registered by a library that is loaded before ours and after it. All in C: see there.
# LD_PRELOAD with our library before or after the other one.
function(preload_order into place other)
    if(place STREQUAL "before")
        set(${into} ${LIBRARY}:${other} PARENT_SCOPE)
    else()
        set(${into} ${other}:${LIBRARY} PARENT_SCOPE)
    endif()
endfunction()
add_library(survive_fork_handlers_library SHARED survive/fork_handlers_library.c)
add_executable(survive_fork_handlers survive/fork_handlers.c)
target_link_libraries(survive_fork_handlers PRIVATE survive_fork_handlers_library Threads::Threads)
set(handlers survive_fork_handlers survive_fork_handlers_library)
foreach(mode alone waiting)
    set(HANDLERS $<TARGET_FILE:survive_fork_handlers_library>)
    foreach(place before after)
        preload_order(order ${place} ${HANDLERS})
        numalloc_test(survive.fork_handlers_loaded_${place}_${mode} survive 120
            ${EXPECT} "all handlers ran" env LD_PRELOAD=${order} $<TARGET_FILE:survive_fork_handlers> ${mode})
    endforeach()
endforeach()
# The same with handlers that libc calls after our prepare handler.
add_library(survive_fork_behind_library SHARED survive/fork_handlers_library.c)
target_compile_definitions(survive_fork_behind_library PRIVATE BEHIND)
add_executable(survive_fork_behind survive/fork_handlers.c)
add_executable(survive_fork_beside survive/fork_beside.c)
add_executable(survive_fork_ends survive/fork_ends.c)
add_executable(survive_fork_heaps survive/fork_heaps.c)
target_include_directories(survive_fork_heaps PRIVATE ${PROJECT_SOURCE_DIR}/include)
foreach(program behind beside ends heaps)
    target_link_libraries(survive_fork_${program} PRIVATE survive_fork_behind_library Threads::Threads)
endforeach()
list(APPEND handlers survive_fork_behind survive_fork_beside survive_fork_ends survive_fork_heaps survive_fork_behind_library)
set(order ${LIBRARY}:$<TARGET_FILE:survive_fork_behind_library>)
foreach(mode alone waiting)
    numalloc_test(survive.fork_handlers_behind_${mode} survive 300
        ${EXPECT} "all handlers ran" env LD_PRELOAD=${order} $<TARGET_FILE:survive_fork_behind> ${mode})
endforeach()
numalloc_test(survive.fork_ends survive 300 ${EXPECT} "every child was whole" env LD_PRELOAD=${order} $<TARGET_FILE:survive_fork_ends>)
numalloc_test(survive.fork_heaps survive 300 ${EXPECT} "every object was freed once"
    env LD_PRELOAD=${order} NUMALLOC_PURGE_DELAY=0 $<TARGET_FILE:survive_fork_heaps>)
foreach(held lock list stream)
    numalloc_test(survive.fork_beside_${held} survive 300 ${EXPECT} "every fork returned"
        env LD_PRELOAD=${order} $<TARGET_FILE:survive_fork_beside> ${held})
endforeach()
# realloc and free of the side heap's objects while the heap profile is on, and while objects are guarded.
foreach(option PROFILE GUARDED)
    numalloc_test(survive.fork_beside_${option} survive 300 ${EXPECT} "every fork returned"
        env NUMALLOC_${option}=20 NUMALLOC_PROFILE_FILE=none LD_PRELOAD=${order} $<TARGET_FILE:survive_fork_beside> lock)
endforeach()
add_executable(survive_fork_trims survive/fork_trims.c)
target_link_libraries(survive_fork_trims PRIVATE Threads::Threads)
target_link_options(survive_fork_trims PRIVATE -rdynamic)
list(APPEND handlers survive_fork_trims)
foreach(what heap bags lists)
    survive_run(fork_trims_${what} 120 "no fork lost memory" $<TARGET_FILE:survive_fork_trims> ${what})
endforeach()
add_executable(survive_fork_libc survive/fork_libc.c)
target_link_libraries(survive_fork_libc PRIVATE Threads::Threads ${CMAKE_DL_LIBS})
list(APPEND handlers survive_fork_libc)
# The library that is opened and closed has no handlers of fork: libc may call those while it unloads them.
survive_run(fork_libc 300 "all forks returned" $<TARGET_FILE:survive_fork_libc> $<TARGET_FILE:survive_plugin>)
survive_run(fork_names 300 "all forks returned" $<TARGET_FILE:survive_fork_libc> $<TARGET_FILE:survive_plugin> names)
# With an unlimited stack the kernel puts libraries, and all that has no address of its own, at 20 TiB or at 42 TiB.
foreach(layout "" _compat)
    set(place prlimit --stack=unlimited)
    if(layout STREQUAL "_compat")
        list(APPEND place setarch -L)
    endif()
    numalloc_test(survive.unlimited_stack_forks${layout} survive 600 ${PRELOAD} ${LIBRARY} ${place}
        env NUMALLOC_TEST_FORKS=60 $<TARGET_FILE:survive_fork_storm>)
    numalloc_test(survive.unlimited_stack_beside${layout} survive 300 ${EXPECT} "every fork returned"
        ${place} env NUMALLOC_GUARDED=20 LD_PRELOAD=${order} $<TARGET_FILE:survive_fork_beside> lock)
endforeach()
add_library(survive_other_libc_library SHARED survive/other_libc_library.c)
add_executable(survive_other_libc survive/other_libc.c)
target_link_libraries(survive_other_libc PRIVATE Threads::Threads ${CMAKE_DL_LIBS})
survive_run(other_libc 60 "every key was its own" $<TARGET_FILE:survive_other_libc> $<TARGET_FILE:survive_other_libc_library>)
add_executable(survive_raw_children survive/raw_children.c)
target_link_libraries(survive_raw_children PRIVATE Threads::Threads ${CMAKE_DL_LIBS})
list(APPEND handlers survive_raw_children)
foreach(how syscall _Fork clone pointer left)
    survive_run(raw_children_${how} 300 "every child was whole" $<TARGET_FILE:survive_raw_children> ${how})
endforeach()
if(TARGET numalloc_static)
    add_executable(survive_fork_handlers_static survive/fork_handlers.c survive/fork_handlers_library.c)
    set_target_properties(survive_fork_handlers_static PROPERTIES LINKER_LANGUAGE C)
    target_link_libraries(survive_fork_handlers_static PRIVATE numalloc_static Threads::Threads)
    target_link_options(survive_fork_handlers_static PRIVATE -static)
    numalloc_test(survive.fork_handlers_static survive 120
        ${EXPECT} "all handlers ran" $<TARGET_FILE:survive_fork_handlers_static> alone)
    list(APPEND handlers survive_fork_handlers_static)
endif()
foreach(target ${handlers})
    target_compile_options(${target} PRIVATE -O2 -g -Wall -Wextra -fno-builtin)
endforeach()

# Programs with registered memory. The listener is loaded before our library and after it.
add_library(survive_registered_listener SHARED survive/registered_listener.c)
add_executable(survive_registered survive/registered.c)
target_link_libraries(survive_registered PRIVATE survive_registered_listener Threads::Threads ${CMAKE_DL_LIBS})
foreach(target survive_registered survive_registered_listener)
    target_compile_options(${target} PRIVATE -O2 -g -Wall -Wextra -fno-builtin)
endforeach()
set(LISTENER $<TARGET_FILE:survive_registered_listener>)
set(heard "every call went through libc")
foreach(place before after)
    preload_order(order ${place} ${LISTENER})
    numalloc_test(survive.registered_hooks_loaded_${place} survive 900
        ${EXPECT} ${heard} env LD_PRELOAD=${order} $<TARGET_FILE:survive_registered> hooks)
endforeach()
# Without the listener, whose own calls the filter would see.
add_executable(survive_registered_calls survive/registered.c survive/registered_nobody.c)
target_compile_options(survive_registered_calls PRIVATE -O2 -g -Wall -Wextra -fno-builtin)
target_link_libraries(survive_registered_calls PRIVATE Threads::Threads ${CMAKE_DL_LIBS})
survive_run(registered_calls 300 ${heard} $<TARGET_FILE:survive_registered_calls> calls)

# Which system calls malloc and free make: all others of theirs kill, in the programs of other tests.
add_library(survive_allowed_library SHARED survive/allowed_library.c)
target_compile_options(survive_allowed_library PRIVATE -O2 -g -Wall -Wextra -fno-builtin)
target_link_libraries(survive_allowed_library PRIVATE ${CMAKE_DL_LIBS})
target_include_directories(survive_allowed_library PRIVATE ${PROJECT_SOURCE_DIR}/include)
set(ALLOWED sh ${HERE}/one_node.sh env LD_PRELOAD=${LIBRARY}:$<TARGET_FILE:survive_allowed_library>)
function(allowed name program)
    numalloc_test(survive.allowed_${name} survive 900 ${ALLOWED} $<TARGET_FILE:${program}> ${ARGN})
endfunction()
foreach(program first_and_last many_mappings small_stacks own_operators neighbours)
    allowed(${program} survive_${program})
endforeach()
allowed(victim survive_victim strict)
allowed(waiting threads_waiting lists)
allowed(attributes threads_attributes)
allowed(api program_api --gtest_filter=-*resident_memory*)
numalloc_test(survive.allowed_really_kills survive 300
    sh -c "\"$@\"\ns=$?\n[ $s -ne 77 ] || exit 77\n[ $s -eq 159 ]" sh ${ALLOWED} NUMALLOC_STATISTICS=exit $<TARGET_FILE:survive_own_operators>)
list(APPEND ALLOWED NUMALLOC_TEST_FORKS_ALLOWED=1)
allowed(growing survive_growing strict)
allowed(endings threads_endings)

# Programs that filter their own system calls.
add_executable(survive_filtered survive/filtered.c)
target_compile_options(survive_filtered PRIVATE -O2 -g -Wall -Wextra -fno-builtin)
target_link_libraries(survive_filtered PRIVATE Threads::Threads)
foreach(how prctl syscall alone EINVAL "EINVAL later" EPERM "EPERM later" EACCES "ENOSYS later" kill "kill later" handler dlopen execveat)
    string(REPLACE " " "_" name ${how})
    separate_arguments(words UNIX_COMMAND ${how})
    survive_run(filtered_${name} 300 "the filter was kept" $<TARGET_FILE:survive_filtered> ${words})
endforeach()
if(CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
    survive_run(filtered_counter 300 "the filter was kept" $<TARGET_FILE:survive_filtered> counter)
endif()
# The library's handlers of signals pass them on.
foreach(option PROFILE GUARDED)
    numalloc_test(survive.filtered_signal_${option} survive 300
        sh -c "\"$@\"\ns=$?\n[ $s -ne 77 ] || exit 77\n[ $s -eq 143 ]" sh
        env NUMALLOC_${option}=1 NUMALLOC_PROFILE_FILE=none NUMALLOC_PROFILE_SIGNALS=1 ${PRELOAD} ${LIBRARY} $<TARGET_FILE:survive_filtered> signal)
endforeach()

add_library(survive_plugin MODULE survive/plugin.cpp)
target_compile_options(survive_plugin PRIVATE -Wall -Wextra)
survive_expect(dlopen_threads 120 "opened and closed" survive/dlopen_threads.cpp $<TARGET_FILE:survive_plugin>)
add_dependencies(survive_dlopen_threads survive_plugin)

add_library(survive_failing_new_library MODULE survive/failing_new_library.c)
survive_expect(failing_new 60 "new failed as it should" survive/failing_new.cpp $<TARGET_FILE:survive_failing_new_library>)
set_target_properties(survive_failing_new PROPERTIES ENABLE_EXPORTS ON)
add_dependencies(survive_failing_new survive_failing_new_library)
target_compile_options(survive_failing_new_library PRIVATE -Wall -Wextra)

add_library(survive_own_runtime MODULE survive/own_runtime.cpp)
target_compile_options(survive_own_runtime PRIVATE -Wall -Wextra)
target_link_options(survive_own_runtime PRIVATE -static-libstdc++ -static-libgcc)
add_executable(survive_opens_runtime survive/opens_runtime.c)
target_compile_options(survive_opens_runtime PRIVATE -Wall -Wextra)
target_link_libraries(survive_opens_runtime PRIVATE ${CMAKE_DL_LIBS})
foreach(scope local global)
    survive_run(own_runtime_${scope} 60 "new threw" $<TARGET_FILE:survive_opens_runtime> $<TARGET_FILE:survive_own_runtime> ${scope})
endforeach()
add_dependencies(survive_opens_runtime survive_own_runtime)

# Two libraries of one source: one is found by the other's RUNPATH only.
set(OPENED ${CMAKE_CURRENT_BINARY_DIR}/opened)
foreach(library caller hidden)
    add_library(survive_${library} MODULE survive/opened.cpp)
    target_compile_options(survive_${library} PRIVATE -Wall -Wextra -fno-builtin)
    target_link_libraries(survive_${library} PRIVATE ${CMAKE_DL_LIBS})
endforeach()
set_target_properties(survive_caller PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${OPENED} BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "$ORIGIN/hidden")
target_link_options(survive_caller PRIVATE -Wl,--enable-new-dtags)
set_target_properties(survive_hidden PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${OPENED}/hidden)
survive_expect(opening 60 opened survive/opening.cpp ${OPENED} share)
add_dependencies(survive_opening survive_caller survive_hidden)
# No block is in a bag of malloc's.
numalloc_test(survive.opening_guarded survive 60
    ${EXPECT} opened env NUMALLOC_GUARDED=1 ${PRELOAD} ${LIBRARY} $<TARGET_FILE:survive_opening> ${OPENED} share)
foreach(word drop keep)
    numalloc_test(survive.opening_${word} survive 60
        ${EXPECT} opened env NUMALLOC_DEEPBIND=${word} ${PRELOAD} ${LIBRARY} $<TARGET_FILE:survive_opening> ${OPENED} ${word})
endforeach()

# On the system's malloc, with the library opened by hand.
numalloc_program(survive_dlopened_library survive/dlopened_library.cpp)
if(NOT LIBRARY STREQUAL "none")
    numalloc_test(survive.dlopened_library survive 120
        ${EXPECT} "beside each other" $<TARGET_FILE:survive_dlopened_library> ${LIBRARY})
endif()

include(survive/other_libraries.cmake)

# A library that replaces what the allocator calls as it starts, and allocates in it, loaded before ours and behind it.
add_library(survive_allocating_libc MODULE survive/allocating_libc.c)
target_compile_options(survive_allocating_libc PRIVATE -Wall -Wextra)
target_link_libraries(survive_allocating_libc PRIVATE Threads::Threads ${CMAKE_DL_LIBS})
numalloc_program(survive_starts survive/starts.cpp)
target_link_libraries(survive_starts PRIVATE Threads::Threads ${CMAKE_DL_LIBS})
add_dependencies(survive_starts survive_allocating_libc)
foreach(place before after)
    set(BOTH $<TARGET_FILE:survive_allocating_libc>:${LIBRARY})
    if(place STREQUAL "after")
        set(BOTH ${LIBRARY}:$<TARGET_FILE:survive_allocating_libc>)
    endif()
    if(LIBRARY STREQUAL "none")
        set(BOTH $<TARGET_FILE:survive_allocating_libc>)
    endif()
    numalloc_test(survive.starts_${place} survive 60
        ${EXPECT} "all threads have started" env LD_PRELOAD=${BOTH} $<TARGET_FILE:survive_starts>)
endforeach()

# A library that replaces pthread_mutex_lock and allocates in it, loaded before ours and behind it.
add_library(survive_own_mutexes SHARED survive/own_mutexes.c)
add_executable(survive_mutexes survive/mutexes.c)
foreach(target survive_own_mutexes survive_mutexes)
    target_compile_options(${target} PRIVATE -O2 -g -Wall -Wextra -fno-builtin)
    target_link_libraries(${target} PRIVATE Threads::Threads ${CMAKE_DL_LIBS})
endforeach()
foreach(place before after)
    preload_order(order ${place} $<TARGET_FILE:survive_own_mutexes>)
    numalloc_test(survive.own_mutexes_loaded_${place} survive 300
        ${EXPECT} "every thread went on" env LD_PRELOAD=${order} $<TARGET_FILE:survive_mutexes>)
endforeach()

# A library that replaces exec and other calls that ours replaces, too, loaded before ours and behind it.
add_library(survive_own_calls SHARED survive/own_calls.c)
add_executable(survive_calls survive/calls.c)
foreach(target survive_own_calls survive_calls)
    target_compile_options(${target} PRIVATE -O2 -g -Wall -Wextra -fno-builtin -Wno-nonnull)
    target_link_libraries(${target} PRIVATE ${CMAKE_DL_LIBS})
endforeach()
foreach(place before after)
    preload_order(order ${place} $<TARGET_FILE:survive_own_calls>)
    numalloc_test(survive.own_calls_loaded_${place} survive 60
        ${EXPECT} "......... every call was seen" env LD_PRELOAD=${order} $<TARGET_FILE:survive_calls>)
endforeach()

# A name that ours replaces, for something else.
add_library(survive_own_clone_library SHARED survive/own_clone_library.c)
add_executable(survive_own_clone survive/own_clone.c)
target_link_libraries(survive_own_clone PRIVATE survive_own_clone_library)
survive_run(own_clone 60 "the library's clone was called" $<TARGET_FILE:survive_own_clone>)

add_executable(survive_robust survive/robust.c)
target_compile_options(survive_robust PRIVATE -O2 -g -Wall -Wextra -fno-builtin)
target_link_libraries(survive_robust PRIVATE Threads::Threads)
foreach(what held unmapped freed)
    survive_run(robust_${what} 60 "every thread ended" $<TARGET_FILE:survive_robust> ${what})
endforeach()

# Setuid: needs a library to link with.
if(NOT LIBRARY STREQUAL "none")
    numalloc_test(survive.setuid survive 60 ${HERE}/setuid.sh ${CMAKE_CXX_COMPILER} ${LIBRARY} ${CMAKE_CURRENT_SOURCE_DIR})
endif()

# Limits of address space, from 64 MiB up; prlimit sets them for the child only.
numalloc_program(survive_limited survive/limited.cpp)
foreach(limit 64 96 128 256 512 1024 8192 65536 2097152)
    math(EXPR bytes "${limit} * 1024 * 1024")
    numalloc_test(survive.address_space_${limit}_MiB survive 60
        ${EXPECT} "limits are held" prlimit --as=${bytes} ${PRELOAD} ${LIBRARY} $<TARGET_FILE:survive_limited> ${limit})
endforeach()
survive_expect(makes_room 60 "there was room" survive/makes_room.cpp)
numalloc_test(survive.address_space_unlimited survive 60
    ${EXPECT} "limits are held" ${PRELOAD} ${LIBRARY} $<TARGET_FILE:survive_limited> 0)

numalloc_program(survive_limit_rows survive/limit_rows.cpp)
numalloc_test(survive.limits survive 240 ${Python3_EXECUTABLE} ${HERE}/limits.py ${LIBRARY} $<TARGET_FILE:survive_limit_rows>)

numalloc_program(survive_committed survive/committed.cpp)
numalloc_test(survive.overcommit_2 survive 120
    ${HERE}/overcommit.sh ${PRELOAD} ${LIBRARY} $<TARGET_FILE:survive_committed>)
numalloc_full_only("a setting of the whole machine" survive.overcommit_2)
set_tests_properties(survive.overcommit_2 PROPERTIES RUN_SERIAL ON)

survive_test(locked 60 survive/locked.cpp)
numalloc_full_only("resident memory" survive.locked)
add_executable(survive_locked_small survive/locked_small.c)
numalloc_test(survive.locked_by_anybody survive 60
    ${Python3_EXECUTABLE} ${HERE}/unprivileged.py ${LIBRARY} $<TARGET_FILE:survive_locked_small>)
survive_expect(neighbours 60 "good neighbours" survive/neighbours.cpp)
numalloc_test(survive.aslr survive 60 ${HERE}/aslr.sh ${PRELOAD} ${LIBRARY} $<TARGET_FILE:survive_neighbours>)

numalloc_program(survive_crashing survive/crashing.cpp)
numalloc_test(survive.core survive 120
    ${Python3_EXECUTABLE} ${HERE}/core.py ${PRELOAD} ${LIBRARY} $<TARGET_FILE:survive_crashing>)
numalloc_full_only("the size of a core, in time" survive.core)

numalloc_program(survive_sleeping survive/sleeping.cpp)
numalloc_test(survive.gcore survive 200 ${Python3_EXECUTABLE} ${HERE}/gcore.py ${LIBRARY} $<TARGET_FILE:survive_sleeping>)
numalloc_full_only("the rights of a debugger" survive.gcore)

# ENOMEM from each system call in turn. One test a call, so that they run beside each other.
numalloc_program(survive_victim survive/victim.cpp)
numalloc_test(survive.emulated survive 200
    ${Python3_EXECUTABLE} ${HERE}/emulated.py ${LIBRARY} 16 $<TARGET_FILE:survive_limit_rows> large 16 start)
numalloc_test(survive.victim survive 60 ${EXPECT} done ${PRELOAD} ${LIBRARY} $<TARGET_FILE:survive_victim> strict)
foreach(call mmap mprotect munmap mremap madvise)
    numalloc_test(survive.enomem_${call} survive 900
        ${Python3_EXECUTABLE} ${HERE}/inject.py ${LIBRARY} $<TARGET_FILE:survive_victim> ${call})
endforeach()
numalloc_test(survive.enomem_others survive 1200
    ${Python3_EXECUTABLE} ${HERE}/inject.py ${LIBRARY} $<TARGET_FILE:survive_victim>
    brk mbind get_mempolicy set_mempolicy move_pages sched_getaffinity sched_setaffinity getcpu rseq membarrier prctl openat newfstatat
    read pread64 getdents64 getrandom sysinfo uname readlink clone3)
numalloc_test(survive.enomem_of_no_call_fails survive 60
    sh -c "! said=$(\"$@\") && echo \"$said\" | grep '^no call was made to fail$'" sh ${Python3_EXECUTABLE} ${HERE}/inject.py ${LIBRARY} $<TARGET_FILE:survive_victim> swapon)

# Blocks that the kernel moves: refused at each step of the way.
numalloc_program(survive_growing survive/growing.cpp)
numalloc_test(survive.growing survive 60 ${EXPECT} done ${PRELOAD} ${LIBRARY} $<TARGET_FILE:survive_growing> strict)
numalloc_test(survive.enomem_growing survive 900
    ${Python3_EXECUTABLE} ${HERE}/inject.py ${LIBRARY} $<TARGET_FILE:survive_growing> mremap mmap)

numalloc_program(survive_misuse survive/misuse.cpp)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(survive_misuse PRIVATE -Wno-use-after-free)   # the misuse is the point
endif()
numalloc_test(survive.misuse survive 120
    ${Python3_EXECUTABLE} ${HERE}/misuse.py ${PRELOAD} ${LIBRARY} $<TARGET_FILE:survive_misuse>)
# With a stack: each way to such an end, in each state of a thread.
if(NOT LIBRARY STREQUAL "none")
    numalloc_test(survive.backtrace survive 120
        ${Python3_EXECUTABLE} ${HERE}/backtrace.py ${LIBRARY} $<TARGET_FILE:survive_misuse>
        free_stack=free free_inside_64=free free_inside_big=free double_later_64=free double_big=free
        later_inside_5000=free double_by_a_new_thread=free double_without_a_heap=free
        later_write_after_free=found damage_of_zeros=found damage_link_to_a_global=found)
endif()
if(TARGET numalloc_hardened AND NOT NUMALLOC_CHECKS)
    numalloc_test(survive.backtrace_hardened survive 120
        ${Python3_EXECUTABLE} ${HERE}/backtrace.py $<TARGET_FILE:numalloc_hardened> $<TARGET_FILE:survive_misuse>
        free_inside_64=free double_warm_64=free damage_of_zeros=found)
endif()

# Nothing shows: a process and its children look as they do without the library.
numalloc_program(survive_traces survive/traces.cpp)
numalloc_test(survive.traces survive 60 ${HERE}/traces.sh ${PRELOAD} ${LIBRARY} $<TARGET_FILE:survive_traces>)

# Containers without /sys, /proc or /dev, and a program whose standard descriptors are closed.
foreach(place sys proc dev)
    numalloc_test(survive.without_${place} survive 60
        ${HERE}/bare.sh /${place} ${PRELOAD} ${LIBRARY} $<TARGET_FILE:survive_victim> strict)
endforeach()
numalloc_test(survive.descriptors_closed survive 60
    ${EXPECT} done sh -c "exec \"$@\" 0<&- 2>&-" sh ${PRELOAD} ${LIBRARY} $<TARGET_FILE:survive_victim> strict)

# Programs under sanitizers: the library steps aside.
function(survive_sanitized name title compiler)
    cmake_parse_arguments(SANITIZED "" "RUNTIME" "" ${ARGN})
    if(NOT LIBRARY STREQUAL "none")
        numalloc_test(survive.sanitizer_${name} survive 300 env RUNTIME=${SANITIZED_RUNTIME}
            ${HERE}/sanitized.sh ${LIBRARY} ${HERE}/sanitized.cpp ${title} ${compiler} ${SANITIZED_UNPARSED_ARGUMENTS})
    endif()
endfunction()
survive_sanitized(gcc_thread ThreadSanitizer g++ -fsanitize=thread)
# The run-time forgives the dynamic linker's own blocks by the caller of malloc, which unoptimised code hides.
if(NOT NUMALLOC_CHECKS)
    survive_sanitized(gcc_leak LeakSanitizer g++ -fsanitize=leak)
endif()
survive_sanitized(gcc_address AddressSanitizer g++ -fsanitize=address RUNTIME libasan.so)
survive_sanitized(clang_address AddressSanitizer clang++ -fsanitize=address)
survive_sanitized(clang_thread ThreadSanitizer clang++ -fsanitize=thread)
survive_sanitized(clang_memory MemorySanitizer clang++ -fsanitize=memory)
survive_sanitized(clang_leak LeakSanitizer clang++ -fsanitize=leak)
