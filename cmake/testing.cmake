# Which tests gate a change: those without the label `full`. CONTRIBUTING.md has the rules. The others run in
# `sh scripts/test.sh --full` only.

# numalloc_full_only(REASON TEST...): the verdict of these tests depends on more than the tree.
function(numalloc_full_only reason)
  foreach(test ${ARGN})
    if(TEST ${test})
      set_property(TEST ${test} APPEND PROPERTY LABELS full)
    endif()
  endforeach()
endfunction()

# numalloc_time_limit(SECONDS OUT): at least ten minutes, so that a limit finds hangs and not busy machines. A test of the
# gate takes less than a twentieth of it.
function(numalloc_time_limit seconds out)
  if(seconds LESS 600)
    set(seconds 600)
  endif()
  set(${out} ${seconds} PARENT_SCOPE)
endfunction()
