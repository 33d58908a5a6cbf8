// The type ids of GGUF tensors: names, block sizes, and which of them become formats of Tern.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "quant/format.h"

namespace tern::io {

// One reading of a type id: blocks of `weights` weights in `bytes` bytes.
struct GgufBlock {
  std::string_view name;         // as printed: "Q2_0", "Q2_0 (128, older)"
  std::string_view layout_name;  // for --layout; empty where an id has one reading
  std::uint32_t weights = 1;
  std::uint32_t bytes = 1;
  std::optional<quant::Format> format;  // empty: another program's type, refused by name
};

// The ids 40, 41, 42, 142 and 143 mean different things in different programs. Their readings are
// tried by replaying the offsets of the whole file (layout_replay.h).
[[nodiscard]] bool is_contested(std::uint32_t type_id);

// All readings of an id, one for ids that are not contested, none for unknown ones.
[[nodiscard]] std::span<const GgufBlock> readings_of(std::uint32_t type_id);

// The id under which a format is written.
[[nodiscard]] std::uint32_t type_id_of(quant::Format format);

// "tensor 't' has type 24 (I8), which Tern does not read here (data offset 0); known: F32 F16 ..."
[[nodiscard]] std::string unreadable_type_message(std::string_view tensor, std::uint32_t type_id,
                                                  std::string_view type_name,
                                                  std::uint64_t data_offset);

}  // namespace tern::io
