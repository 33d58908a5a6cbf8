// Projections, the SwiGLU block, and the ends of a decoder-only program.
#include "models/common/decoder_layers.h"

#include <utility>

#include "base/limits.h"

namespace tern::models {
namespace {

program::ValueId product(program::Builder& b, program::ValueId x, const JoinedPart& part) {
  return part.bias ? b.linear(x, part.weight, *part.bias) : b.linear(x, part.weight);
}

}  // namespace

std::vector<program::ValueId> project(program::Builder& b, program::ValueId x,
                                      const std::vector<JoinedPart>& parts) {
  std::vector<std::pair<program::WeightId, program::ValueId>> products;
  std::vector<program::ValueId> result;
  for (const JoinedPart& part : parts) {
    program::ValueId whole = program::kNoValue;
    for (const auto& [weight, value] : products)
      if (weight == part.weight) whole = value;
    if (whole == program::kNoValue) {
      whole = product(b, x, part);
      products.emplace_back(part.weight, whole);
    }
    const bool is_all = b.program().at(whole).rows.width == part.rows;
    result.push_back(is_all ? whole : b.slice(whole, part.begin, part.rows));
  }
  return result;
}

program::ValueId project(program::Builder& b, program::ValueId x, const JoinedPart& part) {
  return product(b, x, part);
}

MlpWeights load_mlp(WeightLoader& loader, const std::string& prefix, std::int64_t hidden,
                    std::int64_t feed_forward) {
  MlpWeights w;
  w.gate_up = loader.joined(
      prefix + "ffn_gate_up",
      {{prefix + "ffn_gate", feed_forward}, {prefix + "ffn_up", feed_forward}}, hidden);
  w.down =
      loader.joined(prefix + "ffn_down", {{prefix + "ffn_down", hidden}}, feed_forward).front();
  return w;
}

program::ValueId mlp(program::Builder& b, program::ValueId h, const MlpWeights& w) {
  const std::vector<program::ValueId> gate_up = project(b, h, w.gate_up);
  return project(b, b.swiglu(gate_up[0], gate_up[1]), w.down);
}

std::vector<JoinedPart> load_qkv(WeightLoader& loader, const std::string& prefix,
                                 const DecoderConfig& c) {
  return loader.joined(prefix + "attn_qkv",
                       {{prefix + "attn_q", c.q_width()},
                        {prefix + "attn_k", c.kv_width()},
                        {prefix + "attn_v", c.kv_width()}},
                       c.hidden);
}

JoinedPart load_attn_output(WeightLoader& loader, const std::string& prefix,
                            const DecoderConfig& c) {
  const std::string name = prefix + "attn_output";
  return loader.joined(name, {{name, c.hidden}}, c.q_width()).front();
}

Result<void> load_embedding(WeightLoader& loader, const io::GgufFile& file, DecoderConfig& c,
                            program::WeightId& token_embd, program::WeightId& output) {
  const io::GgufTensor* table = file.find_tensor("token_embd.weight");
  if (!table) return fail(ErrorCode::kInvalidFile, "tensor 'token_embd.weight' is missing");
  if (table->rows() > limits::kVocabulary)
    return fail(ErrorCode::kInvalidFile,
                "tensor 'token_embd.weight' has {} rows, expected at most {}", table->rows(),
                limits::kVocabulary);
  c.vocabulary = static_cast<std::int64_t>(table->rows());
  c.is_tied = !loader.has("output.weight");
  const auto table_uses =
      static_cast<std::uint8_t>(program::kUseLookup | (c.is_tied ? program::kUseMatmul : 0));
  token_embd = loader.matrix("token_embd", c.vocabulary, c.hidden, table_uses);
  output =
      c.is_tied ? token_embd : loader.matrix("output", c.vocabulary, c.hidden, program::kUseMatmul);
  return {};
}

Result<void> compute_frequencies(DecoderConfig& c) {
  Result<RopeFrequencies> frequencies = rope_frequencies(c.rope);
  TERN_TRY(frequencies);
  c.frequencies = std::move(*frequencies);
  return {};
}

std::uint32_t add_rope_table(program::Builder& b, const DecoderConfig& c) {
  return b.rope_table({c.frequencies.frequency, c.frequencies.attention_factor});
}

program::StateDecl kv_state_of(const DecoderConfig& c, const ProgramRequest& r, std::size_t layer) {
  return {fmt::format("kv.{}", layer), c.kv_heads, c.head_dim, r.k, r.v};
}

program::Program finish_with_head(program::Builder b, const DecoderConfig& c,
                                  const ProgramRequest& r, program::ValueId x,
                                  program::WeightId norm, program::WeightId head) {
  b.region("head");
  // With taps the final norm of every row is wanted, else only those rows whose logits are.
  program::ValueId wanted = program::kNoValue;
  program::ValueId all = program::kNoValue;
  if (r.taps) {
    all = b.rms_norm(x, norm, c.eps);
    wanted = b.gather_rows(all);
  } else {
    wanted = b.rms_norm(b.gather_rows(x), norm, c.eps);
  }
  b.output("logits", b.linear(wanted, head));
  if (r.taps) b.output("final_norm", all);
  return std::move(b).finish();
}

}  // namespace tern::models
