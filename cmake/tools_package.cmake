# The Debian package numalloc-tools: the command, the Python packages of which Debian 12 has too old ones (packaging/debian/bundled.txt,
# which pip takes from PyPI while the package is made), and the manual pages. No other kind of package has it.
set(debian ${PROJECT_SOURCE_DIR}/packaging/debian)
set(tools_folder lib/numalloc)

# CPack itself removes what an earlier run has staged in the folder of its own, but not what is in ours.
install(CODE "
  set(made \"${CMAKE_CURRENT_BINARY_DIR}/tools-package\")
  file(REMOVE_RECURSE \"\${made}\")
  function(made_by)
    execute_process(COMMAND \${ARGN} RESULT_VARIABLE status)
    if(NOT status EQUAL 0)
      message(FATAL_ERROR \"\${ARGN}: exit status \${status}\")
    endif()
  endfunction()
  made_by(\"${NUMALLOC_TOOLS_PYTHON}\" -m pip install --quiet --disable-pip-version-check --no-deps --no-compile --require-hashes
    --only-binary :all: --platform any --implementation py --abi none --python-version 3.11
    --target \"\${made}/python\" --requirement \"${debian}/bundled.txt\")
  file(REMOVE_RECURSE \"\${made}/python/bin\")
  made_by(\"${CMAKE_COMMAND}\" -E env \"PYTHONPATH=${PROJECT_SOURCE_DIR}/tools/src\" PYTHONDONTWRITEBYTECODE=1
    \"${NUMALLOC_TOOLS_PYTHON}\" -c \"__import__('numalloc_tools.cli').cli.main()\" man --output \"\${made}/man\")
  file(GLOB_RECURSE pages \"\${made}/man/*\")
  made_by(gzip -9n \${pages})
" COMPONENT tools EXCLUDE_FROM_ALL)
install(DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/tools-package/python/ DESTINATION ${tools_folder} COMPONENT tools EXCLUDE_FROM_ALL)
install(DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/tools-package/man/ DESTINATION share/man COMPONENT tools EXCLUDE_FROM_ALL)
# In the sources the tables are links to the library's.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/tools/src/numalloc_tools DESTINATION ${tools_folder} COMPONENT tools EXCLUDE_FROM_ALL
  PATTERN __pycache__ EXCLUDE PATTERN tables EXCLUDE)
install(FILES include/numalloc/numalloc.h include/numalloc/options.def include/numalloc/statistics.def
  DESTINATION ${tools_folder}/numalloc_tools/tables COMPONENT tools EXCLUDE_FROM_ALL)
install(PROGRAMS ${debian}/numalloc DESTINATION bin COMPONENT tools EXCLUDE_FROM_ALL)
# The bundled packages have theirs beside them, NAME-VERSION.dist-info.
install(FILES LICENSE DESTINATION share/doc/numalloc-tools RENAME copyright COMPONENT tools EXCLUDE_FROM_ALL)

set(CPACK_COMPONENT_TOOLS_DESCRIPTION "The command numalloc: runs, measures and watches programs under allocators.")
set(CPACK_DEBIAN_TOOLS_PACKAGE_NAME numalloc-tools)
set(CPACK_DEBIAN_TOOLS_PACKAGE_ARCHITECTURE all)
set(CPACK_DEBIAN_TOOLS_PACKAGE_SECTION utils)
set(CPACK_DEBIAN_TOOLS_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_TOOLS_PACKAGE_CONTROL_EXTRA ${debian}/postinst ${debian}/prerm)
set(CPACK_DEBIAN_TOOLS_PACKAGE_CONTROL_STRICT_PERMISSION ON)
string(JOIN ", " CPACK_DEBIAN_TOOLS_PACKAGE_DEPENDS
  "libnumalloc${PROJECT_VERSION_MAJOR} (= ${PROJECT_VERSION})" "python3 (>= 3.11)" "python3-click (>= 8.0)" "python3-matplotlib (>= 3.6)"
  "python3-numpy (>= 1:1.23)" "python3-pyelftools (>= 0.29)" "python3-rich (>= 13)" "python3-scipy (>= 1.9)" "python3-shellingham"
  "python3-tomli-w (>= 1)" "python3-typing-extensions")
# What some commands call: the lab, and what is compiled to be run there.
set(CPACK_DEBIAN_TOOLS_PACKAGE_SUGGESTS "qemu-system-x86, busybox-static, cpio, gcc")

set(CPACK_PROJECT_CONFIG_FILE ${CMAKE_CURRENT_LIST_DIR}/tools_package_deb_only.cmake)
list(APPEND CPACK_COMPONENTS_ALL tools)
