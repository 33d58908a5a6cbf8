#include "backend/cuda/store/kernel_sources.h"

#include "backend/cuda/embed/embedded.h"

namespace tern::cuda {
namespace {

// What the build passes to nvcc (CMakeLists.txt) in the store's words.
gpu::CompileOptions kernel_options() { return {}; }

}  // namespace

Result<gpu::KernelDescription> describe_kernel(const KernelSource& source) {
  std::vector<gpu::SourceFile> table;
  for (const EmbeddedSource& s : embedded_sources())
    table.push_back({std::string(s.name), std::string(s.text)});
  gpu::KernelDescription kernel;
  kernel.code.stem = source.stem;
  kernel.code.variant = source.variant;
  kernel.code.options = kernel_options();
  TERN_ASSIGN(kernel.code.sources, gpu::gather_sources(source.file, table));
  for (const KernelInfo& info : kKernels) {
    if (info.source != source.stem) continue;
    gpu::EntryPoint entry;
    entry.name = info.entry;
    entry.params = {info.params_bytes, info.params_layout};
    entry.launch.threads = static_cast<std::uint32_t>(info.max_threads);
    entry.launch.simd_width = 32;
    kernel.entry_points.push_back(std::move(entry));
  }
  return kernel;
}

EmbeddedImages::EmbeddedImages() : flags_(gpu::canonical_text(kernel_options())) {
  const auto cubins = embedded_cubins();
  names_.reserve(cubins.size());  // the images point into it
  for (const EmbeddedCubin& cubin : cubins) {
    names_.push_back(fmt::format("{}.{}", cubin.source, cubin.architecture));
    for (const KernelSource& source : kKernelSources)
      if (source.stem == cubin.source)
        kernels_.push_back(
            {source.stem, source.variant, images_.size(), cubin.source_hash, flags_, {}});
    images_.push_back({names_.back(), gpu::ImageKind::kCubin, cubin.architecture, cubin.bytes});
  }
}

}  // namespace tern::cuda
