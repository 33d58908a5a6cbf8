// Build tool: writes the hash of each kernel's sources, which the table of embedded cubins carries.
//   hash_sources OUTPUT FOLDER KERNEL.cu ... -- FILE ...      names are relative to FOLDER
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "backend/gpu/pipeline_store/kernel.h"

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const std::filesystem::path folder = argv[2];
  std::vector<std::string> kernels;
  std::vector<tern::gpu::SourceFile> table;
  bool is_table = false;
  for (int i = 3; i < argc; ++i) {
    if (std::strcmp(argv[i], "--") == 0) {
      is_table = true;
    } else if (!is_table) {
      kernels.emplace_back(argv[i]);
    } else {
      std::ifstream file(folder / argv[i], std::ios::binary);
      table.push_back({argv[i], std::string(std::istreambuf_iterator<char>(file), {})});
    }
  }
  std::ofstream out(argv[1]);
  for (const std::string& kernel : kernels) {
    const auto sources = tern::gpu::gather_sources(kernel, table);
    if (!sources.ok()) {
      std::fprintf(stderr, "%s\n", sources.error().what());
      return 1;
    }
    out << std::filesystem::path(kernel).stem().string() << " " << tern::gpu::source_hash(*sources)
        << "\n";
  }
  out.close();
  return out.good() ? 0 : 1;
}
