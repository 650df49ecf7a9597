# Libraries in front of ours, behind it, and code of no library.
add_library(survive_wrapper MODULE survive/wrapper.c)
target_compile_options(survive_wrapper PRIVATE -Wall -Wextra -fno-builtin)
target_link_libraries(survive_wrapper PRIVATE ${CMAKE_DL_LIBS})
numalloc_program(survive_wrapped survive/wrapped.cpp)
set(BOTH $<TARGET_FILE:survive_wrapper>:${LIBRARY})
if(LIBRARY STREQUAL "none")
    set(BOTH $<TARGET_FILE:survive_wrapper>)
endif()
numalloc_test(survive.wrapped survive 60
    ${EXPECT} wrapped env LD_PRELOAD=${BOTH} $<TARGET_FILE:survive_wrapped>)

# A program that is linked with another malloc, and calls functions that only that one has.
find_library(JEMALLOC_LIBRARY libjemalloc.so.2)
if(JEMALLOC_LIBRARY)
    numalloc_program(survive_beside_jemalloc survive/beside_jemalloc.c)
    target_link_libraries(survive_beside_jemalloc PRIVATE ${JEMALLOC_LIBRARY})
    numalloc_test(survive.beside_jemalloc survive 60
        ${EXPECT} "each block came to its own malloc" ${PRELOAD} ${LIBRARY} $<TARGET_FILE:survive_beside_jemalloc>)
    if(TARGET numalloc_hardened)
        numalloc_test(hardened.beside_jemalloc survive 60
            ${EXPECT} "each block came to its own malloc" ${PRELOAD} $<TARGET_FILE:numalloc_hardened> $<TARGET_FILE:survive_beside_jemalloc>)
    endif()
endif()

# A library in front of ours that replaces dlsym.
add_library(survive_own_dlsym MODULE survive/own_dlsym.c)
target_compile_options(survive_own_dlsym PRIVATE -Wall -Wextra)
target_link_libraries(survive_own_dlsym PRIVATE ${CMAKE_DL_LIBS})
numalloc_program(survive_threads_and_children survive/threads_and_children.c)
set(BOTH $<TARGET_FILE:survive_own_dlsym>:${LIBRARY})
if(LIBRARY STREQUAL "none")
    set(BOTH $<TARGET_FILE:survive_own_dlsym>)
endif()
numalloc_test(survive.own_dlsym survive 60
    ${EXPECT} "a thread, a child and a program" env LD_PRELOAD=${BOTH} $<TARGET_FILE:survive_threads_and_children>)
add_dependencies(survive_threads_and_children survive_own_dlsym)

# Generated code in the stack of a sampled call.
numalloc_program(survive_generated_code survive/generated_code.c)
target_link_libraries(survive_generated_code PRIVATE gcc_s)
foreach(mode PROFILE=4K GUARDED=1/20)
    string(REGEX REPLACE "=.*" "" name ${mode})
    numalloc_test(survive.generated_code_${name} survive 60
        ${EXPECT} "allocated beneath generated code" ${PRELOAD} ${LIBRARY}
        env NUMALLOC_${mode} NUMALLOC_PROFILE_FILE=/dev/null $<TARGET_FILE:survive_generated_code>)
endforeach()

# A library behind ours that replaces clock_gettime and allocates in it.
add_library(survive_own_clock MODULE survive/own_clock.c)
target_compile_options(survive_own_clock PRIVATE -Wall -Wextra)
numalloc_program(survive_clocked survive/clocked.cpp)
target_link_libraries(survive_clocked PRIVATE ${CMAKE_DL_LIBS})
set(BOTH ${LIBRARY}:$<TARGET_FILE:survive_own_clock>)
if(LIBRARY STREQUAL "none")
    set(BOTH $<TARGET_FILE:survive_own_clock>)
endif()
numalloc_test(survive.clocked survive 60
    ${EXPECT} "the clock is the program's" env LD_PRELOAD=${BOTH} $<TARGET_FILE:survive_clocked>)
add_dependencies(survive_clocked survive_own_clock)
