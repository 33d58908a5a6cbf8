// What is in a model file and what it needs, read from headers only.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tern/error.h"

namespace tern {

struct MetadataEntry {
  std::string key;
  std::string type;   // "u32", "string", "array of string [151669]"
  std::string value;  // shortened for display
};

struct TensorEntry {
  std::string name;
  std::string type;                 // "Q1_0"
  std::vector<std::int64_t> shape;  // as in the file: innermost dimension first
  std::uint64_t offset = 0;         // relative to the start of the data
  std::uint64_t bytes = 0;
};

struct WeightTypeSummary {
  std::string type;
  std::uint64_t tensors = 0;
  std::uint64_t weights = 0;
  std::uint64_t bytes = 0;
};

// What running takes, in bytes. Resident weights and arena come from the plan itself.
struct MemoryNeeds {
  std::uint64_t weights = 0;  // in the device's layout
  std::uint64_t kv_per_position = 0;
  std::uint64_t arena =
      0;  // activations, kernels' scratch and outputs of all programs that run together
  [[nodiscard]] std::uint64_t total(std::uint64_t context) const {
    return weights + arena + kv_per_position * context;
  }
};

struct ModelInfo {
  std::string path;
  std::string container;  // "GGUF v3"
  std::uint64_t file_bytes = 0;
  std::uint64_t alignment = 0;
  std::uint64_t data_bytes = 0;  // sum over tensors
  std::vector<MetadataEntry> metadata;
  std::vector<TensorEntry> tensors;
  std::vector<WeightTypeSummary> types;

  // Empty when the file can be run; else the sentence why not. The fields below are then as far as
  // they are known.
  std::string cannot_run;
  std::string architecture;
  std::string name;         // general.name, may be empty
  std::string format_name;  // the type that most weights have
  std::uint64_t parameters = 0;
  std::int64_t layers = 0, hidden = 0, feed_forward = 0;
  std::int64_t heads = 0, kv_heads = 0, head_dim = 0;
  std::int64_t vocabulary = 0, context_length = 0;
  bool tied_embeddings = false;
  std::string rope;  // "theta 1e6, YaRN 4 x 8192"

  std::string tokenizer_model, pre_tokenizer;
  std::int64_t tokens = 0, special_tokens = 0;
  bool has_chat_template = false;
  std::string chat_template;

  MemoryNeeds needs;
  std::uint64_t bytes_per_token = 0;  // weights that a decode step must read
  std::string device;                 // "cpu: AVX2, 2 threads"
  std::vector<std::string> kernels;   // "q1_g128: packed_product lut"
  std::vector<std::string> warnings;
};

}  // namespace tern
