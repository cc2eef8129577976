# Compiler settings for all of Quern's own code.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release)
endif()

# The interpreter and constant folding round after every operation, so nothing may be fused.
add_compile_options(-ffp-contract=off)

add_compile_options(
  -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Wimplicit-fallthrough
  -Wcast-qual -Wextra-semi -Wformat=2 -Wundef -Wvla)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  add_compile_options(-Wno-restrict)  # false alarms on "text" + std::string, GCC bug 105651
endif()
# Sanitizers bring false alarms; GCC's manual advises against -Werror beside them.
if(QUERN_WERROR AND NOT QUERN_SANITIZE)
  add_compile_options(-Werror)
endif()

if(QUERN_SANITIZE)
  add_compile_options(
    -fsanitize=${QUERN_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${QUERN_SANITIZE})
endif()
if(QUERN_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

include(CheckLinkerFlag)
foreach(linker mold lld)
  check_linker_flag(CXX -fuse-ld=${linker} QUERN_HAS_${linker})
  if(QUERN_HAS_${linker})
    add_link_options(-fuse-ld=${linker})
    break()
  endif()
endforeach()
# Only what uses LLVM loads it.
add_link_options(-Wl,--as-needed)

find_program(QUERN_CCACHE ccache)
if(QUERN_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${QUERN_CCACHE})
endif()
