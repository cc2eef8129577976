# Quern's headers are included as <quern/...> everywhere, in the tree as by users of an installed one.
# In the tree that name is a folder of the build with links to the source folders.
set(QUERN_INCLUDE_DIR ${PROJECT_BINARY_DIR}/include)
file(MAKE_DIRECTORY ${QUERN_INCLUDE_DIR}/quern)
foreach(folder codegen devices runtime)
  file(CREATE_LINK ${PROJECT_SOURCE_DIR}/${folder} ${QUERN_INCLUDE_DIR}/quern/${folder} SYMBOLIC)
endforeach()
file(CREATE_LINK
  ${PROJECT_SOURCE_DIR}/runtime/quern.h ${QUERN_INCLUDE_DIR}/quern/quern.h SYMBOLIC)

# quern_sources(<variable> <folder> [EXCEPT <folder>]): the folder's .cpp files, at any depth.
function(quern_sources variable folder)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "EXCEPT" "")
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.cpp)
  if(arg_EXCEPT)
    list(FILTER sources EXCLUDE REGEX "/${arg_EXCEPT}/")
  endif()
  set(${variable} ${sources} PARENT_SCOPE)
endfunction()

# quern_layer(<name> <source>...): the object files of quern_<name>. They go into the one library that
# users link, so a layer is no target of theirs.
function(quern_layer name)
  add_library(quern_${name} OBJECT ${ARGN})
  target_compile_features(quern_${name} PUBLIC cxx_std_20)
  target_include_directories(quern_${name} PUBLIC ${QUERN_INCLUDE_DIR})
  target_link_libraries(quern_${name} PUBLIC fmt::fmt)
  set_target_properties(quern_${name} PROPERTIES
    CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
endfunction()

# quern_backend(<name> [MISSING <reason>]): quern_<name> from devices/<name>. With a reason it is
# unavailable.cpp alone, whose factory throws QUERN_MISSING; without, it is every other file.
function(quern_backend name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "MISSING" "")
  quern_sources(sources devices/${name})
  if(arg_MISSING)
    message(STATUS "Backend ${name}: ${arg_MISSING}")
    list(FILTER sources INCLUDE REGEX "/unavailable\\.cpp$")
  else()
    list(FILTER sources EXCLUDE REGEX "/unavailable\\.cpp$")
  endif()
  quern_layer(${name} ${sources})
  if(arg_MISSING)
    target_compile_definitions(quern_${name} PRIVATE QUERN_MISSING="${arg_MISSING}")
  endif()
endfunction()

# quern_library(<name> <STATIC|SHARED>): all layers in one library, with what they link.
function(quern_library name type)
  add_library(${name} ${type})
  foreach(layer codegen interpreter cpu devices runtime)
    target_sources(${name} PRIVATE $<TARGET_OBJECTS:quern_${layer}>)
  endforeach()
  target_compile_features(${name} PUBLIC cxx_std_20)
  target_include_directories(${name} PUBLIC
    $<BUILD_INTERFACE:${QUERN_INCLUDE_DIR}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(${name}
    PUBLIC fmt::fmt
    PRIVATE nlohmann_json::nlohmann_json PkgConfig::xxhash spdlog::spdlog Threads::Threads)
  if(NOT cpu_missing)
    target_link_libraries(${name} PRIVATE LLVM TBB::tbb)
  endif()
endfunction()
