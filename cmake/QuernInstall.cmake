# `cmake --install`: the libraries, the headers, the command, and a package for find_package(Quern).
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Quern)
set_target_properties(quern_runtime PROPERTIES EXPORT_NAME quern)
install(TARGETS quern_codegen quern_interpreter quern_cpu quern_devices quern_runtime
  EXPORT QuernTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT QuernTargets NAMESPACE quern:: DESTINATION ${package_dir})
if(TARGET quern)
  install(TARGETS quern DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
install(DIRECTORY codegen devices runtime DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/quern
  FILES_MATCHING PATTERN "*.h" PATTERN "runtime/command" EXCLUDE)

configure_package_config_file(cmake/QuernConfig.cmake.in ${PROJECT_BINARY_DIR}/QuernConfig.cmake
  INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/QuernConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/QuernConfig.cmake ${PROJECT_BINARY_DIR}/QuernConfigVersion.cmake
  DESTINATION ${package_dir})
