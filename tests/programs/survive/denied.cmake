# What container runtimes deny. The program's output must not change and stderr must stay silent.
add_executable(deny survive/deny.c)
target_compile_options(deny PRIVATE -Wall -Wextra -O1)
add_executable(survive_denied_calls survive/denied_calls.cpp)
target_link_libraries(survive_denied_calls PRIVATE program_support)
set(WITHOUT_RESIDENT --gtest_filter=-*resident_memory*:Ways/SparseCalloc*)
set(DENIABLE mbind get_mempolicy set_mempolicy move_pages madvise sched_setaffinity getcpu rseq membarrier mremap)
string(REPLACE ";" "," DENY_ALL "${DENIABLE}")
foreach(error EPERM ENOSYS)
    foreach(call ${DENIABLE} ${DENY_ALL})
        string(REPLACE "," "_" name "${call}")
        if(call STREQUAL DENY_ALL)
            set(name all)
        endif()
        numalloc_test(survive.deny_${error}_${name} survive 60
            ${EXPECT} done $<TARGET_FILE:deny> ${error} ${call} ${PRELOAD} ${LIBRARY} $<TARGET_FILE:survive_victim> strict)
    endforeach()
    if(TARGET program_places)
        numalloc_test(survive.deny_${error}_places survive 900 $<TARGET_FILE:deny> ${error} ${DENY_ALL} $<TARGET_FILE:program_places> ${WITHOUT_RESIDENT})
    endif()
    # Not among what containers deny: no trial mapping may be in the way of the heap.
    numalloc_test(survive.deny_${error}_munmap survive 60
        ${EXPECT} done $<TARGET_FILE:deny> ${error} munmap ${PRELOAD} ${LIBRARY} $<TARGET_FILE:survive_victim> strict)
    numalloc_test(survive.deny_${error}_really_denies survive 60
        ${EXPECT} denied $<TARGET_FILE:deny> ${error} ${DENY_ALL} $<TARGET_FILE:survive_denied_calls> ${error} ${DENY_ALL})
    numalloc_test(survive.deny_${error}_python survive 60
        ${EXPECT} "332833500 True" $<TARGET_FILE:deny> ${error} ${DENY_ALL} ${PRELOAD} ${LIBRARY} /usr/bin/python3 -c
        "import concurrent.futures as f, os\np = f.ThreadPoolExecutor(4)\nprint(sum(p.map(lambda i: i * i, range(1000))), 'libnumalloc' in open('/proc/self/maps').read() or 'NUMALLOC_TEST_ANY' in os.environ)")
endforeach()

# Where a filter kills for them: on a machine of one node nothing that has to do with nodes is asked.
set(OF_NODES get_mempolicy,mbind,set_mempolicy,migrate_pages,move_pages,set_mempolicy_home_node,getcpu)
set(KILL sh ${HERE}/one_node.sh $<TARGET_FILE:deny> KILL ${OF_NODES})
numalloc_test(survive.deny_KILL_victim survive 60
    ${EXPECT} done ${KILL} ${PRELOAD} ${LIBRARY} $<TARGET_FILE:survive_victim> strict)
numalloc_test(survive.deny_KILL_children survive 120
    ${EXPECT} "all children did what they should" ${KILL} ${PRELOAD} ${LIBRARY} $<TARGET_FILE:survive_children>)
numalloc_test(survive.deny_KILL_really_kills survive 60
    sh -c "\"$@\" || [ $? -eq 159 ]" sh $<TARGET_FILE:deny> KILL mbind $<TARGET_FILE:survive_denied_calls> ENOSYS mbind)
if(TARGET program_places)
    numalloc_test(survive.deny_KILL_places survive 600 ${KILL} $<TARGET_FILE:program_places> ${WITHOUT_RESIDENT})
endif()
