// What is in a model file, for people: from headers only.
#include <algorithm>
#include <map>

#include "io/gguf_tokenizer.h"
#include "runtime/model_file.h"

namespace tern::runtime {
namespace {

void describe_container(const ModelFile& file, ModelInfo& info) {
  const io::GgufFile& g = *file.gguf;
  info.container = fmt::format("GGUF v{}", g.version());
  info.file_bytes = g.file_bytes();
  info.alignment = g.alignment();
  for (const io::GgufPair& pair : g.pairs())
    info.metadata.push_back({std::string(pair.key), pair.type_text(), pair.value_text()});
  std::map<std::string, WeightTypeSummary> types;
  for (const io::GgufTensor& t : g.tensors()) {
    TensorEntry entry{std::string(t.name), std::string(t.type_name), {}, t.offset, t.bytes.size()};
    for (int d = 0; d < t.dims; ++d)
      entry.shape.push_back(static_cast<std::int64_t>(t.ne[static_cast<std::size_t>(d)]));
    info.tensors.push_back(std::move(entry));
    WeightTypeSummary& type = types[std::string(t.type_name)];
    type.type = t.type_name;
    ++type.tensors;
    type.weights += t.elements();
    type.bytes += t.bytes.size();
    info.data_bytes += t.bytes.size();
    info.parameters += t.elements();
  }
  for (auto& [name, type] : types) info.types.push_back(std::move(type));
  std::sort(info.types.begin(), info.types.end(),
            [](const auto& a, const auto& b) { return a.weights > b.weights; });
  if (!info.types.empty()) info.format_name = info.types.front().type;
  for (const std::string& note : g.notes()) info.warnings.push_back(note);
}

std::string text_or_empty(const io::GgufFile& g, std::string_view key) {
  const Result<std::string_view> value = g.get_string(key, "");
  return value.ok() ? std::string(*value) : std::string();
}

std::string rope_text(const RopeParameters& r) {
  std::string text = fmt::format("theta {:g}, {} of a head's elements", r.theta, r.dims);
  switch (r.scaling) {
    case RopeScaling::kNone:
      break;
    case RopeScaling::kLinear:
      text += fmt::format(", linear scaling {:g}", r.factor);
      break;
    case RopeScaling::kYarn:
      text += fmt::format(", YaRN {:g} x {:g}", r.factor, r.original_context);
      break;
    case RopeScaling::kLlama3:
      text += fmt::format(", llama3 scaling {:g}", r.factor);
      break;
    case RopeScaling::kFactors:
      text += ", own factor per frequency";
      break;
  }
  return text;
}

void describe_model(const ModelFile& file, ModelInfo& info) {
  const models::DecoderConfig& c = file.model->config();
  info.layers = c.layers;
  info.hidden = c.hidden;
  info.feed_forward = c.feed_forward;
  info.heads = c.heads;
  info.kv_heads = c.kv_heads;
  info.head_dim = c.head_dim;
  info.vocabulary = c.vocabulary;
  info.context_length = c.context_length;
  info.tied_embeddings = c.is_tied;
  info.rope = rope_text(c.rope);
  info.warnings.insert(info.warnings.end(), c.warnings.begin(), c.warnings.end());
  // A decode step reads every matrix that it multiplies by; of a table that is only looked up, one
  // row.
  for (const program::WeightDecl& d : file.model->weights().weights)
    if (d.uses != program::kUseLookup) info.bytes_per_token += d.file_bytes();
}

void describe_tokenizer(const ModelFile& file, ModelInfo& info) {
  const io::GgufFile& g = *file.gguf;
  info.tokenizer_model = text_or_empty(g, "tokenizer.ggml.model");
  info.pre_tokenizer = text_or_empty(g, "tokenizer.ggml.pre");
  info.chat_template = text_or_empty(g, "tokenizer.chat_template");
  info.has_chat_template = !info.chat_template.empty();
  if (const auto tokens = g.get_strings("tokenizer.ggml.tokens"); tokens.ok())
    info.tokens = static_cast<std::int64_t>(tokens->size());
  constexpr std::int64_t kControl = 3;
  if (const auto types = g.get_ints("tokenizer.ggml.token_type"); types.ok())
    info.special_tokens = std::count(types->begin(), types->end(), kControl);
}

}  // namespace

ModelInfo describe(const std::string& path, const ModelFile& file) {
  ModelInfo info;
  info.path = path;
  describe_container(file, info);
  info.architecture = text_or_empty(*file.gguf, "general.architecture");
  info.name = text_or_empty(*file.gguf, "general.name");
  if (file.map->fell_back())
    info.warnings.emplace_back("the file could not be mapped into memory and was read instead");
  describe_tokenizer(file, info);
  if (file.model) {
    describe_model(file, info);
  } else {
    info.cannot_run = file.refusal->message();
  }
  return info;
}

}  // namespace tern::runtime
