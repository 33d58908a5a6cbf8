// The fields of ModelInfo as one JSON object.
#include "cli/info_json.h"

#include <nlohmann/json.hpp>

namespace tern::cli {
namespace {

using Json = nlohmann::ordered_json;

Json file_json(const ModelInfo& info, const InfoExtras& extras) {
  Json json{{"path", info.path},
            {"container", info.container},
            {"bytes", info.file_bytes},
            {"alignment", info.alignment},
            {"data_bytes", info.data_bytes},
            {"tensors", info.tensors.size()}};
  if (!extras.sha256.empty()) json["sha256"] = extras.sha256;
  return json;
}

Json model_json(const ModelInfo& info) {
  return Json{{"architecture", info.architecture},
              {"name", info.name},
              {"format", info.format_name},
              {"parameters", info.parameters},
              {"layers", info.layers},
              {"hidden", info.hidden},
              {"feed_forward", info.feed_forward},
              {"heads", info.heads},
              {"kv_heads", info.kv_heads},
              {"head_dim", info.head_dim},
              {"vocabulary", info.vocabulary},
              {"context_length", info.context_length},
              {"tied_embeddings", info.tied_embeddings},
              {"rope", info.rope}};
}

Json needs_json(const ModelInfo& info) {
  Json json{{"weights_bytes", info.needs.weights},
            {"kv_bytes_per_position", info.needs.kv_per_position},
            {"arena_bytes", info.needs.arena}};
  Json totals = Json::object();
  for (const std::int64_t size :
       {std::int64_t{4096}, std::int64_t{8192}, std::int64_t{32768}, info.context_length}) {
    if (size <= 0 || size > info.context_length) continue;
    totals[std::to_string(size)] = info.needs.total(static_cast<std::uint64_t>(size));
  }
  json["total_bytes_by_context"] = std::move(totals);
  return json;
}

Json runs_json(const ModelInfo& info, const InfoExtras& extras) {
  if (!info.cannot_run.empty()) return Json{{"can_run", false}, {"reason", info.cannot_run}};
  Json json{{"can_run", true},
            {"device", info.device},
            {"kernels", info.kernels},
            {"bytes_per_token", info.bytes_per_token},
            {"fits_cache", extras.fits_cache}};
  if (extras.read_gbps <= 0) {
    json["not_measured"] = extras.not_measured;
    return json;
  }
  json["read_gbps"] = extras.read_gbps;
  if (info.bytes_per_token > 0) {
    json["tokens_per_second_about"] =
        extras.read_gbps * 1e9 / static_cast<double>(info.bytes_per_token);
  }
  return json;
}

}  // namespace

std::string info_json(const ModelInfo& info, const InfoExtras& extras, bool with_keys,
                      bool with_tensors) {
  Json types = Json::array();
  for (const WeightTypeSummary& type : info.types) {
    types.push_back({{"type", type.type},
                     {"tensors", type.tensors},
                     {"weights", type.weights},
                     {"bytes", type.bytes}});
  }
  Json json{{"file", file_json(info, extras)},
            {"model", model_json(info)},
            {"weights", std::move(types)},
            {"tokenizer",
             {{"model", info.tokenizer_model},
              {"pre", info.pre_tokenizer},
              {"tokens", info.tokens},
              {"special", info.special_tokens},
              {"has_chat_template", info.has_chat_template}}},
            {"needs", needs_json(info)},
            {"runs", runs_json(info, extras)},
            {"warnings", info.warnings}};
  if (with_keys) {
    Json keys = Json::array();
    for (const MetadataEntry& entry : info.metadata) {
      keys.push_back({{"key", entry.key}, {"type", entry.type}, {"value", entry.value}});
    }
    json["keys"] = std::move(keys);
  }
  if (with_tensors) {
    Json tensors = Json::array();
    for (const TensorEntry& tensor : info.tensors) {
      tensors.push_back({{"name", tensor.name},
                         {"type", tensor.type},
                         {"shape", tensor.shape},
                         {"offset", tensor.offset},
                         {"bytes", tensor.bytes}});
    }
    json["tensor_list"] = std::move(tensors);
  }
  return json.dump(1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace tern::cli
