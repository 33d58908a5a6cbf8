// The table of limits.
#include "cli/limit_table.h"

#include <array>

namespace tern::cli {
namespace {

constexpr std::array kLimits = {
    LimitRow{"GGUF key, bytes", 65'535},
    LimitRow{"GGUF pairs", 65'536},
    LimitRow{"GGUF tensors", 65'536},
    LimitRow{"GGUF array nesting", 4},
    LimitRow{"GGUF tensor name, bytes", 255},
    LimitRow{"GGUF dimensions", 4},
    LimitRow{"GGUF alignment, bytes", 65'536},
    LimitRow{"tensor elements", 9'223'372'036'854'775'807},
    LimitRow{"layers", 1'024},
    LimitRow{"heads", 4'096},
    LimitRow{"experts", 1'024},
    LimitRow{"width of anything", 1'048'576},
    LimitRow{"shards", 1'024},
    LimitRow{"vocabulary, tokens", 4'194'304},
    LimitRow{"token text, bytes", 65'535},
    LimitRow{"safetensors header, bytes", 100'000'000},
    LimitRow{"safetensors tensors", 1'048'576},
    LimitRow{"safetensors dimensions", 8},
    LimitRow{"safetensors header depth", 8},
    LimitRow{"JSON depth", 64},
    LimitRow{"JSON string in a file, bytes", 67'108'864},
    LimitRow{"template source, bytes", 1'048'576},
    LimitRow{"template parser depth", 128},
    LimitRow{"template call depth", 64},
    LimitRow{"template steps", 10'000'000},
    LimitRow{"template output, bytes", 16'777'216},
};

}  // namespace

std::span<const LimitRow> limit_table() { return kLimits; }

}  // namespace tern::cli
