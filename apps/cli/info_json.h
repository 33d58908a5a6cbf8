// `tern info --json`.
#pragma once

#include <string>

#include "tern/model_info.h"

namespace tern::cli {

struct InfoExtras {
  std::string sha256;        // empty: not asked for
  double read_gbps = 0;      // about; 0: not measured
  std::string not_measured;  // the sentence why
  bool fits_cache = false;   // what a token reads fits the last level of cache
};
[[nodiscard]] std::string info_json(const ModelInfo& info, const InfoExtras& extras, bool with_keys,
                                    bool with_tensors);

}  // namespace tern::cli
