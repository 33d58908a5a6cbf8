// The limits of Tern: one table. A limit is a refusal that names the number, never a truncation.
#pragma once

#include <cstdint>
#include <limits>

namespace tern::limits {

inline constexpr std::uint64_t kKiB = 1024;
inline constexpr std::uint64_t kMiB = 1024 * kKiB;

// GGUF
inline constexpr std::uint64_t kGgufKeyBytes = 65'535;  // at least 1
inline constexpr std::uint64_t kGgufPairs = 65'536;
inline constexpr std::uint64_t kGgufTensors = 65'536;
inline constexpr int kGgufArrayNesting = 4;
inline constexpr std::uint64_t kGgufTensorNameBytes = 255;  // at least 1
inline constexpr std::uint32_t kGgufDimensions = 4;         // at least 1
inline constexpr std::uint64_t kGgufAlignment = 65'536;     // a power of two, at least 1

// Tensors: each dimension and the product of all
inline constexpr std::uint64_t kTensorElements = std::numeric_limits<std::int64_t>::max();

// Models
inline constexpr std::uint64_t kLayers = 1'024;
inline constexpr std::uint64_t kHeads = 4'096;
inline constexpr std::uint64_t kWidth = 1'048'576;

// Vocabulary
inline constexpr std::uint64_t kVocabulary = 4'194'304;
inline constexpr std::uint64_t kTokenBytes = 65'535;

// safetensors
inline constexpr std::uint64_t kSafetensorsHeaderBytes = 100'000'000;
inline constexpr std::uint64_t kSafetensorsTensors = 1'048'576;
inline constexpr int kSafetensorsDimensions = 8;  // 0 is a scalar

// JSON
inline constexpr int kJsonDepth = 64;
inline constexpr std::uint64_t kJsonStringBytes = 64 * kMiB;

// Chat templates
inline constexpr std::uint64_t kTemplateSourceBytes = 1 * kMiB;
inline constexpr int kTemplateParserDepth = 128;
inline constexpr int kTemplateCallDepth = 64;
inline constexpr std::uint64_t kTemplateSteps = 10'000'000;
inline constexpr std::uint64_t kTemplateOutputBytes = 16 * kMiB;
inline constexpr std::uint64_t kTemplateStringBytes = 64 * kMiB;  // of one text
inline constexpr std::uint64_t kTemplateLiveBytes = 128 * kMiB;   // of all values at a time
inline constexpr int kTemplateValueDepth = 256;
inline constexpr int kTemplateEvaluationDepth = 1'024;
inline constexpr std::int64_t kTemplateRange = 100'000;
inline constexpr std::uint64_t kTemplateArguments = 255;
inline constexpr std::uint64_t kTemplateIntegerDigits = 4'300;

}  // namespace tern::limits
