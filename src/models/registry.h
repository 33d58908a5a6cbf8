// The list of model families: one row each.
#pragma once

#include <memory>

#include "models/text_model.h"

namespace tern::models {

// Reads keys and tensors; no weight is touched. The file must outlive the model. Errors: formats.md
// 11, F09 to F14, F21.
[[nodiscard]] Result<std::unique_ptr<TextModel>> open_text_model(const io::GgufFile& file);

}  // namespace tern::models
