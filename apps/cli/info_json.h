// `tern info --json`.
#pragma once

#include <string>

#include "tern/model_info.h"

namespace tern::cli {

struct InfoExtras {
  std::string sha256;    // empty: not asked for
  double read_gbps = 0;  // 0: not measured
};
[[nodiscard]] std::string info_json(const ModelInfo& info, const InfoExtras& extras, bool with_keys,
                                    bool with_tensors);

}  // namespace tern::cli
