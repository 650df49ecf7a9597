# Figures with bounds. They take the machine as it is, but not beside each other: --full only, but for counts of instructions.
numalloc_program(memory_returns figures/memory_returns.cpp)
numalloc_test(figures.memory_returns programs 300 ${PRELOAD} ${LIBRARY} $<TARGET_FILE:memory_returns>)
set_tests_properties(figures.memory_returns PROPERTIES RUN_SERIAL ON)

numalloc_program(phases figures/phases.cpp)
foreach(threads 1 4)
    numalloc_test(figures.phases_${threads} programs 120 ${PRELOAD} ${LIBRARY} $<TARGET_FILE:phases> ${threads})
endforeach()

# Against glibc's malloc in the same program.
foreach(what none some)
    numalloc_test(figures.python_phases_${what} programs 120
        ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/figures/python_phases.py ${PRELOAD} ${LIBRARY} ${what})
endforeach()

# Instructions and start-up are promised of what users run only.
if(NOT NUMALLOC_CHECKS)
    numalloc_program(startup figures/startup.cpp)
    numalloc_test(figures.startup programs 120 $<TARGET_FILE:startup> ${LIBRARY})
    set_tests_properties(figures.startup PROPERTIES RUN_SERIAL ON)

    # The same objects, linked with a deterministic clock.
    add_library(numalloc_steady SHARED ${NUMALLOC_SHARED_OBJECTS} figures/steady_clock.cpp)
    numalloc_exports(numalloc_steady api/symbols.def api/binding_symbols.def)
    target_link_options(numalloc_steady PRIVATE -Wl,--wrap=_ZN8numalloc2os12millisecondsEv)
    target_compile_options(numalloc_steady PRIVATE -std=c++20 -fvisibility=hidden)
    set_target_properties(numalloc_steady PROPERTIES OUTPUT_NAME numalloc-steady)
    numalloc_program(instructions figures/instructions.cpp)
    numalloc_test(figures.instructions programs 900
        ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/figures/instructions.py $<TARGET_FILE:numalloc_steady> $<TARGET_FILE:instructions>)

    # There malloc's address is the program's, whosever malloc it is.
    numalloc_program(instructions_fixed figures/instructions.cpp)
    target_compile_options(instructions_fixed PRIVATE -fno-pie)
    target_link_options(instructions_fixed PRIVATE -no-pie)
    numalloc_test(figures.instructions_fixed programs 300 env NUMALLOC_TEST_ANY=1
        ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/figures/instructions.py $<TARGET_FILE:numalloc_steady> $<TARGET_FILE:instructions_fixed> new64 array64)

    # The programs of bench/ are built beside this library only.
    if(NUMALLOC_BUILD_BENCHMARKS)
        numalloc_test(figures.counts programs 600
            ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/figures/counts.py $<TARGET_FILE:numalloc_steady> ${CMAKE_BINARY_DIR}/bench
            ${CMAKE_CURRENT_SOURCE_DIR}/figures/counts.json)
    endif()
endif()
numalloc_full_only("resident memory, page faults, time" figures.memory_returns figures.phases_1 figures.phases_4
    figures.python_phases_none figures.python_phases_some figures.startup figures.counts)
