// The offline tier on CUDA: nvcc as a child process.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "backend/gpu/pipeline_store/compiler.h"
#include "backend/gpu/pipeline_store/process.h"

namespace tern::cuda {

struct NvccOptions {
  std::optional<std::string> tern_nvcc;  // TERN_NVCC: a path; wins, and is an error if unusable
  std::optional<std::string> path;       // PATH
  std::int64_t most_ms = 120000;         // for one kernel
};
[[nodiscard]] NvccOptions read_nvcc_options();

// identity() runs `nvcc --version` once and adds the host compiler's version line (its preprocessor
// reads the sources too). The child gets PATH, LC_ALL and a private TMPDIR, and nothing else of the
// environment.
[[nodiscard]] std::shared_ptr<gpu::Compiler> make_nvcc_compiler(
    NvccOptions options, std::shared_ptr<gpu::ProcessRunner> runner = gpu::posix_process_runner());

}  // namespace tern::cuda
