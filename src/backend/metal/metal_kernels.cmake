# On a Mac: kernels compiled by the developer tools, where they are installed, and the Objective-C++ device.
enable_language(OBJCXX)
find_program(TERN_XCRUN xcrun)
set(library "")
if(TERN_XCRUN)
  execute_process(COMMAND ${TERN_XCRUN} -sdk macosx -f metal RESULT_VARIABLE _found OUTPUT_QUIET ERROR_QUIET)
endif()
if(TERN_XCRUN AND _found EQUAL 0)
  set(airs "")
  foreach(source IN LISTS TERN_METAL_KERNEL_FILES)
    cmake_path(GET source STEM stem)
    set(air ${CMAKE_CURRENT_BINARY_DIR}/${stem}.air)
    # Precise arithmetic: the bits of a sum are part of a kernel's contract.
    add_custom_command(
      OUTPUT ${air}
      COMMAND ${TERN_XCRUN} -sdk macosx metal -std=metal3.1 -O3 -fno-fast-math -ffp-contract=off -I${PROJECT_SOURCE_DIR}/src
              -c ${source} -o ${air}
      DEPENDS ${TERN_METAL_SOURCE_FILES}
      COMMENT "metal ${stem}"
      VERBATIM)
    list(APPEND airs ${air})
  endforeach()
  set(library ${CMAKE_CURRENT_BINARY_DIR}/base.metallib)
  add_custom_command(OUTPUT ${library} COMMAND ${TERN_XCRUN} -sdk macosx metallib ${airs} -o ${library} DEPENDS ${airs} VERBATIM)
endif()
tern_metal_table(${CMAKE_CURRENT_BINARY_DIR}/embedded.cpp "${library}")
add_library(tern_metal STATIC metal_backend.cpp ${TERN_METAL_DEVICE_FILES} ${CMAKE_CURRENT_BINARY_DIR}/embedded.cpp)
target_link_libraries(tern_metal PUBLIC "-framework Foundation" "-framework Metal" "-framework MetalPerformanceShaders")
