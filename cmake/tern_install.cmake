# Installed: the public headers, the libraries, the program, and a CMake package (find_package(tern), target tern::tern).
include(CMakePackageConfigHelpers)

# All library targets of a folder and the folders below it.
function(_tern_collect_libraries folder result)
  get_property(targets DIRECTORY ${folder} PROPERTY BUILDSYSTEM_TARGETS)
  get_property(folders DIRECTORY ${folder} PROPERTY SUBDIRECTORIES)
  set(found "")
  foreach(target IN LISTS targets)
    get_target_property(type ${target} TYPE)
    if(type MATCHES "^(STATIC|SHARED|OBJECT|INTERFACE)_LIBRARY$")
      list(APPEND found ${target})
    endif()
  endforeach()
  foreach(below IN LISTS folders)
    _tern_collect_libraries(${below} inner)
    list(APPEND found ${inner})
  endforeach()
  set(${result} "${found}" PARENT_SCOPE)
endfunction()

# What others link: the top of the layers, which brings all below it.
add_library(tern_tern INTERFACE)
set_target_properties(tern_tern PROPERTIES EXPORT_NAME tern)
target_link_libraries(tern_tern INTERFACE tern_runtime)
target_compile_features(tern_tern INTERFACE cxx_std_20)
target_include_directories(tern_tern INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                                               $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
add_library(tern::tern ALIAS tern_tern)

_tern_collect_libraries(${PROJECT_SOURCE_DIR}/src _tern_libraries)

set(_tern_package ${CMAKE_INSTALL_LIBDIR}/cmake/tern)
install(TARGETS tern_tern ${_tern_libraries} EXPORT tern_targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT tern_targets NAMESPACE tern:: FILE ternTargets.cmake DESTINATION ${_tern_package})
install(DIRECTORY include/tern DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
if(TARGET tern)
  install(TARGETS tern RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

configure_package_config_file(cmake/ternConfig.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/ternConfig.cmake
                              INSTALL_DESTINATION ${_tern_package})
# Before 1.0 a minor version may change the interface.
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/ternConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/ternConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/ternConfigVersion.cmake
        DESTINATION ${_tern_package})
