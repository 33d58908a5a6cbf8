// Llama: pre-norm transformer, grouped query attention, rope on adjacent pairs (GGUF permutes the
// rows), SwiGLU.
#include "models/llama/llama.h"

#include <cmath>

#include "models/common/decoder_layers.h"

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

struct Weights {
  WeightId token_embd = 0;  // [vocabulary, hidden]
  std::vector<LayerWeights> layers;
  WeightId output_norm = 0;  // [hidden]
  WeightId output = 0;       // [vocabulary, hidden]; token_embd when tied
};

// x: [rows, hidden] -> [rows, hidden]
ValueId decoder_layer(Builder& b, const DecoderConfig& c, const LayerWeights& w, ValueId x,
                      ValueId kv, std::uint32_t rope) {
  ValueId h = b.rms_norm(x, w.attn_norm, c.eps);
  const std::vector<ValueId> qkv = project(b, h, w.qkv);
  const ValueId q = b.rope(qkv[0], c.head_dim, rope, RopePairs::kAdjacent);
  const ValueId k = b.rope(qkv[1], c.head_dim, rope, RopePairs::kAdjacent);
  b.kv_store(kv, k, qkv[2]);
  const float scale = 1.0F / std::sqrt(static_cast<float>(c.head_dim));
  x = b.add(x, project(b, b.attention(q, kv, c.heads, scale), w.attn_output));
  h = b.rms_norm(x, w.ffn_norm, c.eps);
  return b.add(x, mlp(b, h, w.mlp));
}

class Llama : public TextModel {
 public:
  Llama(DecoderConfig config, program::WeightSet set, Weights weights)
      : config_(std::move(config)), set_(std::move(set)), weights_(std::move(weights)) {}

  [[nodiscard]] const DecoderConfig& config() const override { return config_; }
  [[nodiscard]] const program::WeightSet& weights() const override { return set_; }

  [[nodiscard]] program::Program build(const ProgramRequest& r) const override {
    Builder b("llama text", r.bucket, r.output_rows, set_);
    const std::uint32_t rope = add_rope_table(b, config_);
    b.region("embed");
    ValueId x = b.embed(weights_.token_embd);
    if (r.taps) b.output("embeddings", x);
    for (std::size_t i = 0; i < weights_.layers.size(); ++i) {
      b.region("layer", static_cast<int>(i));
      const ValueId kv = b.kv_state(kv_state_of(config_, r, i));
      x = decoder_layer(b, config_, weights_.layers[i], x, kv, rope);
      if (r.taps) b.output(fmt::format("layer_out.{}", i), x);
    }
    return finish_with_head(std::move(b), config_, r, x, weights_.output_norm, weights_.output);
  }

 private:
  DecoderConfig config_;
  program::WeightSet set_;
  Weights weights_;
};

LayerWeights load_layer(WeightLoader& loader, const DecoderConfig& c, std::int64_t i) {
  const std::string p = fmt::format("blk.{}.", i);
  LayerWeights w;
  w.attn_norm = loader.vector(p + "attn_norm", c.hidden);
  w.qkv = loader.joined(
      p + "attn_qkv",
      {{p + "attn_q", c.q_width()}, {p + "attn_k", c.kv_width()}, {p + "attn_v", c.kv_width()}},
      c.hidden);
  w.attn_output =
      loader.joined(p + "attn_output", {{p + "attn_output", c.hidden}}, c.q_width()).front();
  w.ffn_norm = loader.vector(p + "ffn_norm", c.hidden);
  w.mlp = load_mlp(loader, p, c.hidden, c.feed_forward);
  return w;
}

// rope_freqs.weight: frequency j is divided by entry j; how a GGUF keeps the scaling that Hugging
// Face calls llama3.
Result<void> take_frequency_factors(WeightLoader& loader, DecoderConfig& c) {
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

}  // namespace

Result<std::unique_ptr<TextModel>> open_llama(const io::GgufFile& file) {
  Result<DecoderConfig> config =
      read_decoder_config(file, "llama", {.needs_head_dim = false, .needs_freq_base = false});
  TERN_TRY(config);
  DecoderConfig& c = *config;
  WeightLoader loader(file);
  Weights w;
  TERN_TRY(load_embedding(loader, file, c, w.token_embd, w.output));
  w.output_norm = loader.vector("output_norm", c.hidden);
  TERN_TRY(take_frequency_factors(loader, c));
  TERN_TRY(compute_frequencies(c));
  for (std::int64_t i = 0; i < c.layers && loader.ok(); ++i)
    w.layers.push_back(load_layer(loader, c, i));
  TERN_TRY(loader.finish(c.architecture));
  return std::unique_ptr<TextModel>(
      std::make_unique<Llama>(std::move(c), std::move(loader).take(), std::move(w)));
}

}  // namespace tern::models
