// The list of model families: one row each.
#pragma once

#include <memory>

#include "models/text_model.h"

namespace tern::models {

// Reads keys and tensors; no weight is touched. The file must outlive the model. Refuses, by name,
// other architectures, drafts, projectors and adapters, parts of a split model, rope scalings that
// are not known, and tensors that are missing, of another shape, or of no use.
[[nodiscard]] Result<std::unique_ptr<TextModel>> open_text_model(const io::GgufFile& file);

}  // namespace tern::models
