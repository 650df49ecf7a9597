# The heap profile of a program that knows what it allocates. -fno-omit-frame-pointer is not needed; tail calls are avoided.
numalloc_program(profiled profile/profiled.cpp)
if(NOT LIBRARY STREQUAL "none")
    foreach(what leak threads grow fork coroutines signals once)
        numalloc_test(profile.${what} programs 300
            ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/profile/check_profile.py ${what} ${LIBRARY} $<TARGET_FILE:profiled>)
    endforeach()
endif()
