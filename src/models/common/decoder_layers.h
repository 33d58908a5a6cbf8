// Pieces that decoder-only families share: projections by joined weights, and the ends of the
// program.
#pragma once

#include <vector>

#include "models/common/weight_loader.h"
#include "models/text_model.h"
#include "program/builder.h"

namespace tern::models {

// x times each part, one product per distinct weight. Parts of a joined weight become slices of its
// product.
[[nodiscard]] std::vector<program::ValueId> project(program::Builder& b, program::ValueId x,
                                                    const std::vector<JoinedPart>& parts);

// x times a weight that is one part only.
[[nodiscard]] program::ValueId project(program::Builder& b, program::ValueId x,
                                       const JoinedPart& part);

// The SwiGLU block, shared by all families here: down(silu(gate h) * up h).
struct MlpWeights {
  std::vector<JoinedPart> gate_up;  // [2 * feed_forward, hidden], gate rows first
  JoinedPart down;                  // [hidden, feed_forward]
};
[[nodiscard]] MlpWeights load_mlp(WeightLoader& loader, const std::string& prefix,
                                  std::int64_t hidden, std::int64_t feed_forward);
[[nodiscard]] program::ValueId mlp(program::Builder& b, program::ValueId h, const MlpWeights& w);

// q, k and v of the attention, and what brings its heads back to the width of the model.
[[nodiscard]] std::vector<JoinedPart> load_qkv(WeightLoader& loader, const std::string& prefix,
                                               const DecoderConfig& c);
[[nodiscard]] JoinedPart load_attn_output(WeightLoader& loader, const std::string& prefix,
                                          const DecoderConfig& c);

// token_embd and the head: its own matrix, or the table again when the file has none (sets
// c.is_tied). The vocabulary is the number of rows of the table.
[[nodiscard]] Result<void> load_embedding(WeightLoader& loader, const io::GgufFile& file,
                                          DecoderConfig& c, program::WeightId& token_embd,
                                          program::WeightId& output);
// Computes c.frequencies from c.rope.
[[nodiscard]] Result<void> compute_frequencies(DecoderConfig& c);

[[nodiscard]] std::uint32_t add_rope_table(program::Builder& b, const DecoderConfig& c);
[[nodiscard]] program::StateDecl kv_state_of(const DecoderConfig& c, const ProgramRequest& r,
                                             std::size_t layer);
// Final norm, wanted rows, head; outputs "logits" first, then (with taps) "final_norm".
[[nodiscard]] program::Program finish_with_head(program::Builder b, const DecoderConfig& c,
                                                const ProgramRequest& r, program::ValueId x,
                                                program::WeightId norm, program::WeightId head);

}  // namespace tern::models
