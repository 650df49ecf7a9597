numalloc_program(program_model model/model.cpp)
numalloc_test(model programs 1200 ${PRELOAD} ${LIBRARY} env NUMALLOC_TEST_SECONDS=2 $<TARGET_FILE:program_model>)
numalloc_test(model.long programs 1200 ${PRELOAD} ${LIBRARY} $<TARGET_FILE:program_model>)
numalloc_full_only("its length" model.long)
numalloc_test(model.purge_at_once programs 120
    ${PRELOAD} ${LIBRARY} env NUMALLOC_PURGE_DELAY=0 NUMALLOC_TEST_SECONDS=2 $<TARGET_FILE:program_model>)
numalloc_test(model.one_thread_a_time programs 120
    ${PRELOAD} ${LIBRARY} env NUMALLOC_TEST_THREADS=1 NUMALLOC_TEST_SECONDS=3 NUMALLOC_BINDING=none $<TARGET_FILE:program_model>)
# The model is of the interface; the name of the library is another here. As users run it: the debug build does not make it.
if(TARGET numalloc_hardened AND NOT NUMALLOC_CHECKS)
    numalloc_test(model.hardened programs 120 env NUMALLOC_TEST_ANY=1 NUMALLOC_TEST_SECONDS=4
        ${PRELOAD} $<TARGET_FILE:numalloc_hardened> $<TARGET_FILE:program_model>)
endif()
# Objects of megabytes that grow and shrink beside each other.
numalloc_test(model.large programs 120
    ${PRELOAD} ${LIBRARY} env NUMALLOC_TEST_LARGE=60 NUMALLOC_TEST_SECONDS=3 $<TARGET_FILE:program_model>)
