# Installs the program, the public header, the libraries and a CMake package: find_package(penstock) gives penstock::penstock.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

if(NOT TARGET penstock)
  return()
endif()

get_property(penstock_libraries GLOBAL PROPERTY PENSTOCK_LIBRARIES)
list(REMOVE_ITEM penstock_libraries penstock_cli)
install(TARGETS ${penstock_libraries} EXPORT penstock-targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT penstock-targets NAMESPACE penstock:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/penstock)
install(TARGETS penstock RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY include/penstock DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

# The oneDNN that was fetched for the build goes along; one of the system stays where it is.
get_target_property(dnnl_library DNNL::dnnl IMPORTED_LOCATION_RELEASE)
set(PENSTOCK_BUNDLES_DNNL OFF)
if(dnnl_library MATCHES "/deps/lib/")
  get_filename_component(dnnl_lib_dir ${dnnl_library} DIRECTORY)
  install(DIRECTORY ${dnnl_lib_dir}/ DESTINATION ${CMAKE_INSTALL_LIBDIR}/penstock/lib)
  install(DIRECTORY ${dnnl_lib_dir}/../include/ DESTINATION ${CMAKE_INSTALL_LIBDIR}/penstock/include)
  set_target_properties(penstock PROPERTIES
    INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}/penstock/lib" BUILD_WITH_INSTALL_RPATH OFF)
  set(PENSTOCK_BUNDLES_DNNL ON)
endif()

configure_package_config_file(cmake/penstock-config.cmake.in penstock-config.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/penstock)
write_basic_package_version_file(penstock-config-version.cmake COMPATIBILITY SameMajorVersion)
install(FILES ${PROJECT_BINARY_DIR}/penstock-config.cmake ${PROJECT_BINARY_DIR}/penstock-config-version.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/penstock)
