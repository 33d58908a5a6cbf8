// What the registry opens, what it refuses and in which words, on models of one small layer.
#include "models/registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "io/gguf_writer.h"

namespace tern::models {
namespace {

using quant::Format;
using testing::HasSubstr;
using testing::Not;

constexpr std::uint64_t kHidden = 32;
constexpr std::uint64_t kHeadDim = 16;

// A complete file: every number in it is zero.
class SmallModel {
 public:
  explicit SmallModel(std::string architecture, std::uint64_t vocabulary = 8)
      : architecture_(std::move(architecture)),
        zeros_(4 * kHidden * std::max(vocabulary, kHidden)) {
    writer_.add_string("general.architecture", architecture_);
    key("block_count", 1);
    key("context_length", 64);
    key("embedding_length", kHidden);
    key("feed_forward_length", kHidden);
    key("attention.head_count", 2);
    key("attention.key_length", kHeadDim);
    writer_.add_f32(architecture_ + ".attention.layer_norm_rms_epsilon", 1e-6F);
    writer_.add_f32(architecture_ + ".rope.freq_base", 10000);
    matrix("token_embd", vocabulary);
    vector("output_norm", kHidden);
    for (const std::string_view name : {"attn_norm", "ffn_norm"}) vector(layer(name), kHidden);
    for (const std::string_view name :
         {"attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"}) {
      matrix(layer(name), kHidden);
    }
    if (architecture_ == "qwen3") {
      for (const std::string_view name : {"attn_q_norm", "attn_k_norm"}) {
        vector(layer(name), kHeadDim);
      }
    }
  }

  void key(std::string_view name, std::uint64_t value) {
    writer_.add_u32(architecture_ + "." + std::string(name), static_cast<std::uint32_t>(value));
  }
  void string(std::string_view name, std::string_view value) { writer_.add_string(name, value); }
  void vector(const std::string& name, std::uint64_t width, Format format = Format::kF32) {
    add(name + ".weight", std::array{width}, format);
  }
  void bias(std::string_view name, Format format) {
    add(layer(name) + ".bias", std::array{kHidden}, format);
  }
  static std::string layer(std::string_view name) { return "blk.0." + std::string(name); }

  Result<std::unique_ptr<TextModel>> open() {
    bytes_ = writer_.to_bytes().value();
    file_.emplace(io::GgufFile::read(bytes_).value());
    return open_text_model(*file_);
  }
  std::string refusal() {
    const auto model = open();
    return model.ok() ? "opens" : model.error().message();
  }

 private:
  void matrix(const std::string& name, std::uint64_t rows) {
    add(name + ".weight", std::array{kHidden, rows}, Format::kF16);
  }
  void add(const std::string& name, std::span<const std::uint64_t> ne, Format format) {
    std::uint64_t elements = 1;
    for (const std::uint64_t n : ne) elements *= n;
    writer_.add_tensor(name, ne, format,
                       std::span(zeros_).first(quant::bytes_for(format, elements)));
  }

  std::string architecture_;
  std::vector<std::byte> zeros_;
  io::GgufWriter writer_;
  std::vector<std::byte> bytes_;
  std::optional<io::GgufFile> file_;
};

TEST(Registry, OpensEachFamily) {
  for (const char* architecture : {"qwen3", "llama"}) {
    SmallModel small(architecture);
    const auto model = small.open();
    ASSERT_TRUE(model.ok()) << model.error().message();
    EXPECT_EQ((*model)->config().architecture, architecture);
    EXPECT_EQ((*model)->config().vocabulary, 8);
    EXPECT_TRUE((*model)->config().is_tied);
    const program::Program p = (*model)->build({.bucket = {4, 64}, .taps = true});
    EXPECT_EQ(p.name, std::string(architecture) + " text");
    EXPECT_EQ(p.outputs.size(), 4U);  // embeddings, one layer, logits, final norm
  }
}

TEST(Registry, SaysWhatTernDoesNotRunYetWithoutNamingOptionsThatDoNotExist) {
  for (const auto& [architecture, words] :
       {std::pair{"eagle3",
                  "draft model for speculative decoding ('eagle3'), which Tern does not "
                  "run yet"},
        std::pair{"clip", "vision projector (mmproj), not a language model, and Tern does not"}}) {
    const std::string refusal = SmallModel(architecture).refusal();
    EXPECT_THAT(refusal, HasSubstr(words));
    EXPECT_THAT(refusal, Not(HasSubstr("--")));
  }
  SmallModel adapter("llama");
  adapter.string("general.type", "adapter");
  EXPECT_THAT(adapter.refusal(), HasSubstr("adapter (LoRA), not a model, and Tern does not apply"));
}

TEST(Registry, ShowsStringsOfTheFileEscaped) {
  io::GgufWriter writer;
  writer.add_string("general.architecture", "a\x1b[31m\n");
  const std::vector<std::byte> bytes = writer.to_bytes().value();
  EXPECT_EQ(open_text_model(io::GgufFile::read(bytes).value()).error().message(),
            "architecture 'a\\x1b[31m\\n' is not supported (qwen3, llama are)");
  SmallModel rope("llama");
  rope.string("llama.rope.scaling.type", "x\x1b]0;y");
  EXPECT_EQ(rope.refusal(), "rope scaling 'x\\x1b]0;y' is not supported");
}

TEST(Registry, BonsaiHasSamplingDefaultsOfItsOwn) {
  SmallModel bonsai("qwen3", 151'669);
  SmallModel other("qwen3", 151'936);
  const SamplingDefaults own = bonsai.open().value()->sampling_defaults();
  EXPECT_EQ(own.temperature, 0.5F);
  EXPECT_EQ(own.top_p, 0.85F);
  EXPECT_EQ(own.top_k, 20);
  EXPECT_EQ(own.min_p, 0.0F);
  const SamplingDefaults common = other.open().value()->sampling_defaults();
  EXPECT_EQ(common.temperature, 0.8F);
  EXPECT_EQ(common.top_k, 40);
}

TEST(Registry, JoinedBiasesMustBeOfOneType) {
  SmallModel mixed("llama");
  mixed.bias("attn_q", Format::kF32);
  mixed.bias("attn_k", Format::kF16);
  mixed.bias("attn_v", Format::kF32);
  EXPECT_EQ(mixed.refusal(),
            "tensor 'blk.0.attn_k.bias' has type F16, expected F32 like 'blk.0.attn_q.bias', which "
            "it is joined with");
  SmallModel packed("llama");
  packed.bias("attn_q", Format::kQ8_0);
  EXPECT_EQ(packed.refusal(),
            "tensor 'blk.0.attn_q.bias' has type Q8_0, expected F32, F16 or BF16");
}

}  // namespace
}  // namespace tern::models
