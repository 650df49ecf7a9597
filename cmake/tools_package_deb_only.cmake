# Read by cpack before each kind of package.
if(NOT CPACK_GENERATOR STREQUAL "DEB")
  list(REMOVE_ITEM CPACK_COMPONENTS_ALL tools)
endif()
