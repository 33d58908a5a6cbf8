// The options of a kernel as NVIDIA's compilers write them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "backend/gpu/pipeline_store/kernel.h"

namespace tern::cuda {

// Both compilers take these in one spelling: language, math, lines, registers, defines.
[[nodiscard]] inline std::vector<std::string> compile_flags(const gpu::CodeInputs& code) {
  std::vector<std::string> flags = {"--std=" + code.options.language};
  if (code.options.math == gpu::MathMode::kFast) {
    flags.push_back("--use_fast_math");
  } else {
    // An fma is written where it is meant: the bits of a sum are part of a kernel's contract.
    flags.insert(flags.end(),
                 {"--fmad=false", "--ftz=false", "--prec-div=true", "--prec-sqrt=true"});
  }
  if (code.options.has_debug_info) flags.push_back("--generate-line-info");
  if (code.options.most_registers > 0) {
    flags.push_back(fmt::format("--maxrregcount={}", code.options.most_registers));
  }
  for (const std::string& define : code.options.defines) flags.push_back("-D" + define);
  for (const gpu::Constant& constant : code.constants) {
    flags.push_back(fmt::format("-D{}={}", constant.name, constant.value));
  }
  return flags;
}

// 90 for "sm_90", "sm_90a" and "compute_90"; 0 for anything else.
[[nodiscard]] inline int number_of_target(std::string_view target) {
  int number = 0;
  for (const char c : target.substr(std::min(target.find('_'), target.size() - 1) + 1)) {
    if (c < '0' || c > '9') break;
    number = number * 10 + (c - '0');
    if (number > 9999) return 0;
  }
  return number;
}

}  // namespace tern::cuda
