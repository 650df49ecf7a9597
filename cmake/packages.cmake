# In the folder of a release build: `cpack -G DEB` makes libnumalloc0 and libnumalloc-dev, `cpack -G RPM` numalloc and
# numalloc-devel, `cpack -G TZST` one archive. With SOURCE_DATE_EPOCH set, two runs give the same bytes.
set(CPACK_PACKAGE_VENDOR "numalloc")
set(CPACK_PACKAGE_FILE_NAME numalloc-${PROJECT_VERSION}-linux-${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_PACKAGE_CONTACT "numalloc developers")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "NUMA-aware memory allocator")
set(CPACK_PACKAGE_DESCRIPTION "A malloc for machines whose memory is not all equally near, preloaded or linked.")
set(CPACK_COMPONENT_LIBRARY_DESCRIPTION "A malloc for machines whose memory is not all equally near, to be preloaded or linked.")
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION "Headers, the static library, and files for CMake and pkg-config.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_GENERATOR DEB TZST)
set(CPACK_COMPONENTS_ALL library development)

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME libnumalloc${PROJECT_VERSION_MAJOR})
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libs)
file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/triggers "activate-noawait ldconfig\n")
set(CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_EXTRA ${CMAKE_CURRENT_BINARY_DIR}/triggers)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libnumalloc-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "${CPACK_DEBIAN_LIBRARY_PACKAGE_NAME} (= ${PROJECT_VERSION}), libc6-dev")

# Fedora's names. Its 64-bit libraries lie in lib64, which CMake takes there by itself; elsewhere it is told by
# -D CMAKE_INSTALL_LIBDIR=lib64.
set(CPACK_RPM_COMPONENT_INSTALL ON)
set(CPACK_RPM_FILE_NAME RPM-DEFAULT)
set(CPACK_RPM_PACKAGE_LICENSE MIT)
set(CPACK_RPM_LIBRARY_PACKAGE_NAME numalloc)
set(CPACK_RPM_DEVELOPMENT_PACKAGE_NAME numalloc-devel)
set(CPACK_RPM_DEVELOPMENT_PACKAGE_REQUIRES "numalloc = ${PROJECT_VERSION}, glibc-devel")
file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/ldconfig "/sbin/ldconfig\n")
set(CPACK_RPM_LIBRARY_POST_INSTALL_SCRIPT_FILE ${CMAKE_CURRENT_BINARY_DIR}/ldconfig)
set(CPACK_RPM_LIBRARY_POST_UNINSTALL_SCRIPT_FILE ${CMAKE_CURRENT_BINARY_DIR}/ldconfig)
# Folders of the system's own, which no package of ours may own.
foreach(folder lib lib64 ${CMAKE_INSTALL_LIBDIR})
  list(APPEND CPACK_RPM_EXCLUDE_FROM_AUTO_FILELIST_ADDITION /usr/${folder} /usr/${folder}/cmake /usr/${folder}/pkgconfig)
endforeach()
set(CPACK_RPM_SPEC_MORE_DEFINE "%define _build_id_links none
%define _buildhost localhost
%define use_source_date_epoch_as_buildtime 1
%define clamp_mtime_to_source_date_epoch 1")

set(NUMALLOC_TOOLS_PYTHON "" CACHE FILEPATH "A Python with pip and what the tools need, such as .venv/bin/python; makes the Debian package numalloc-tools")
if(NUMALLOC_TOOLS_PYTHON)
  include(${CMAKE_CURRENT_LIST_DIR}/tools_package.cmake)
endif()
include(CPack)
