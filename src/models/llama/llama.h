// The llama family.
#pragma once

#include <memory>

#include "models/text_model.h"

namespace tern::models {

[[nodiscard]] Result<std::unique_ptr<TextModel>> open_llama(const io::GgufFile& file);

}  // namespace tern::models
