// What decoder-only families share around their layers: opening a file, and the program from the
// embedding table over the layers to the head.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "models/common/decoder_layers.h"
#include "models/text_model.h"

namespace tern::models {

// A family: what its files need, what its layer multiplies by, and the layer itself.
template <class LayerWeights>
struct DecoderFamily {
  ConfigRules rules;
  // Layer number i, from the tensors "blk.<i>.*".
  LayerWeights (*load_layer)(WeightLoader& loader, const DecoderConfig& c, std::int64_t i);
  // x: [rows, hidden] -> [rows, hidden]
  program::ValueId (*layer)(program::Builder& b, const DecoderConfig& c, const LayerWeights& w,
                            program::ValueId x, program::ValueId kv, std::uint32_t rope);
  // Keys and tensors that no other family has; sees the configuration before rope frequencies are
  // computed.
  Result<void> (*read_quirks)(WeightLoader& loader, const io::GgufFile& file, DecoderConfig& c);
  SamplingDefaults (*sampling_defaults)(const DecoderConfig& c);
};

template <class LayerWeights>
class DecoderModel : public TextModel {
 public:
  struct Weights {
    program::WeightId token_embd = 0;  // [vocabulary, hidden]
    std::vector<LayerWeights> layers;
    program::WeightId output_norm = 0;  // [hidden]
    program::WeightId output = 0;       // [vocabulary, hidden]; token_embd when tied
  };

  DecoderModel(const DecoderFamily<LayerWeights>& family, DecoderConfig config,
               program::WeightSet set, Weights weights)
      : family_(family),
        config_(std::move(config)),
        set_(std::move(set)),
        weights_(std::move(weights)) {}

  [[nodiscard]] const DecoderConfig& config() const override { return config_; }
  [[nodiscard]] const program::WeightSet& weights() const override { return set_; }
  [[nodiscard]] SamplingDefaults sampling_defaults() const override {
    return family_.sampling_defaults(config_);
  }

  [[nodiscard]] program::Program build(const ProgramRequest& r) const override {
    program::Builder b(config_.architecture + " text", r.bucket, r.output_rows, set_);
    const std::uint32_t rope = add_rope_table(b, config_);
    b.region("embed");
    program::ValueId x = b.embed(weights_.token_embd);
    if (r.taps) b.output("embeddings", x);
    for (std::size_t i = 0; i < weights_.layers.size(); ++i) {
      b.region("layer", static_cast<int>(i));
      const program::ValueId kv = b.kv_state(kv_state_of(config_, r, i));
      x = family_.layer(b, config_, weights_.layers[i], x, kv, rope);
      if (r.taps) b.output(fmt::format("layer_out.{}", i), x);
    }
    return finish_with_head(std::move(b), config_, r, x, weights_.output_norm, weights_.output);
  }

 private:
  DecoderFamily<LayerWeights> family_;
  DecoderConfig config_;
  program::WeightSet set_;
  Weights weights_;
};

template <class LayerWeights>
Result<std::unique_ptr<TextModel>> open_decoder(const io::GgufFile& file,
                                                const std::string& architecture,
                                                const DecoderFamily<LayerWeights>& family) {
  using Model = DecoderModel<LayerWeights>;
  TERN_ASSIGN(DecoderConfig c, read_decoder_config(file, architecture, family.rules));
  WeightLoader loader(file);
  typename Model::Weights w;
  TERN_TRY(load_embedding(loader, file, c, w.token_embd, w.output));
  w.output_norm = loader.vector("output_norm", c.hidden);
  TERN_TRY(family.read_quirks(loader, file, c));
  TERN_TRY(compute_frequencies(c));
  for (std::int64_t i = 0; i < c.layers && loader.ok(); ++i) {
    w.layers.push_back(family.load_layer(loader, c, i));
  }
  TERN_TRY(loader.finish(architecture));
  return std::unique_ptr<TextModel>(
      std::make_unique<Model>(family, std::move(c), std::move(loader).take(), std::move(w)));
}

}  // namespace tern::models
