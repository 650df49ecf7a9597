numalloc_program(program_api
    api/main.cpp api/malloc_test.cpp api/realloc_test.cpp api/aligned_test.cpp api/glibc_only_names_test.cpp
    api/new_delete_test.cpp api/introspection_test.cpp)
target_link_libraries(program_api PRIVATE GTest::gtest)
target_precompile_headers(program_api PRIVATE <gtest/gtest.h>)

# One process a suite: each starts from a fresh heap, and a crash names its suite.
foreach(suite Malloc Calloc Free Libc Realloc Reallocarray PosixMemalign Aligned AlignedAlloc Memalign Valloc Pvalloc
        Cfree FreeSized FreeAlignedSized Names New Delete NewHandler Mallinfo2 Mallinfo MallocTrim Mallopt MallocInfo)
    numalloc_test(api.${suite} programs 120 ${PRELOAD} ${LIBRARY} $<TARGET_FILE:program_api> --gtest_filter=${suite}.*-*resident_memory*)
endforeach()
foreach(option PROFILE GUARDED)
    numalloc_test(api.aligned_${option} programs 120 ${PRELOAD} ${LIBRARY}
        env NUMALLOC_${option}=1 NUMALLOC_PROFILE_FILE=none $<TARGET_FILE:program_api> --gtest_filter=PosixMemalign.*:*Align*.*-*resident_memory*)
endforeach()
numalloc_test(api.resident programs 120 ${PRELOAD} ${LIBRARY} $<TARGET_FILE:program_api> --gtest_filter=*resident_memory*)
numalloc_full_only("resident memory" api.resident)
numalloc_test(api.no_such_suite_fails programs 60
    sh -c "! said=$(\"$@\") && echo \"$said\" | grep '^no test has that name$'" sh ${PRELOAD} ${LIBRARY} $<TARGET_FILE:program_api> --gtest_filter=NoSuchSuite.*)

# The interface of numalloc.h needs the library at link time too.
if(TARGET numalloc_shared)
    set(places api/main.cpp api/nodes_test.cpp api/on_node_test.cpp api/partitioned_test.cpp api/memory_placement_test.cpp
        api/heaps_test.cpp api/containers_test.cpp api/sparse_calloc_test.cpp api/statistics_test.cpp api/where_test.cpp
        api/node_sets_test.cpp)
    # Compiled once: the tests do not ask which library they are linked with.
    add_library(places OBJECT EXCLUDE_FROM_ALL ${places})
    target_link_libraries(places PRIVATE program_support GTest::gtest)
    target_precompile_headers(places PRIVATE <gtest/gtest.h> <thread>)
    target_include_directories(places PRIVATE ${PROJECT_SOURCE_DIR}/include)
    numalloc_program(program_places $<TARGET_OBJECTS:places>)
    target_link_libraries(program_places PRIVATE numalloc_shared GTest::gtest)
    numalloc_program(program_places_static $<TARGET_OBJECTS:places>)
    target_link_libraries(program_places_static PRIVATE numalloc_static GTest::gtest)
    foreach(suite Nodes OnNode Psm ThreadPlacement Move Rehome Heaps Containers SizeClasses Statistics Options Version
            Where Blocks NodeSets)
        numalloc_test(api.${suite} programs 120 $<TARGET_FILE:program_places> --gtest_filter=${suite}.*-*resident_memory*)
        numalloc_test(api.${suite}.static programs 120
            env NUMALLOC_TEST_ANY=1 $<TARGET_FILE:program_places_static> --gtest_filter=${suite}.*-*resident_memory*)
    endforeach()
    foreach(kind places places_static)
        numalloc_test(api.resident_${kind} programs 120
            env NUMALLOC_TEST_ANY=1 $<TARGET_FILE:program_${kind}> --gtest_filter=*resident_memory*:Ways/SparseCalloc*)
        numalloc_full_only("resident memory" api.resident_${kind})
    endforeach()
endif()

# Each object of the hardened library is 16 bytes shorter, what is in quarantine counts as in use, and a big object's memory goes
# back at its free: no exact figures there.
if(TARGET numalloc_hardened AND NOT NUMALLOC_CHECKS)
    set(exact Blocks.are_resized*:Move.only_big*:Statistics.*:Options.May*:Options.PurgeDelayTakesEffect:Mallinfo*:*resident_memory*:Ways/SparseCalloc*)
    foreach(program api places)
        numalloc_test(api.hardened_${program} programs 900 ${PRELOAD} $<TARGET_FILE:numalloc_hardened>
            env NUMALLOC_TEST_ANY=1 $<TARGET_FILE:program_${program}> --gtest_filter=-${exact})
    endforeach()
endif()

# errno must survive returns to the system on every free, too.
numalloc_test(api.Free.purge_at_once programs 900
    ${PRELOAD} ${LIBRARY} env NUMALLOC_PURGE_DELAY=0 $<TARGET_FILE:program_api> --gtest_filter=Free.*:Calloc.*:Realloc.*-*resident_memory*)

numalloc_program(print_introspection api/print_introspection.cpp)
numalloc_test(api.introspection_text programs 60
    ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/api/check_introspection.py
    ${PRELOAD} ${LIBRARY} $<TARGET_FILE:print_introspection>)

numalloc_program(statistics_program api/statistics_program.cpp)
if(NOT LIBRARY STREQUAL "none")
    numalloc_test(api.statistics_occasions programs 120
        ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/api/check_statistics.py ${PRELOAD} ${LIBRARY} $<TARGET_FILE:statistics_program>)
endif()

# Options come from the environment and complain in one line.
numalloc_program(small_program api/small_program.cpp)
if(NOT LIBRARY STREQUAL "none")
    numalloc_test(api.options programs 120
        ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/api/check_options.py
        ${CMAKE_CURRENT_SOURCE_DIR}/../../include/numalloc/options.def $<IF:$<BOOL:${NUMALLOC_EXPERIMENTS}>,experiments,users> ${PRELOAD} ${LIBRARY} $<TARGET_FILE:small_program>)
endif()

# Tracers find the tracepoints, and their arguments.
if(NOT LIBRARY STREQUAL "none")
    numalloc_test(api.tracepoints programs 60
        ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/api/check_tracepoints.py ${LIBRARY} $<TARGET_FILE:small_program>)
    set_tests_properties(api.tracepoints PROPERTIES SKIP_RETURN_CODE 77)
endif()

# What asks for huge pages.
numalloc_program(huge_pages api/huge_pages.cpp)
if(NOT LIBRARY STREQUAL "none")
    numalloc_test(api.huge_pages programs 60 ${PRELOAD} ${LIBRARY} $<TARGET_FILE:huge_pages> auto)
    # The library asks for huge pages where the processor's time for a first touch says that they pay.
    numalloc_full_only("processor time of a first touch" api.huge_pages)
    foreach(thp system auto on off)
        numalloc_test(api.huge_pages_${thp} programs 60 ${PRELOAD} ${LIBRARY} env NUMALLOC_THP=${thp} $<TARGET_FILE:huge_pages> ${thp})
        numalloc_full_only("processor time of a first touch" api.huge_pages_${thp})
    endforeach()
endif()

# The archive, in a dynamic and in a wholly static program.
if(TARGET numalloc_static)
    foreach(kind dynamic static)
        add_executable(api_archive_${kind} api/static_program.cpp)
        target_compile_features(api_archive_${kind} PRIVATE cxx_std_20)
        target_compile_options(api_archive_${kind} PRIVATE -O2 -Wall -Wextra -fno-builtin)
        target_link_libraries(api_archive_${kind} PRIVATE numalloc_static Threads::Threads)
        if(kind STREQUAL "static")
            target_link_options(api_archive_${kind} PRIVATE -static)
        endif()
        numalloc_test(api.archive_${kind} programs 60
            ${CMAKE_CURRENT_SOURCE_DIR}/expect.sh "linked in" $<TARGET_FILE:api_archive_${kind}>)
        numalloc_test(api.archive_${kind}_statistics programs 60
            env NUMALLOC_STATISTICS=exit sh -c "\"$0\" 2>&1 | grep '^numalloc .*process'" $<TARGET_FILE:api_archive_${kind}>)
    endforeach()
endif()
