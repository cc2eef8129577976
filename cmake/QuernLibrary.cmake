# quern_sources(<variable> <folder> [EXCEPT <folder>]): the folder's .cpp files, at any depth.
function(quern_sources variable folder)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "EXCEPT" "")
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.cpp)
  if(arg_EXCEPT)
    list(FILTER sources EXCLUDE REGEX "/${arg_EXCEPT}/")
  endif()
  set(${variable} ${sources} PARENT_SCOPE)
endfunction()

# quern_library(<name> <type> [source...]): a library whose includes start at the project's top. It
# may have no sources yet.
function(quern_library name type)
  set(empty ${PROJECT_BINARY_DIR}/empty.cpp)
  if(NOT ARGN AND NOT EXISTS ${empty})
    file(WRITE ${empty} "")
  endif()
  add_library(${name} ${type} ${ARGN})
  if(NOT ARGN)
    target_sources(${name} PRIVATE ${empty})
  endif()
  target_compile_features(${name} PUBLIC cxx_std_20)
  target_include_directories(${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:include/quern>)
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
  quern_library(quern_${name} OBJECT ${sources})
  target_link_libraries(quern_${name} PUBLIC quern_codegen)
  if(arg_MISSING)
    target_compile_definitions(quern_${name} PRIVATE QUERN_MISSING="${arg_MISSING}")
  endif()
endfunction()
