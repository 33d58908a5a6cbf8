// A made-up byte-level vocabulary of any size, for models whose text means nothing anyway.
#pragma once

#include "io/gguf_writer.h"
#include "shapes.h"

namespace tern::tools {

// The 256 bytes; tokens of two, then of three of them, each made by one merge; the added tokens of
// the family last, numbered as in the real files. Every text has a tokenisation, and a reader finds
// everything that it expects.
void add_made_up_vocabulary(io::GgufWriter& writer, const Shape& shape);

}  // namespace tern::tools
