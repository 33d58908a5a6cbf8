# One static library per folder under src/.
#
#   tern_library(NAME [RECURSE] [ONLY regex | EXCEPT regex] [DEPENDS target ...] [PRIVATE target ...])
#
# ONLY and EXCEPT split a folder into two libraries by file name.
# Sources are all *.cpp of the folder (RECURSE: and of the folders below it). Files named *_test.cpp or test.cpp
# become the test program test_NAME; *_bench.cpp and bench.cpp become bench_NAME. Files named x86_<isa>*.cpp
# get the flags of their instruction set, and nothing else does.

set(TERN_ISA_FLAGS_avx2 -mavx2 -mfma -mf16c)
# g++ 12 calls the undefined registers of its own AVX-512 header uninitialised (GCC bug 105593).
set(TERN_ISA_FLAGS_avx512 -mavx2 -mfma -mf16c -mavx512f -mavx512bw -mavx512dq -mavx512vl
                          $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
set(TERN_ISA_FLAGS_avx512vnni ${TERN_ISA_FLAGS_avx512} -mavx512vnni)
set(TERN_ISA_FLAGS_avx512vbmi ${TERN_ISA_FLAGS_avx512} -mavx512vnni -mavx512vbmi)

function(_tern_isa_flags)
  if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    return()
  endif()
  foreach(source IN LISTS ARGN)
    if(source MATCHES "/x86_([a-z0-9]+)[^/]*\\.cpp$")
      set(flags "${TERN_ISA_FLAGS_${CMAKE_MATCH_1}}")
      if(NOT flags)
        message(FATAL_ERROR "${source}: no flags are known for the instruction set '${CMAKE_MATCH_1}'")
      endif()
      set_source_files_properties(${source} TARGET_DIRECTORY ${_target} PROPERTIES COMPILE_OPTIONS "${flags}")
    endif()
  endforeach()
endfunction()

function(tern_library name)
  cmake_parse_arguments(ARG "RECURSE" "ONLY;EXCEPT" "DEPENDS;PRIVATE" ${ARGN})
  if(ARG_RECURSE)
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  else()
    file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  endif()
  if(ARG_ONLY)
    list(FILTER sources INCLUDE REGEX "/${ARG_ONLY}[^/]*$")
  elseif(ARG_EXCEPT)
    list(FILTER sources EXCLUDE REGEX "/${ARG_EXCEPT}[^/]*$")
  endif()
  set(tests ${sources})
  set(benches ${sources})
  list(FILTER tests INCLUDE REGEX "(/|_)test\\.cpp$")
  list(FILTER benches INCLUDE REGEX "(/|_)bench\\.cpp$")
  list(FILTER sources EXCLUDE REGEX "(/|_)(test|bench)\\.cpp$")
  if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    list(FILTER sources EXCLUDE REGEX "/x86_[^/]*\\.cpp$")
  endif()

  set(_target tern_${name})
  if(sources)
    add_library(${_target} STATIC ${sources})
    set_target_properties(${_target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
    target_include_directories(${_target} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>
                                                 $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>)
    target_link_libraries(${_target} PUBLIC ${ARG_DEPENDS} PRIVATE $<BUILD_INTERFACE:tern_build_options> ${ARG_PRIVATE})
    _tern_isa_flags(${sources})
    set_property(GLOBAL APPEND PROPERTY TERN_LIBRARIES ${_target})
  else()
    add_library(${_target} INTERFACE)
    target_include_directories(${_target} INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>
                                                    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>)
    target_link_libraries(${_target} INTERFACE ${ARG_DEPENDS})
  endif()

  if(TERN_DEVELOPER_MODE AND tests)
    add_executable(test_${name} ${tests})
    target_link_libraries(test_${name} PRIVATE ${_target} ${ARG_PRIVATE} tern_build_options GTest::gtest_main GTest::gmock)
    target_compile_definitions(test_${name} PRIVATE TERN_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
    add_test(NAME ${name} COMMAND test_${name})
    set_tests_properties(${name} PROPERTIES LABELS unit)
  endif()
  if(TERN_BENCHMARKS AND benches)
    add_executable(bench_${name} ${benches})
    target_link_libraries(bench_${name} PRIVATE ${_target} ${ARG_PRIVATE} tern_build_options benchmark::benchmark_main)
  endif()
endfunction()
