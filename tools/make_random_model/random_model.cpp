// Keys and tensors by the names that GGUF readers expect.
#include "random_model.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "io/gguf_types.h"
#include "random_weights.h"
#include "vocabulary.h"

namespace tern::tools {
namespace {

using quant::Format;

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return result;
}

// general.file_type, informative only
std::uint32_t file_type_of(Format format) {
  switch (format) {
    case Format::kF32:
      return 0;
    case Format::kF16:
      return 1;
    case Format::kQ4_0:
      return 2;
    case Format::kQ4_1:
      return 3;
    case Format::kQ8_0:
      return 7;
    case Format::kBf16:
      return 32;
    case Format::kT1G256:
      return 36;
    case Format::kT2G256:
      return 37;
    case Format::kQ1G128:
      return 40;
    case Format::kT2G64:
      return 41;
    case Format::kT2G128:
      return 141;
    case Format::kT1G128:
      break;
  }
  return 143;
}

void add_config(io::GgufWriter& writer, const RandomModel& model, std::uint32_t rows) {
  const Shape& s = *model.shape;
  const std::string a = std::string(s.architecture) + ".";
  writer.add_string("general.architecture", s.architecture);
  writer.add_string("general.type", "model");
  writer.add_string("general.name", std::string("random ") + std::string(s.name));
  writer.add_u32("general.file_type", file_type_of(model.format));
  writer.add_u32("general.quantization_version", 2);
  writer.add_u32(a + "block_count", s.layers);
  writer.add_u32(a + "context_length", s.context);
  writer.add_u32(a + "embedding_length", s.hidden);
  writer.add_u32(a + "feed_forward_length", s.ffn);
  writer.add_u32(a + "attention.head_count", s.heads);
  writer.add_u32(a + "attention.head_count_kv", s.kv_heads);
  writer.add_u32(a + "attention.key_length", s.head_dim);
  writer.add_u32(a + "attention.value_length", s.head_dim);
  writer.add_f32(a + "attention.layer_norm_rms_epsilon", s.rms_eps);
  writer.add_f32(a + "rope.freq_base", s.rope_theta);
  if (s.architecture == "llama") {
    writer.add_u32(a + "rope.dimension_count", s.head_dim);
    writer.add_u32(a + "vocab_size", rows);
  }
  if (model.has_yarn) {
    writer.add_string(a + "rope.scaling.type", "yarn");
    writer.add_f32(a + "rope.scaling.factor", 4.0F);
    writer.add_u32(a + "rope.scaling.original_context_length", s.yarn_original_context);
  }
}

class TensorAdder {
 public:
  TensorAdder(io::GgufWriter& writer, Format format, std::uint64_t seed)
      : writer_(writer), format_(format), seed_(seed) {}

  Result<void> matrix(const std::string& name, std::uint64_t inputs, std::uint64_t outputs) {
    const auto group = static_cast<std::uint64_t>(quant::info(format_).group);
    if (inputs % group != 0) {
      return fail(ErrorCode::kInvalidArgument,
                  "tensor '{}' has rows of {}, type {} needs a multiple of {}; choose another type",
                  name, inputs, quant::info(format_).file_name, group);
    }
    const std::array<std::uint64_t, 2> ne = {inputs, outputs};
    const std::uint64_t weights = inputs * outputs;
    writer_.add_tensor(name, ne, io::type_id_of(format_), quant::bytes_for(format_, weights),
                       random_weights(format_, weights, inputs, next_seed()));
    return {};
  }

  // Ones: the sizes of activations stay as they are.
  void norm(const std::string& name, std::uint64_t width) {
    const std::array<std::uint64_t, 1> ne = {width};
    writer_.add_tensor(name, ne, io::type_id_of(Format::kF32), 4 * width,
                       [width](const io::ByteSink& sink) {
                         const std::vector<float> ones(width, 1.0F);
                         return sink(std::as_bytes(std::span(ones)));
                       });
  }

 private:
  // Far apart for tensors of one file and for neighbouring seeds.
  std::uint64_t next_seed() { return (seed_ << 32) + 0x632be5abU * ++tensors_; }

  io::GgufWriter& writer_;
  Format format_;
  std::uint64_t seed_;
  std::uint64_t tensors_ = 0;
};

Result<void> add_layer(TensorAdder& add, const Shape& s, std::uint32_t layer) {
  const std::string p = fmt::format("blk.{}.", layer);
  const std::uint64_t q_width = std::uint64_t{s.heads} * s.head_dim;
  const std::uint64_t kv_width = std::uint64_t{s.kv_heads} * s.head_dim;
  add.norm(p + "attn_norm.weight", s.hidden);
  TERN_TRY(add.matrix(p + "attn_q.weight", s.hidden, q_width));
  TERN_TRY(add.matrix(p + "attn_k.weight", s.hidden, kv_width));
  TERN_TRY(add.matrix(p + "attn_v.weight", s.hidden, kv_width));
  if (s.architecture == "qwen3") {
    add.norm(p + "attn_q_norm.weight", s.head_dim);
    add.norm(p + "attn_k_norm.weight", s.head_dim);
  }
  TERN_TRY(add.matrix(p + "attn_output.weight", q_width, s.hidden));
  add.norm(p + "ffn_norm.weight", s.hidden);
  TERN_TRY(add.matrix(p + "ffn_gate.weight", s.hidden, s.ffn));
  TERN_TRY(add.matrix(p + "ffn_up.weight", s.hidden, s.ffn));
  return add.matrix(p + "ffn_down.weight", s.ffn, s.hidden);
}

// Copies tokenizer.*, and says how many tokens there are.
Result<std::uint32_t> copy_vocabulary(io::GgufWriter& writer, const io::GgufFile& file) {
  const auto tokens = file.get_strings("tokenizer.ggml.tokens");
  if (!tokens.ok()) return tokens.error();
  for (const io::GgufPair& pair : file.pairs()) {
    if (pair.key.starts_with("tokenizer.")) writer.add_pair(pair);
  }
  return static_cast<std::uint32_t>(tokens->size());
}

}  // namespace

Result<io::GgufWriter> make_random_model(const RandomModel& model) {
  const Shape& s = *model.shape;
  if (model.has_yarn && s.yarn_original_context == 0) {
    return fail(ErrorCode::kInvalidArgument, "shape {} has no YaRN form", s.name);
  }
  io::GgufWriter writer;
  std::uint32_t rows = s.vocabulary;
  if (model.vocabulary != nullptr) {
    const auto tokens = model.vocabulary->get_strings("tokenizer.ggml.tokens");
    if (!tokens.ok()) return tokens.error();
    rows = static_cast<std::uint32_t>(tokens->size());
  }
  add_config(writer, model, rows);
  if (model.vocabulary != nullptr) {
    const auto copied = copy_vocabulary(writer, *model.vocabulary);
    if (!copied.ok()) return copied.error();
  } else {
    add_made_up_vocabulary(writer, s);
  }
  TensorAdder add(writer, model.format, model.seed);
  TERN_TRY(add.matrix("token_embd.weight", s.hidden, rows));
  for (std::uint32_t layer = 0; layer < s.layers; ++layer) TERN_TRY(add_layer(add, s, layer));
  add.norm("output_norm.weight", s.hidden);
  if (!s.is_tied) TERN_TRY(add.matrix("output.weight", s.hidden, rows));
  return writer;
}

const Shape* find_shape(std::string_view name) {
  const auto found = std::ranges::find(kShapes, lower(name), &Shape::name);
  return found == kShapes.end() ? nullptr : &*found;
}

std::optional<Format> find_format(std::string_view name) {
  for (const quant::FormatInfo& f : quant::kFormats) {
    if (lower(f.file_name) == lower(name)) return f.format;
  }
  return std::nullopt;
}

}  // namespace tern::tools
