// What tests of the compilers share: a small kernel, jobs, and programs that pretend to be nvcc.
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <memory>
#include <string>
#include <vector>

#include "backend/cache/faults_test.h"
#include "backend/cuda/compile/nvcc_compiler.h"
#include "backend/cuda/compile/nvrtc_compiler.h"

namespace tern::cuda {

using cache::TemporaryFolder;

// Includes a header by name, takes a constant, and exports its parameter mark.
inline gpu::CodeInputs small_kernel() {
  gpu::CodeInputs code;
  code.stem = "scale";
  code.variant = "plain";
  code.sources = {
      {"kernels/scale.cu",
       "#include \"math/factor.h\"\n"
       "extern \"C\" __device__ const unsigned long long scale_params_mark[2] = {16, 7};\n"
       "extern \"C\" __global__ void scale(const float* x, float* y) {\n"
       "  y[threadIdx.x] = x[threadIdx.x] * factor() * HEAD;\n"
       "}\n"
       "extern \"C\" __global__ void copy(const float* x, float* y) {\n"
       "  y[threadIdx.x] = x[threadIdx.x];\n"
       "}\n"},
      {"math/factor.h", "#pragma once\n__device__ inline float factor() { return 3.0f; }\n"}};
  code.constants = {{"HEAD", "int", "128"}};
  return code;
}

// A job in a scratch folder of its own.
struct Job {
  gpu::CodeInputs code;
  TemporaryFolder scratch;
  std::string target;

  explicit Job(gpu::CodeInputs inputs = small_kernel(), std::string architecture = "sm_90")
      : code(std::move(inputs)), target(std::move(architecture)) {}
  [[nodiscard]] gpu::CompileJob get() const { return {code, target, scratch.path(), {}}; }
};

inline void write_program(const std::string& path, const std::string& script) {
  cache::write_file(path, "#!/bin/sh\n" + script, 0700);
}

// The real nvcc, where this machine has one.
inline std::shared_ptr<gpu::Compiler> real_nvcc() {
  NvccOptions options = read_nvcc_options();
  options.path = options.path.value_or("") + ":/usr/local/cuda/bin:/usr/bin:/bin";
  return make_nvcc_compiler(options);
}

}  // namespace tern::cuda
