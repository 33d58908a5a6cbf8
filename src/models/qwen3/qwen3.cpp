// Qwen3: pre-norm transformer, grouped query attention with per-head norms of q and k, half-split
// rope, SwiGLU.
#include "models/qwen3/qwen3.h"

#include "models/common/decoder_model.h"

namespace tern::models {
namespace {

using program::Builder;
using program::RopePairs;
using program::ValueId;
using program::WeightId;

struct LayerWeights {
  WeightId attn_norm = 0;           // [hidden]
  std::vector<JoinedPart> qkv;      // [(heads + 2 * kv_heads) * head_dim, hidden]
  WeightId q_norm = 0, k_norm = 0;  // [head_dim]
  JoinedPart attn_output;           // [hidden, heads * head_dim]
  WeightId ffn_norm = 0;            // [hidden]
  MlpWeights mlp;
};

// x: [rows, hidden] -> [rows, hidden]
ValueId decoder_layer(Builder& b, const DecoderConfig& c, const LayerWeights& w, ValueId x,
                      ValueId kv, std::uint32_t rope) {
  ValueId h = b.rms_norm(x, w.attn_norm, c.eps);
  const std::vector<ValueId> qkv = project(b, h, w.qkv);
  const ValueId q =
      b.rope(b.rms_norm(qkv[0], w.q_norm, c.eps), c.head_dim, rope, RopePairs::kHalves);
  const ValueId k =
      b.rope(b.rms_norm(qkv[1], w.k_norm, c.eps), c.head_dim, rope, RopePairs::kHalves);
  b.kv_store(kv, k, qkv[2]);
  x = b.add(x, project(b, b.attention(q, kv, c.heads, c.attention_scale()), w.attn_output));
  h = b.rms_norm(x, w.ffn_norm, c.eps);
  return b.add(x, mlp(b, h, w.mlp));
}

LayerWeights load_layer(WeightLoader& loader, const DecoderConfig& c, std::int64_t i) {
  const std::string p = fmt::format("blk.{}.", i);
  LayerWeights w;
  w.attn_norm = loader.vector(p + "attn_norm", c.hidden);
  w.qkv = load_qkv(loader, p, c);
  w.q_norm = loader.vector(p + "attn_q_norm", c.head_dim);
  w.k_norm = loader.vector(p + "attn_k_norm", c.head_dim);
  w.attn_output = load_attn_output(loader, p, c);
  w.ffn_norm = loader.vector(p + "ffn_norm", c.hidden);
  w.mlp = load_mlp(loader, p, c.hidden, c.feed_forward);
  return w;
}

// PrismML's Bonsai models are Qwen3 without its unused rows: their files have 151,669 rows of
// tokens, those of Qwen 151,936.
constexpr std::int64_t kBonsaiVocabulary = 151'669;
bool is_bonsai(const DecoderConfig& c) { return c.vocabulary == kBonsaiVocabulary; }

// Bonsai's converter has been known to lose the scaling keys: the file is then run as written.
Result<void> warn_about_lost_scaling(WeightLoader& /*loader*/, const io::GgufFile& file,
                                     DecoderConfig& c) {
  constexpr std::int64_t kContext8B = 65'536;
  constexpr std::int64_t kContextOfOthers = 32'768;
  if (!is_bonsai(c) || file.has("qwen3.rope.scaling.type")) return {};
  if (c.context_length != kContext8B && c.context_length != kContextOfOthers) return {};
  c.warnings.emplace_back(
      "the file has no rope.scaling keys although its context length suggests YaRN; it may have "
      "lost them when it was converted, and long texts may degrade");
  return {};
}

// What PrismML recommends for Bonsai of up to 8B, which answers without a thought.
SamplingDefaults sampling_defaults(const DecoderConfig& c) {
  if (!is_bonsai(c)) return {};
  return {.temperature = 0.5F, .top_p = 0.85F, .top_k = 20, .min_p = 0};
}

}  // namespace

Result<std::unique_ptr<TextModel>> open_qwen3(const io::GgufFile& file) {
  return open_decoder<LayerWeights>(file, "qwen3",
                                    {.rules = {.needs_freq_base = true},
                                     .load_layer = load_layer,
                                     .layer = decoder_layer,
                                     .read_quirks = warn_about_lost_scaling,
                                     .sampling_defaults = sampling_defaults});
}

}  // namespace tern::models
