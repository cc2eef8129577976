# `cmake --install`: the library, the headers under quern/, the command, and packages for
# find_package(Quern) and pkg-config.
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Quern)
install(TARGETS quern_library EXPORT QuernTargets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT QuernTargets NAMESPACE quern:: DESTINATION ${package_dir})
install(TARGETS quern DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY codegen devices runtime DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/quern
  FILES_MATCHING PATTERN "*.h"
  PATTERN "runtime/command" EXCLUDE PATTERN "runtime/quern.h" EXCLUDE)
install(FILES runtime/quern.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/quern)

configure_package_config_file(cmake/QuernConfig.cmake.in ${PROJECT_BINARY_DIR}/QuernConfig.cmake
  INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/QuernConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/QuernConfig.cmake ${PROJECT_BINARY_DIR}/QuernConfigVersion.cmake
  DESTINATION ${package_dir})

# A static library has its users link what it needs.
set(pc_requires fmt)
set(pc_libs "")
if(NOT BUILD_SHARED_LIBS)
  string(APPEND pc_requires ", spdlog, libxxhash")
  if(NOT cpu_missing)
    string(APPEND pc_requires ", tbb")
    set(pc_libs "-L${LLVM_LIBRARY_DIR} -lLLVM-${LLVM_VERSION_MAJOR}")
  endif()
  string(APPEND pc_libs " -pthread")
endif()
configure_file(cmake/quern.pc.in ${PROJECT_BINARY_DIR}/quern.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/quern.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
