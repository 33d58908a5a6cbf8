// The table of pre-tokenizers.
#include "text/pre_tokenizer.h"

#include <array>

#include "base/utf8.h"

namespace tern::text {
namespace {

constexpr std::array<SplitRule, 4> kDefaultRules = {split_punctuation, split_gpt2,
                                                    split_number_runs, split_digit_triples};
constexpr std::array<SplitRule, 1> kGpt2Rules = {split_gpt2};
constexpr std::array<SplitRule, 1> kLlama3Rules = {split_llama3};
constexpr std::array<SplitRule, 1> kQwen2Rules = {split_qwen2};
constexpr std::array<SplitRule, 1> kQwen35Rules = {split_qwen35};
constexpr std::array<SplitRule, 2> kSmollmRules = {split_each_number, split_gpt2};

constexpr std::array kPreTokenizers = {
    PreTokenizer{.name = "default",
                 .normalizes_nfc = false,
                 .whole_words = false,
                 .adds_begin = false,
                 .rules = kDefaultRules,
                 .huggingface = ""},
    PreTokenizer{.name = "gpt-2",
                 .normalizes_nfc = false,
                 .whole_words = false,
                 .adds_begin = false,
                 .rules = kGpt2Rules,
                 .huggingface = "ByteLevel(use_regex)"},
    PreTokenizer{.name = "llama-bpe",
                 .normalizes_nfc = false,
                 .whole_words = true,
                 .adds_begin = true,
                 .rules = kLlama3Rules,
                 .huggingface = R"(Split((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+)"
                                R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S))"
                                R"(|\s+), ByteLevel)"},
    PreTokenizer{.name = "qwen2",
                 .normalizes_nfc = true,
                 .whole_words = false,
                 .adds_begin = false,
                 .rules = kQwen2Rules,
                 .huggingface = R"(Split((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+)"
                                R"(|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S))"
                                R"(|\s+), ByteLevel)"},
    PreTokenizer{.name = "qwen35",
                 .normalizes_nfc = true,
                 .whole_words = false,
                 .adds_begin = false,
                 .rules = kQwen35Rules,
                 .huggingface = R"(Split((?i:'s|'t|'re|'ve|'m|'ll|'d))"
                                R"(|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N})"
                                R"(| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S))"
                                R"(|\s+), ByteLevel)"},
    PreTokenizer{.name = "smollm",
                 .normalizes_nfc = false,
                 .whole_words = false,
                 .adds_begin = false,
                 .rules = kSmollmRules,
                 .huggingface = "Digits, ByteLevel(use_regex)"},
};

}  // namespace

std::span<const PreTokenizer> pre_tokenizers() { return kPreTokenizers; }

Result<const PreTokenizer*> find_pre_tokenizer(std::string_view name) {
  std::string known;
  for (const PreTokenizer& pre : kPreTokenizers) {
    if (pre.name == name) return &pre;
    known.append(known.empty() ? "" : ", ").append(pre.name);
  }
  return fail(ErrorCode::kUnsupported, "pre-tokenizer '{}' is not supported; known: {}",
              escape_for_message(name), known);
}

}  // namespace tern::text
