# Under every way of binding: on a machine of one node nothing is bound, elsewhere all must hold.
numalloc_program(threads_attributes threads/attributes.cpp)
numalloc_program(threads_endings threads/endings.cpp)
numalloc_program(threads_many threads/many.cpp)
foreach(binding auto interleave saturate none)
    numalloc_test(threads.attributes_${binding} programs 60 ${EXPECT} "attributes are kept"
        ${PRELOAD} ${LIBRARY} env NUMALLOC_BINDING=${binding} $<TARGET_FILE:threads_attributes>)
endforeach()
numalloc_test(threads.endings programs 120 ${EXPECT} "threads end well" ${PRELOAD} ${LIBRARY} $<TARGET_FILE:threads_endings>)
numalloc_test(threads.many programs 120 ${PRELOAD} ${LIBRARY} $<TARGET_FILE:threads_many>)

numalloc_program(threads_late threads/late.cpp)
target_include_directories(threads_late PRIVATE ${PROJECT_SOURCE_DIR}/include)
foreach(mode heaps resident)
    numalloc_test(threads.late_${mode} programs 120 ${PRELOAD} ${LIBRARY} $<TARGET_FILE:threads_late> ${mode})
endforeach()

# The library that binds threads and leaves malloc alone: nothing changes for a program, whoever's malloc it has.
set(binding ${CMAKE_CURRENT_SOURCE_DIR}/threads/binding.sh $<TARGET_FILE:numalloc_binding> $<TARGET_FILE:threads_attributes>
    $<TARGET_FILE:survive_children>)
numalloc_test(binding.harmless programs 600 ${binding})
numalloc_test(binding.harmless_beside_others programs 2400 ${binding}
    libjemalloc.so.2 libtcmalloc_minimal.so.4 libmimalloc.so.2 libtbbmalloc_proxy.so.2)
numalloc_full_only("other allocators' own faults" binding.harmless_beside_others)

# What the lists of threads hold that wait.
numalloc_program(threads_waiting threads/waiting.cpp)
target_include_directories(threads_waiting PRIVATE ${PROJECT_SOURCE_DIR}/include)
foreach(mode lists requests trim resident busy ends forks)
    numalloc_test(threads.waiting_${mode} programs 120 ${PRELOAD} ${LIBRARY} $<TARGET_FILE:threads_waiting> ${mode})
endforeach()
# Milliseconds since the machine began are more than 31 bits after 25 days, and than 32 after 50.
foreach(days 30 60)
    numalloc_test(threads.waiting_resident_after_${days}_days programs 120 ${CMAKE_CURRENT_SOURCE_DIR}/threads/uptime.sh ${days}
        ${PRELOAD} ${LIBRARY} $<TARGET_FILE:threads_waiting> resident)
    numalloc_full_only("resident memory" threads.waiting_resident_after_${days}_days)
endforeach()
numalloc_full_only("resident memory" threads.many threads.late_resident threads.waiting_resident)
numalloc_full_only("five seconds each" threads.waiting_busy threads.waiting_ends threads.waiting_forks)
