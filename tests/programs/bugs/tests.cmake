# What is found of programs with one bug each, and what is not: a golden file by size, of the library as users run it.
if(NOT LIBRARY STREQUAL "none" AND CMAKE_BUILD_TYPE STREQUAL "Release" AND NOT NUMALLOC_CHECKS
   AND CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
    numalloc_program(bugs bugs/bugs.cpp bugs/scene.cpp)
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
        target_compile_options(bugs PRIVATE -Wno-mismatched-new-delete -Wno-use-after-free)   # the bugs are the point
    endif()
    foreach(size small medium big)
        numalloc_test(bugs.${size} bugs 600
            ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/bugs/check.py $<TARGET_FILE:bugs> ${LIBRARY} ${size})
        numalloc_test(bugs.hardened_${size} bugs 900
            ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/bugs/check.py $<TARGET_FILE:bugs> $<TARGET_FILE:numalloc_hardened> ${size} hardened)
    endforeach()
endif()
