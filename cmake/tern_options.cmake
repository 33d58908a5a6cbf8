# Compile options of our own code. They are attached to targets, never exported, never directory-wide.
add_library(tern_build_options INTERFACE)
target_compile_options(
  tern_build_options
  INTERFACE -Wall
            -Wextra
            -Wpedantic
            -Wshadow
            -Wconversion
            -Werror
            # An fma is written where it is meant: the bits of a sum are part of a kernel's contract.
            -ffp-contract=off
            -fvisibility=hidden
            # g++ 12 at -O3 sees overlaps in std::string that are not there (GCC bug 105651).
            $<$<CXX_COMPILER_ID:GNU>:-Wno-psabi;-Wno-restrict>
            # clang sees a deprecated helper inside of std::stable_sort of libstdc++ 12.
            $<$<CXX_COMPILER_ID:Clang>:-Wno-deprecated-declarations>)
if(NOT CMAKE_BUILD_TYPE STREQUAL "Debug" AND NOT TERN_SANITIZE)
  target_compile_options(tern_build_options INTERFACE -fstack-protector-strong)
endif()

set(TERN_SANITIZE "" CACHE STRING "Sanitizers, e.g. address,undefined or thread")
if(TERN_SANITIZE)
  add_compile_options(-fsanitize=${TERN_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${TERN_SANITIZE})
  if(TERN_FUZZERS)
    add_compile_options(-fsanitize=fuzzer-no-link)
  endif()
endif()

option(TERN_ASSERTS "Check TERN_ASSERT (programmer's errors)" OFF)
if(TERN_ASSERTS)
  target_compile_definitions(tern_build_options INTERFACE TERN_ENABLE_ASSERTS=1)
endif()

find_program(TERN_CCACHE ccache)
if(TERN_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${TERN_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${TERN_CCACHE})
endif()
find_program(TERN_MOLD mold)
if(TERN_MOLD)
  add_link_options(-fuse-ld=mold)
endif()
