// Reads the hyper-parameters and keeps the first error.
#include "models/common/decoder_config.h"

#include <cmath>

#include "base/limits.h"
#include "base/utf8.h"

namespace tern::models {
namespace {

constexpr auto kLayerLimit = static_cast<std::int64_t>(limits::kLayers);
constexpr auto kHeadLimit = static_cast<std::int64_t>(limits::kHeads);
constexpr auto kWidthLimit = static_cast<std::int64_t>(limits::kWidth);
constexpr std::int64_t kHeadDimMax = 512;
constexpr std::int64_t kHeadDimMultiple = 8;
constexpr std::int64_t kContextLimit = (std::int64_t{1} << 32) - 1;  // positions are 32 bits wide
constexpr double kDefaultRopeTheta = 10'000;

// Reads keys under one prefix and keeps the first error.
class Keys {
 public:
  Keys(const io::GgufFile& file, std::string prefix) : file_(file), prefix_(std::move(prefix)) {}

  std::int64_t integer(const std::string& name, std::int64_t low, std::int64_t high) {
    return take_integer(name, file_.get_u64(key(name)), low, high);
  }
  std::int64_t integer(const std::string& name, std::int64_t low, std::int64_t high,
                       std::int64_t fallback) {
    if (!file_.has(key(name))) return fallback;
    return integer(name, low, high);
  }
  double positive(const std::string& name) { return take_positive(name, file_.get_f32(key(name))); }
  double positive(const std::string& name, double fallback) {
    if (!file_.has(key(name))) return fallback;
    return positive(name);
  }
  // Any finite number that is not negative.
  double not_negative(const std::string& name, double fallback) {
    if (!file_.has(key(name))) return fallback;
    const Result<float> value = file_.get_f32(key(name));
    if (!value.ok()) return record(value.error()), 0;
    if (!std::isfinite(*value) || *value < 0)
      record(fail(ErrorCode::kInvalidFile, "key '{}' is {}, expected a finite number from 0 on",
                  key(name), *value));
    return static_cast<double>(*value);
  }
  std::string text(const std::string& name, const std::string& fallback) {
    const Result<std::string_view> value = file_.get_string(key(name), fallback);
    if (!value.ok()) return record(value.error()), fallback;
    return std::string(*value);
  }
  [[nodiscard]] bool has(const std::string& name) const { return file_.has(key(name)); }
  [[nodiscard]] std::string key(const std::string& name) const { return prefix_ + name; }
  void record(const Error& error) {
    if (first_error_.ok()) first_error_ = error;
  }
  [[nodiscard]] const Result<void>& status() const { return first_error_; }

 private:
  std::int64_t take_integer(const std::string& name, const Result<std::uint64_t>& value,
                            std::int64_t low, std::int64_t high) {
    if (!value.ok()) return record(value.error()), low;
    if (*value < static_cast<std::uint64_t>(low) || *value > static_cast<std::uint64_t>(high)) {
      record(fail(ErrorCode::kInvalidFile, "key '{}' is {}, expected {} to {}", key(name), *value,
                  low, high));
      return low;
    }
    return static_cast<std::int64_t>(*value);
  }
  double take_positive(const std::string& name, const Result<float>& value) {
    if (!value.ok()) return record(value.error()), 1;
    if (!std::isfinite(*value) || *value <= 0) {
      record(fail(ErrorCode::kInvalidFile, "key '{}' is {}, expected a finite number above 0",
                  key(name), *value));
      return 1;
    }
    return static_cast<double>(*value);
  }

  const io::GgufFile& file_;
  std::string prefix_;
  Result<void> first_error_;
};

void read_heads(Keys& keys, DecoderConfig& c) {
  c.heads = keys.integer("attention.head_count", 1, kHeadLimit);
  c.kv_heads = keys.integer("attention.head_count_kv", 1, kHeadLimit, c.heads);
  if (c.heads % c.kv_heads != 0)
    keys.record(fail(ErrorCode::kInvalidFile,
                     "key '{}' is {}, expected a divisor of the {} heads in '{}'",
                     keys.key("attention.head_count_kv"), c.kv_heads, c.heads,
                     keys.key("attention.head_count")));
  if (keys.has("attention.key_length")) {
    c.head_dim = keys.integer("attention.key_length", 2, kHeadDimMax);
  } else {
    if (c.hidden % c.heads != 0)
      keys.record(fail(ErrorCode::kInvalidFile,
                       "key '{}' is missing and the width {} is not a multiple of the {} heads",
                       keys.key("attention.key_length"), c.hidden, c.heads));
    c.head_dim = c.hidden / c.heads;
  }
  if (c.head_dim % kHeadDimMultiple != 0 || c.head_dim > kHeadDimMax)
    keys.record(fail(ErrorCode::kUnsupported,
                     "heads are {} wide ('{}'), Tern runs multiples of {} up to {}", c.head_dim,
                     keys.key("attention.key_length"), kHeadDimMultiple, kHeadDimMax));
  const std::int64_t value_length =
      keys.integer("attention.value_length", 1, kHeadDimMax, c.head_dim);
  if (value_length != c.head_dim)
    keys.record(fail(ErrorCode::kUnsupported, "key '{}' is {}, expected {} like '{}'",
                     keys.key("attention.value_length"), value_length, c.head_dim,
                     keys.key("attention.key_length")));
}

void read_rope(Keys& keys, const ConfigRules& rules, DecoderConfig& c) {
  RopeParameters& r = c.rope;
  r.dims = static_cast<int>(keys.integer("rope.dimension_count", 2, c.head_dim, c.head_dim));
  if (r.dims % 2 != 0)
    keys.record(fail(ErrorCode::kInvalidFile, "key '{}' is {}, expected an even number",
                     keys.key("rope.dimension_count"), r.dims));
  r.theta = rules.needs_freq_base ? keys.positive("rope.freq_base")
                                  : keys.positive("rope.freq_base", kDefaultRopeTheta);
  const std::string type = keys.text("rope.scaling.type", "none");
  if (type == "none" || type.empty()) return;
  if (type == "linear") {
    r.scaling = RopeScaling::kLinear;
    r.factor = keys.positive("rope.scaling.factor");
    return;
  }
  if (type != "yarn") {
    keys.record(fail(ErrorCode::kUnsupported, "rope scaling '{}' is not supported",
                     escape_for_message(type)));
    return;
  }
  r.scaling = RopeScaling::kYarn;
  r.factor = keys.positive("rope.scaling.factor");
  r.original_context = static_cast<double>(
      keys.integer("rope.scaling.original_context_length", 1, kContextLimit, c.context_length));
  r.attention_factor = keys.positive("rope.scaling.attn_factor", 1) *
                       keys.positive("rope.scaling.yarn_attn_factor", 1);
  r.beta_fast = keys.positive("rope.scaling.yarn_beta_fast", 32);
  r.beta_slow = keys.positive("rope.scaling.yarn_beta_slow", 1);
  r.ext_factor = keys.not_negative("rope.scaling.yarn_ext_factor", 1);
}

}  // namespace

Result<DecoderConfig> read_decoder_config(const io::GgufFile& file, const std::string& architecture,
                                          const ConfigRules& rules) {
  Keys keys(file, architecture + ".");
  DecoderConfig c;
  c.architecture = architecture;
  c.layers = keys.integer("block_count", 1, kLayerLimit);
  c.context_length = keys.integer("context_length", 1, kContextLimit);
  c.hidden = keys.integer("embedding_length", 1, kWidthLimit);
  c.feed_forward = keys.integer("feed_forward_length", 1, kWidthLimit);
  c.eps = static_cast<float>(keys.positive("attention.layer_norm_rms_epsilon"));
  TERN_TRY(keys.status());
  read_heads(keys, c);
  TERN_TRY(keys.status());
  read_rope(keys, rules, c);
  TERN_TRY(keys.status());
  return c;
}

}  // namespace tern::models
