# Guarded objects: one bug each, what is said of it, and programs without one.
if(NOT LIBRARY STREQUAL "none")
    numalloc_program(guarded guarded/guarded.cpp)
    foreach(what whole threads forked overflow_write overflow_read underflow_write underflow_read freed_write freed_read
            barrier double_free inside_free beside odd_overflow reused_late foreign_fault own_handler sampled)
        numalloc_test(guarded.${what} bugs 120
            ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/guarded/check_guarded.py ${LIBRARY} $<TARGET_FILE:guarded> ${what})
    endforeach()
    if(TARGET numalloc_hardened AND NOT NUMALLOC_CHECKS)
        numalloc_test(guarded.hardened_whole bugs 120 ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/guarded/check_guarded.py
            $<TARGET_FILE:numalloc_hardened> $<TARGET_FILE:guarded> whole)
    endif()
    foreach(program python perl sqlite)
        foreach(part 1 100)
            numalloc_test(guarded.${program}_${part} real 300
                env NUMALLOC_GUARDED=1/${part} ${CMAKE_CURRENT_SOURCE_DIR}/real/${program}.sh ${LIBRARY})
        endforeach()
    endforeach()
endif()
