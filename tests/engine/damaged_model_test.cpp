// Damaged keys and tensors of a model (rows RK of the robustness rules): each is refused with its
// own sentence.
#include <cstring>
#include <functional>
#include <limits>

#include "tests/engine/tiny_engine.h"

namespace tern {
namespace {

using fixtures::make_tiny_model;
using fixtures::TinyArchitecture;
using fixtures::TinyModel;
using quant::Format;
using testing_tiny::TemporaryFolder;

struct Row {
  const char* name;
  std::function<void(TinyModel&)> edit;
  std::vector<const char*> words;  // what the sentence must say
};

constexpr std::uint32_t kMax = std::numeric_limits<std::uint32_t>::max();
constexpr float kInf = std::numeric_limits<float>::infinity();

void set_scale(TinyModel& m, const char* tensor, std::uint8_t low, std::uint8_t high) {
  auto& bytes = m.tensor(tensor).bytes;
  bytes[0] = static_cast<std::byte>(low);
  bytes[1] = static_cast<std::byte>(high);
}

std::vector<Row> key_rows() {
  const auto u32 = [](const char* suffix, std::uint32_t value) {
    return [suffix, value](TinyModel& m) { m.set_u32(m.key(suffix), value); };
  };
  const auto f32 = [](const char* suffix, float value) {
    return [suffix, value](TinyModel& m) { m.set_f32(m.key(suffix), value); };
  };
  return {
      {"RK01 no layer", u32("block_count", 0), {"block_count", "0", "1 to 1024"}},
      {"RK02 too many layers", u32("block_count", kMax), {"block_count", "1 to 1024"}},
      {"RK02 one more than the limit", u32("block_count", 1025), {"1025", "1 to 1024"}},
      {"RK02 a layer that is missing", u32("block_count", 2), {"blk.1.", "missing"}},
      {"RK03 no kv head", u32("attention.head_count_kv", 0), {"head_count_kv", "0"}},
      {"RK03 more kv heads", u32("attention.head_count_kv", 5), {"head_count_kv", "5", "divisor"}},
      {"RK03 not a divisor", u32("attention.head_count_kv", 3), {"head_count_kv", "3", "divisor"}},
      {"RK04 no width", u32("attention.key_length", 0), {"key_length", "0"}},
      {"RK04 odd width", u32("attention.key_length", 127), {"127"}},
      {"RK04 huge width", u32("attention.key_length", 1U << 31), {"key_length", "2147483648"}},
      {"RK05 no context", u32("context_length", 0), {"context_length", "0"}},
      {"RK06 width of another model", u32("embedding_length", 1U << 31), {"embedding_length"}},
      {"RK06 width that no tensor has", u32("embedding_length", 256), {"token_embd", "expected"}},
      {"RK07 theta zero", f32("rope.freq_base", 0), {"freq_base", "above 0"}},
      {"RK07 theta NaN",
       f32("rope.freq_base", std::numeric_limits<float>::quiet_NaN()),
       {"freq_base"}},
      {"RK07 theta Inf", f32("rope.freq_base", kInf), {"freq_base"}},
      {"RK07 factor zero",
       [](TinyModel& m) {
         m.set_string(m.key("rope.scaling.type"), "yarn");
         m.set_f32(m.key("rope.scaling.factor"), 0);
       },
       {"rope.scaling.factor", "above 0"}},
      {"F21 unknown scaling",
       [](TinyModel& m) { m.set_string(m.key("rope.scaling.type"), "longrope"); },
       {"rope scaling 'longrope' is not supported"}},
      {"RK08 rotates more than a head", u32("rope.dimension_count", 64), {"dimension_count", "64"}},
      {"RK08 odd", u32("rope.dimension_count", 31), {"dimension_count", "31"}},
      {"eps zero", f32("attention.layer_norm_rms_epsilon", 0), {"layer_norm_rms_epsilon"}},
  };
}

std::vector<Row> tokenizer_rows() {
  return {
      {"RK09 tokens as numbers",
       [](TinyModel& m) {
         const std::vector<std::int32_t> ids(272, 1);
         m.set_i32s("tokenizer.ggml.tokens", ids);
       },
       {"tokenizer.ggml.tokens", "expected"}},
      {"RK10 one type less",
       [](TinyModel& m) {
         std::vector<std::int32_t> types = m.token_types();
         types.pop_back();
         m.set_i32s("tokenizer.ggml.token_type", types);
       },
       {"271", "272"}},
      {"RK11 end token beyond",
       [](TinyModel& m) { m.set_u32("tokenizer.ggml.eos_token_id", 272); },
       {"272"}},
      {"RK13 merge without a space",
       [](TinyModel& m) {
         std::vector<std::string> merges = m.merges();
         merges[3] = "ab";
         m.set_strings("tokenizer.ggml.merges", merges);
       },
       {"merge", "3"}},
      {"RK13 merge of a token that does not exist",
       [](TinyModel& m) {
         std::vector<std::string> merges = m.merges();
         merges[2] = "qqq zzz";
         m.set_strings("tokenizer.ggml.merges", merges);
       },
       {"merge", "2"}},
      {"RT06 unknown pre-tokenizer",
       [](TinyModel& m) { m.set_string("tokenizer.ggml.pre", "klingon"); },
       {"klingon"}},
      {"F11 unknown model",
       [](TinyModel& m) { m.set_string("tokenizer.ggml.model", "rwkv"); },
       {"rwkv"}},
      {"RK17 template as a number",
       [](TinyModel& m) { m.set_u32("tokenizer.chat_template", 7); },
       {"tokenizer.chat_template", "u32"}},
  };
}

std::vector<Row> tensor_rows() {
  return {
      {"RK15 a layer too many",
       [](TinyModel& m) {
         fixtures::TinyTensor extra = m.tensor("blk.0.attn_q.weight");
         extra.name = "blk.7.attn_q.weight";
         m.tensors.push_back(extra);
       },
       {"blk.7.attn_q.weight", "not part of a"}},
      {"RK16 scale Inf",
       [](TinyModel& m) {
         m.set_format("blk.0.ffn_down.weight", Format::kQ1G128);
         set_scale(m, "blk.0.ffn_down.weight", 0x00, 0x7c);
       },
       {"blk.0.ffn_down.weight", "block 0", "inf"}},
      {"RK16 scale NaN",
       [](TinyModel& m) {
         m.set_format("blk.0.ffn_down.weight", Format::kT2G64);
         set_scale(m, "blk.0.ffn_down.weight", 0x00, 0x7e);
       },
       {"blk.0.ffn_down.weight", "block 0", "nan"}},
      {"F09 missing norm",
       [](TinyModel& m) { m.remove_tensor("output_norm.weight"); },
       {"output_norm.weight", "missing"}},
      {"F09 wrong shape",
       [](TinyModel& m) {
         auto& t = m.tensor("blk.0.attn_k.weight");
         t.ne[1] -= 1;
         t.bytes.resize(t.ne[0] * t.ne[1] * 4);
       },
       {"blk.0.attn_k.weight", "expected"}},
      {"F12 architecture",
       [](TinyModel& m) { m.set_string("general.architecture", "gpt9"); },
       {"architecture 'gpt9' is not supported", "qwen3", "llama"}},
      {"F13 draft",
       [](TinyModel& m) { m.set_string("general.architecture", "dspark"); },
       {"draft model"}},
      {"F14 projector",
       [](TinyModel& m) { m.set_string("general.architecture", "clip"); },
       {"vision projector"}},
      {"RK19 adapter", [](TinyModel& m) { m.set_string("general.type", "adapter"); }, {"LoRA"}},
      {"RK18 one part of two", [](TinyModel& m) { m.set_u32("split.count", 2); }, {"split", "2"}},
  };
}

void expect_refused(const Row& row, TinyArchitecture architecture) {
  const TemporaryFolder folder;
  TinyModel m = make_tiny_model(architecture);
  row.edit(m);
  const std::string path = folder.write(m);
  const Engine engine = testing_tiny::two_threads();
  const auto opened = engine.open(path, {}, {}, {});
  ASSERT_FALSE(opened.ok()) << row.name << " was loaded";
  const std::string message = opened.error().message();
  EXPECT_EQ(message.find(path), 0U) << row.name << ": " << message;
  for (const char* word : row.words)
    EXPECT_NE(message.find(word), std::string::npos) << row.name << ": " << message;
}

TEST(DamagedModel, KeysAreRefusedByName) {
  for (const Row& row : key_rows()) expect_refused(row, TinyArchitecture::kQwen3);
}
TEST(DamagedModel, TokenizersAreRefusedByName) {
  for (const Row& row : tokenizer_rows()) expect_refused(row, TinyArchitecture::kQwen3);
}
TEST(DamagedModel, TensorsAreRefusedByName) {
  for (const Row& row : tensor_rows()) expect_refused(row, TinyArchitecture::kLlama);
}

TEST(DamagedModel, AHugeContextIsOnlyALimit) {
  const TemporaryFolder folder;
  TinyModel m = make_tiny_model(TinyArchitecture::kQwen3);
  m.set_u32(m.key("context_length"), kMax);
  const std::string path = folder.write(m);
  const Engine engine = testing_tiny::two_threads();
  const auto opened = engine.open(path, {}, {}, {});
  ASSERT_TRUE(opened.ok()) << opened.error().message();
  EXPECT_LT(opened->context_size(), std::int64_t{kMax});
}

TEST(DamagedModel, AContextThatCannotFitIsRefusedWithNumbersAndAWayOut) {
  const TemporaryFolder folder;
  TinyModel m = make_tiny_model(TinyArchitecture::kQwen3);
  m.set_u32(m.key("context_length"), kMax);
  const std::string path = folder.write(m);
  const Engine engine = testing_tiny::two_threads();
  const auto opened = engine.open(path, {.context = (std::int64_t{1} << 31) - 1}, {}, {});
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code(), ErrorCode::kOutOfMemory);
  EXPECT_NE(opened.error().message().find("--ctx-size"), std::string::npos)
      << opened.error().message();
}

TEST(DamagedModel, ATrailingNoteDoesNotStopTheModel) {
  const TemporaryFolder folder;
  const std::string path = folder.write(make_tiny_model(TinyArchitecture::kQwen3));
  std::filesystem::resize_file(path, std::filesystem::file_size(path) + 4096);
  const Engine engine = testing_tiny::two_threads();
  const auto opened = engine.open(path, {}, {}, {});
  ASSERT_TRUE(opened.ok()) << opened.error().message();
  EXPECT_FALSE(opened->info().warnings.empty());
}

}  // namespace
}  // namespace tern
