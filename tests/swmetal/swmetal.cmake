# How Metal code is built and run on Linux: functions for modules, host objects and programs.
#
#   swmetal_module(NAME source.metal ... [FLAGS flag ...])
#     One shared object of kernels, and the library file that newLibraryWithURL takes. A target NAME builds both;
#     its properties SWMETAL_MODULE and SWMETAL_LIBRARY are their paths.
#   swmetal_objects(VARIABLE source.mm ... [ARC] [USES target ...] [FLAGS flag ...])
#     Object files compiled by clang, while the rest of the build may be g++: add them to a target's sources. USES:
#     targets whose include folders and definitions they see.
#   swmetal (library): the fake frameworks and the executor; link it where such objects go.
#   swmetal_program(NAME SANITIZE address|thread SOURCES source ... [MODULES ...] [ARC] [FLAGS flag ...] [GTEST])
#     A program that is instrumented throughout, whatever the build is; modules of it as MODULES name=source.metal.
#
# SWMETAL_FOUND says whether this machine can. Sanitizers follow TERN_SANITIZE in a clang build.
include_guard(DIRECTORY)

set(TERN_SOFTWARE_METAL AUTO CACHE STRING "Run Metal code on Linux in tests: AUTO (where clang 19 is), ON, OFF")
set_property(CACHE TERN_SOFTWARE_METAL PROPERTY STRINGS AUTO ON OFF)
set(SWMETAL_DIR ${CMAKE_CURRENT_LIST_DIR})

function(_swmetal_look out_why)
  set(${out_why} "" PARENT_SCOPE)
  if(APPLE)
    set(${out_why} "this is a Mac, which has Metal" PARENT_SCOPE)
    return()
  endif()
  find_program(SWMETAL_CLANG clang++-19)
  find_program(SWMETAL_PYTHON python3)
  find_library(SWMETAL_LIBOBJC NAMES libobjc.so.4)
  find_program(SWMETAL_SYMBOLIZER llvm-symbolizer-19)
  if(NOT SWMETAL_CLANG)
    set(${out_why} "clang++-19 is not there (package clang-19)" PARENT_SCOPE)
  elseif(NOT SWMETAL_LIBOBJC)
    set(${out_why} "libobjc.so.4 is not there (package libobjc4)" PARENT_SCOPE)
  elseif(NOT SWMETAL_PYTHON)
    set(${out_why} "python3 is not there" PARENT_SCOPE)
  elseif(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64|aarch64|arm64")
    set(${out_why} "there is no fiber switch for ${CMAKE_SYSTEM_PROCESSOR}" PARENT_SCOPE)
  elseif(TERN_SANITIZE AND NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    set(${out_why} "kernels need the sanitizers of clang, and this build has those of ${CMAKE_CXX_COMPILER_ID}" PARENT_SCOPE)
  endif()
endfunction()

set(SWMETAL_FOUND OFF)
set(SWMETAL_MISSING "TERN_SOFTWARE_METAL is OFF")
if(NOT TERN_SOFTWARE_METAL STREQUAL "OFF")
  _swmetal_look(SWMETAL_MISSING)
  if(NOT SWMETAL_MISSING)
    set(SWMETAL_FOUND ON)
  elseif(TERN_SOFTWARE_METAL STREQUAL "ON")
    message(FATAL_ERROR "TERN_SOFTWARE_METAL is ON, but ${SWMETAL_MISSING}")
  else()
    get_property(_swmetal_told GLOBAL PROPERTY SWMETAL_TOLD)
    if(NOT _swmetal_told)
      message(WARNING "SKIPPED: software Metal: ${SWMETAL_MISSING}. The Metal backend is not tested in this build.")
      set_property(GLOBAL PROPERTY SWMETAL_TOLD TRUE)
    endif()
  endif()
endif()

# ---- flags ----

# Flags of a sanitizer variant: "" (as the build), none, address, thread.
function(_swmetal_sanitizer_flags out variant)
  if(variant STREQUAL "address")
    set(flags -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
  elseif(variant STREQUAL "thread")
    set(flags -fsanitize=thread)
  elseif(variant STREQUAL "" AND TERN_SANITIZE)
    set(flags -fsanitize=${TERN_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  endif()
  set(${out} ${flags} PARENT_SCOPE)
endfunction()

set(_swmetal_objc_flags -x objective-c++ -fblocks -fconstant-string-class=NSConstantString)
set(_swmetal_warnings -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror -Wno-nullability-completeness)

# Compiles one file and appends its object to the variable `objects` of the caller.
macro(_swmetal_compile source folder)
  get_filename_component(_path ${source} ABSOLUTE)
  file(RELATIVE_PATH _name ${CMAKE_SOURCE_DIR} ${_path})
  string(REPLACE "/" "_" _name ${_name})
  set(_object ${CMAKE_CURRENT_BINARY_DIR}/${folder}/${_name}.o)
  if(_path MATCHES "\\.mm$")
    set(_language ${_swmetal_objc_flags} ${_objc_runtime})
  else()
    set(_language "")
  endif()
  add_custom_command(
    OUTPUT ${_object}
    COMMAND ${TERN_CCACHE} ${SWMETAL_CLANG} ${_language} -std=c++20 -O1 -g1 -fPIC ${_flags} -I${SWMETAL_DIR}/include
            "$<$<BOOL:${_includes}>:-I$<JOIN:${_includes},;-I>>" "$<$<BOOL:${_defines}>:-D$<JOIN:${_defines},;-D>>"
            -MD -MF ${_object}.d -MT ${_object} -c ${_path} -o ${_object}
    DEPENDS ${_path}
    DEPFILE ${_object}.d
    COMMENT "Compiling ${_name} with clang (software Metal)"
    COMMAND_EXPAND_LISTS VERBATIM)
  set_source_files_properties(${_object} PROPERTIES EXTERNAL_OBJECT TRUE GENERATED TRUE)
  list(APPEND objects ${_object})
endmacro()

function(swmetal_objects variable)
  cmake_parse_arguments(ARG "ARC" "SANITIZE;FOLDER" "USES;FLAGS" ${ARGN})
  _swmetal_sanitizer_flags(_sanitize "${ARG_SANITIZE}")
  set(_flags ${_swmetal_warnings} ${_sanitize} ${ARG_FLAGS})
  set(_objc_runtime -fobjc-runtime=gcc)
  if(ARG_ARC)
    set(_objc_runtime -fobjc-runtime=objfw -fobjc-arc)
  endif()
  if(NOT ARG_FOLDER)
    string(SUBSTRING "${variable}" 0 40 ARG_FOLDER)
    set(ARG_FOLDER swmetal_${ARG_FOLDER})
  endif()
  set(_includes "")
  set(_defines "")
  if(TERN_ASSERTS)
    list(APPEND _flags -DTERN_ENABLE_ASSERTS=1)
  endif()
  foreach(target IN LISTS ARG_USES)
    list(APPEND _includes "$<TARGET_PROPERTY:${target},INTERFACE_INCLUDE_DIRECTORIES>")
    list(APPEND _defines "$<TARGET_PROPERTY:${target},INTERFACE_COMPILE_DEFINITIONS>")
  endforeach()
  # A target without any leaves an empty element, which would become a bare -I or -D.
  if(ARG_USES)
    set(_includes "$<FILTER:${_includes},EXCLUDE,^$>")
    set(_defines "$<FILTER:${_defines},EXCLUDE,^$>")
  endif()
  set(objects "")
  foreach(source IN LISTS ARG_UNPARSED_ARGUMENTS)
    _swmetal_compile(${source} ${ARG_FOLDER})
  endforeach()
  set(${variable} ${objects} PARENT_SCOPE)
endfunction()

# ---- modules ----

file(GLOB _swmetal_module_tools CONFIGURE_DEPENDS ${SWMETAL_DIR}/msl/*.h ${SWMETAL_DIR}/rt/swm_abi.h ${SWMETAL_DIR}/tools/*.py
     ${SWMETAL_DIR}/tools/build_module.sh)
set_property(GLOBAL PROPERTY SWMETAL_MODULE_TOOLS "${_swmetal_module_tools}")

function(swmetal_module name)
  cmake_parse_arguments(ARG "" "SANITIZE" "FLAGS" ${ARGN})
  _swmetal_sanitizer_flags(sanitize "${ARG_SANITIZE}")
  set(sources "")
  foreach(source IN LISTS ARG_UNPARSED_ARGUMENTS)
    get_filename_component(source ${source} ABSOLUTE)
    list(APPEND sources ${source})
  endforeach()
  set(module ${CMAKE_CURRENT_BINARY_DIR}/${name}.so)
  set(library ${CMAKE_CURRENT_BINARY_DIR}/${name}.metallib)
  get_property(tools GLOBAL PROPERTY SWMETAL_MODULE_TOOLS)
  add_custom_command(
    OUTPUT ${module} ${library}
    COMMAND ${CMAKE_COMMAND} -E env SWM_CLANG=${SWMETAL_CLANG} ${SWMETAL_DIR}/tools/build_module.sh ${sources} ${module} --library
            ${library} --depfile ${module}.d ${sanitize} ${ARG_FLAGS}
    DEPENDS ${sources} ${tools}
    DEPFILE ${module}.d
    COMMENT "Compiling kernels of ${name} for the CPU (software Metal)"
    VERBATIM)
  add_custom_target(${name} DEPENDS ${module} ${library})
  set_target_properties(${name} PROPERTIES SWMETAL_MODULE ${module} SWMETAL_LIBRARY ${library})
endfunction()

# ---- the emulator itself, once per variant ----

function(_swmetal_runtime out variant)
  _swmetal_sanitizer_flags(sanitize "${variant}")
  set(quiet -Wno-conversion -Wno-pedantic -Wno-objc-root-class -Wno-deprecated-objc-isa-usage -Wno-protocol
            -Wno-objc-protocol-method-implementation)
  string(JOIN " " module_flags ${sanitize})
  set(defines "-DSWM_BUILD_MODULE=\"${SWMETAL_DIR}/tools/build_module.sh\"" "-DSWM_MODULE_FLAGS=\"${module_flags}\"")
  if(sanitize)
    list(APPEND defines -DSWM_KEEP_MODULES=1)
  endif()
  set(executor_variant "${variant}")
  if(variant STREQUAL "thread" OR (variant STREQUAL "" AND TERN_SANITIZE STREQUAL "thread"))
    # The executor is not instrumented: it tells the sanitizer about fibers instead.
    set(executor_variant none)
    set(executor_defines -DSWM_TSAN=1)
  endif()
  file(GLOB objc ${SWMETAL_DIR}/objc/*.mm ${SWMETAL_DIR}/objc/*.cpp)
  file(GLOB executor ${SWMETAL_DIR}/rt/*.cpp)
  set(switch ${SWMETAL_DIR}/rt/switch_x86_64.S)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
    set(switch ${SWMETAL_DIR}/rt/switch_aarch64.S)
  endif()
  swmetal_objects(a ${objc} SANITIZE "${variant}" FLAGS ${quiet} ${defines} FOLDER runtime_${variant})
  swmetal_objects(b ${executor} SANITIZE "${executor_variant}" FLAGS -O2 ${executor_defines} FOLDER runtime_${variant})
  swmetal_objects(c ${switch} SANITIZE none FLAGS -Wno-unused-command-line-argument FOLDER runtime_${variant})
  set(${out} ${a} ${b} ${c} PARENT_SCOPE)
endfunction()

function(swmetal_library)
  _swmetal_runtime(objects "")
  # One object: nothing refers to a category by a symbol, so a linker would leave it out of an archive.
  set(whole ${CMAKE_CURRENT_BINARY_DIR}/swmetal.o)
  add_custom_command(OUTPUT ${whole} COMMAND ${CMAKE_LINKER} -r -o ${whole} ${objects} DEPENDS ${objects} VERBATIM)
  set_source_files_properties(${whole} PROPERTIES EXTERNAL_OBJECT TRUE GENERATED TRUE)
  add_library(swmetal STATIC ${whole})
  set_target_properties(swmetal PROPERTIES LINKER_LANGUAGE CXX)
  target_include_directories(swmetal INTERFACE ${SWMETAL_DIR}/include)
  target_link_libraries(swmetal INTERFACE ${SWMETAL_LIBOBJC} ${CMAKE_DL_LIBS} Threads::Threads)
endfunction()

function(swmetal_program name)
  cmake_parse_arguments(ARG "ARC;GTEST" "SANITIZE" "SOURCES;FLAGS" ${ARGN})
  set(arc "")
  if(ARG_ARC)
    set(arc ARC)
  endif()
  get_property(runtime GLOBAL PROPERTY SWMETAL_RUNTIME_${ARG_SANITIZE})
  if(NOT runtime)
    _swmetal_runtime(runtime ${ARG_SANITIZE})
    add_custom_target(swmetal_runtime_${ARG_SANITIZE} DEPENDS ${runtime})
    set_property(GLOBAL PROPERTY SWMETAL_RUNTIME_${ARG_SANITIZE} "${runtime}")
  endif()
  swmetal_objects(own ${ARG_SOURCES} ${arc} SANITIZE ${ARG_SANITIZE} FLAGS ${ARG_FLAGS} FOLDER ${name}_objects)
  _swmetal_sanitizer_flags(sanitize ${ARG_SANITIZE})
  set(gtest "")
  if(ARG_GTEST)
    set(gtest $<TARGET_FILE:GTest::gtest_main> $<TARGET_FILE:GTest::gtest>)
  endif()
  set(program ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/${name})
  add_custom_command(
    OUTPUT ${program}
    COMMAND ${SWMETAL_CLANG} ${sanitize} ${own} ${runtime} ${gtest} ${SWMETAL_LIBOBJC} -ldl -pthread -o ${program}
    DEPENDS ${own} ${runtime}
    COMMENT "Linking ${name} (software Metal, ${ARG_SANITIZE})"
    VERBATIM)
  add_custom_target(${name} ALL DEPENDS ${program})
  add_dependencies(${name} swmetal_runtime_${ARG_SANITIZE})
  set_target_properties(${name} PROPERTIES SWMETAL_PROGRAM ${program})
endfunction()
