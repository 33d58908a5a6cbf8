// The kernels as the pipeline store knows them: sources, options, entry points, and what is
// embedded.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "backend/cuda/kernels/kernels.h"
#include "backend/gpu/pipeline_store/embedded.h"
#include "backend/gpu/pipeline_store/kernel.h"

namespace tern::cuda {

// One row per translation unit. Entry points are those of kKernels with this stem as source.
struct KernelSource {
  std::string_view stem;
  std::string_view variant;
  std::string_view file;
};
inline constexpr std::array kKernelSources = {
    KernelSource{"gemv_q1_g128", "b1_mma", "backend/cuda/kernels/gemv_q1_g128/gemv_q1_g128.cu"},
    KernelSource{"quantize", "planes", "backend/cuda/kernels/quantize/quantize.cu"},
    KernelSource{"rms_norm", "block", "backend/cuda/kernels/rms_norm/rms_norm.cu"},
    KernelSource{"embed_q1_g128", "copy", "backend/cuda/kernels/embed/embed_q1_g128.cu"},
    KernelSource{"gather_rows", "copy", "backend/cuda/kernels/gather_rows/gather_rows.cu"},
    KernelSource{"argmax", "parts", "backend/cuda/kernels/argmax/argmax.cu"},
    KernelSource{"read_bytes", "wide", "backend/cuda/kernels/read_bytes/read_bytes.cu"},
    KernelSource{"convert", "rows", "backend/cuda/kernels/convert/convert.cu"},
    KernelSource{"gemm_epilogue", "rows", "backend/cuda/kernels/gemm_epilogue/gemm_epilogue.cu"},
};

// Sources as they are embedded. Errors: kNotFound for an include that is not.
[[nodiscard]] Result<gpu::KernelDescription> describe_kernel(const KernelSource& source);

// The cubins of this build in the store's form. Holds what table() points to.
class EmbeddedImages {
 public:
  EmbeddedImages();
  [[nodiscard]] gpu::EmbeddedTable table() const { return {images_, kernels_}; }

 private:
  std::string flags_;
  std::vector<std::string> names_;
  std::vector<gpu::EmbeddedImage> images_;
  std::vector<gpu::EmbeddedKernel> kernels_;
};

}  // namespace tern::cuda
