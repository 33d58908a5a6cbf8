// Puts a whole model of random weights together: configuration, tokenizer, tensors.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>

#include "base/error.h"
#include "io/gguf.h"
#include "io/gguf_writer.h"
#include "quant/format.h"
#include "shapes.h"

namespace tern::tools {

struct RandomModel {
  const Shape* shape = nullptr;
  quant::Format format = quant::Format::kQ1G128;
  std::uint64_t seed = 1;
  bool has_yarn = false;
  // Its keys tokenizer.* are copied; the model has as many rows as it has tokens. nullptr: a
  // made-up byte-level vocabulary of the shape's size.
  const io::GgufFile* vocabulary = nullptr;
};

// The writer refers to the model's vocabulary file, nothing else.
[[nodiscard]] Result<io::GgufWriter> make_random_model(const RandomModel& model);

// nullptr or nothing when there is none of that name; case does not matter for formats ("q1_0").
[[nodiscard]] const Shape* find_shape(std::string_view name);
[[nodiscard]] std::optional<quant::Format> find_format(std::string_view name);

}  // namespace tern::tools
