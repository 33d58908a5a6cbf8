# Writes the C++ file that holds the cubins and sources.
#   cmake -DOUTPUT=file.cpp -DCUBINS=stem@arch@path,... -DSOURCES=name@path,... -DFLAGS=text
#     [-DNAMESPACE=tern::cuda] [-DHASHES=file] -P write_table.cmake
string(REPLACE "," ";" cubins "${CUBINS}")
string(REPLACE "," ";" sources "${SOURCES}")
if(NOT NAMESPACE)
  set(NAMESPACE tern::cuda)
endif()
string(REPLACE ":" "_" prefix "${NAMESPACE}")
set(blobs "")
set(declarations "")
set(cubin_rows "")
set(source_rows "")
set(number 0)

macro(add_blob path)
  set(symbol ${prefix}_blob_${number})
  math(EXPR number "${number} + 1")
  string(APPEND blobs
         "    \".balign 64\\n.hidden ${symbol}\\n.globl ${symbol}\\n${symbol}:\\n.incbin \\\"${path}\\\"\\n\"\n"
         "    \".hidden ${symbol}_end\\n.globl ${symbol}_end\\n${symbol}_end:\\n.byte 0\\n\"\n")
  string(APPEND declarations "extern const std::byte ${symbol}[];\nextern const std::byte ${symbol}_end[];\n")
endmacro()

# Lines "stem hash".
if(HASHES)
  file(STRINGS "${HASHES}" hash_lines)
  foreach(line IN LISTS hash_lines)
    string(REPLACE " " ";" parts "${line}")
    list(GET parts 0 stem)
    list(GET parts 1 hash_of_${stem})
  endforeach()
endif()

foreach(cubin IN LISTS cubins)
  string(REPLACE "@" ";" parts "${cubin}")
  list(GET parts 0 stem)
  list(GET parts 1 architecture)
  list(GET parts 2 path)
  add_blob("${path}")
  string(APPEND cubin_rows "      EmbeddedCubin{\"${stem}\", \"${architecture}\", \"${hash_of_${stem}}\", bytes(${symbol}, ${symbol}_end)},\n")
endforeach()
foreach(source IN LISTS sources)
  string(REPLACE "@" ";" parts "${source}")
  list(GET parts 0 name)
  list(GET parts 1 path)
  add_blob("${path}")
  string(APPEND source_rows "      EmbeddedSource{\"${name}\", text(${symbol}, ${symbol}_end)},\n")
endforeach()

file(WRITE "${OUTPUT}.new" "// Written by write_table.cmake: the bytes of cubins and kernel sources.
#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include \"backend/cuda/embed/embedded.h\"

asm(\".section .rodata\\n\"
${blobs}    \".text\\n\");

extern \"C\" {
${declarations}}

namespace ${NAMESPACE} {
using tern::cuda::EmbeddedCubin;
using tern::cuda::EmbeddedSource;
[[nodiscard]] std::span<const EmbeddedCubin> embedded_cubins();
[[nodiscard]] std::span<const EmbeddedSource> embedded_sources();
[[nodiscard]] std::string_view embedded_flags();
namespace {

[[maybe_unused]] std::span<const std::byte> bytes(const std::byte* begin, const std::byte* end) {
  return {begin, end};
}
[[maybe_unused]] std::string_view text(const std::byte* begin, const std::byte* end) {
  return {reinterpret_cast<const char*>(begin), static_cast<std::size_t>(end - begin)};
}

}  // namespace

std::span<const EmbeddedCubin> embedded_cubins() {
  static const std::vector<EmbeddedCubin> table = {
${cubin_rows}  };
  return table;
}

std::span<const EmbeddedSource> embedded_sources() {
  static const std::vector<EmbeddedSource> table = {
${source_rows}  };
  return table;
}

std::string_view embedded_flags() { return \"${FLAGS}\"; }

}  // namespace ${NAMESPACE}
")
file(RENAME "${OUTPUT}.new" "${OUTPUT}")
