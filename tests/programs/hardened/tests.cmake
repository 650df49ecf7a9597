# What the hardened library does to free memory.
if(TARGET numalloc_hardened AND NOT NUMALLOC_CHECKS)
    numalloc_program(hardened hardened/hardened.cpp)
    foreach(what order words strict guards many)
        numalloc_test(hardened.${what} programs 60
            ${EXPECT} done ${PRELOAD} $<TARGET_FILE:numalloc_hardened> $<TARGET_FILE:hardened> ${what})
    endforeach()
    foreach(case fault over_write over_read under_write shrunk grown moved aligned bag)
        numalloc_test(hardened.${case} programs 60 ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/hardened/check_fault.py
            $<TARGET_FILE:numalloc_hardened> $<TARGET_FILE:hardened> ${case})
    endforeach()
    numalloc_test(hardened.enomem survive 400
        ${Python3_EXECUTABLE} ${HERE}/inject.py $<TARGET_FILE:numalloc_hardened> $<TARGET_FILE:hardened> mprotect madvise)
endif()
