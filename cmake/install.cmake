# What `cmake --install` leaves: the libraries, the headers, a CMake package and a pkg-config file.
include(CMakePackageConfigHelpers)

# What programs run with is one component; what they are compiled with is the other, with the link libnumalloc.so.
install(TARGETS numalloc_shared numalloc_static EXPORT numalloc-targets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library NAMELINK_COMPONENT development
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
install(TARGETS numalloc_binding numalloc_hardened LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT library)
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME development)
install(DIRECTORY include/numalloc DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp" PATTERN "*.def")
install(EXPORT numalloc-targets NAMESPACE numalloc:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/numalloc)

configure_package_config_file(cmake/numalloc-config.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/numalloc-config.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/numalloc)
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/numalloc-config-version.cmake COMPATIBILITY SameMajorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/numalloc-config.cmake ${CMAKE_CURRENT_BINARY_DIR}/numalloc-config-version.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/numalloc)

# From where it lies itself, so that `cmake --install --prefix` elsewhere is right as well.
file(RELATIVE_PATH prefix_from_pkgconfig /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(cmake/numalloc.pc.in ${CMAKE_CURRENT_BINARY_DIR}/numalloc.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/numalloc.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
