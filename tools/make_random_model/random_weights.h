// Random weights of any format, fast enough for files of gigabytes.
#pragma once

#include <cstdint>

#include "io/gguf_writer.h"
#include "quant/format.h"

namespace tern::tools {

// A source of `weights` weights whose standard deviation is about 1 / sqrt(inputs), so that a
// matrix product keeps the size of its input. All codes that the format's writers use occur; scales
// differ from block to block by a factor of up to 3. The same seed gives the same bytes. `weights`
// is a multiple of the format's group.
[[nodiscard]] io::TensorSource random_weights(quant::Format format, std::uint64_t weights,
                                              std::uint64_t inputs, std::uint64_t seed);

}  // namespace tern::tools
