# What the hardened library does to free memory.
if(TARGET numalloc_hardened AND NOT NUMALLOC_CHECKS)
    numalloc_program(hardened hardened/hardened.cpp)
    foreach(what order words strict)
        numalloc_test(hardened.${what} programs 60
            ${EXPECT} done ${PRELOAD} $<TARGET_FILE:numalloc_hardened> $<TARGET_FILE:hardened> ${what})
    endforeach()
    numalloc_test(hardened.resident programs 60
        ${EXPECT} done ${PRELOAD} $<TARGET_FILE:numalloc_hardened> $<TARGET_FILE:hardened> strict)
    numalloc_full_only("resident memory" hardened.resident)
    numalloc_test(hardened.fault programs 60
        ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/hardened/check_fault.py $<TARGET_FILE:numalloc_hardened> $<TARGET_FILE:hardened>)
    if(TARGET survive_leftovers)
        numalloc_test(hardened.leftovers programs 60 ${EXPECT} "no call leaves a mark behind" ${PRELOAD}
            $<TARGET_FILE:numalloc_hardened> env NUMALLOC_PURGE_DELAY=-1 $<TARGET_FILE:survive_leftovers>)
    endif()
    numalloc_program(hardened_handlers hardened/handlers.cpp)
    numalloc_test(hardened.handlers programs 60
        ${EXPECT} done ${PRELOAD} $<TARGET_FILE:numalloc_hardened> $<TARGET_FILE:hardened_handlers>)
    numalloc_test(hardened.enomem survive 1200
        ${Python3_EXECUTABLE} ${HERE}/inject.py $<TARGET_FILE:numalloc_hardened> $<TARGET_FILE:hardened> mprotect madvise)
endif()
