// Llama: pre-norm transformer, grouped query attention, rope on adjacent pairs (GGUF permutes the
// rows), SwiGLU.
#include "models/llama/llama.h"

#include <cmath>

#include "models/common/decoder_model.h"

namespace tern::models {
namespace {

using program::Builder;
using program::RopePairs;
using program::ValueId;
using program::WeightId;

struct LayerWeights {
  WeightId attn_norm = 0;       // [hidden]
  std::vector<JoinedPart> qkv;  // [(heads + 2 * kv_heads) * head_dim, hidden]
  JoinedPart attn_output;       // [hidden, heads * head_dim]
  WeightId ffn_norm = 0;        // [hidden]
  MlpWeights mlp;
};

// x: [rows, hidden] -> [rows, hidden]
ValueId decoder_layer(Builder& b, const DecoderConfig& c, const LayerWeights& w, ValueId x,
                      ValueId kv, std::uint32_t rope) {
  ValueId h = b.rms_norm(x, w.attn_norm, c.eps);
  const std::vector<ValueId> qkv = project(b, h, w.qkv);
  const ValueId q = b.rope(qkv[0], c.head_dim, rope, RopePairs::kAdjacent);
  const ValueId k = b.rope(qkv[1], c.head_dim, rope, RopePairs::kAdjacent);
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
  w.attn_output = load_attn_output(loader, p, c);
  w.ffn_norm = loader.vector(p + "ffn_norm", c.hidden);
  w.mlp = load_mlp(loader, p, c.hidden, c.feed_forward);
  return w;
}

// rope_freqs.weight: frequency j is divided by entry j; how a GGUF keeps the scaling that Hugging
// Face calls llama3.
Result<void> take_frequency_factors(WeightLoader& loader, const io::GgufFile& /*file*/,
                                    DecoderConfig& c) {
  const auto factors = loader.numbers("rope_freqs.weight", c.rope.dims / 2);
  if (!factors) return {};
  if (c.rope.scaling != RopeScaling::kNone)
    return fail(ErrorCode::kUnsupported,
                "the file has rope.scaling keys and a tensor 'rope_freqs.weight'; only one of them "
                "can be applied");
  for (std::size_t j = 0; j < factors->size(); ++j) {
    const float factor = (*factors)[j];
    if (!std::isfinite(factor) || factor <= 0)
      return fail(ErrorCode::kInvalidFile,
                  "tensor 'rope_freqs.weight' entry {} is {}, expected a finite number above 0", j,
                  factor);
  }
  c.rope.scaling = RopeScaling::kFactors;
  c.rope.frequency_factors.assign(factors->begin(), factors->end());
  return {};
}

SamplingDefaults sampling_defaults(const DecoderConfig& /*c*/) { return {}; }

}  // namespace

Result<std::unique_ptr<TextModel>> open_llama(const io::GgufFile& file) {
  return open_decoder<LayerWeights>(file, "llama",
                                    {.rules = {},
                                     .load_layer = load_layer,
                                     .layer = decoder_layer,
                                     .read_quirks = take_frequency_factors,
                                     .sampling_defaults = sampling_defaults});
}

}  // namespace tern::models
