// Tokens in the byte-level alphabet, merges in their order, the added tokens with their types.
#include "vocabulary.h"

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <vector>

#include "base/utf8.h"
#include "text/byte_level.h"

namespace tern::tools {
namespace {

constexpr std::int32_t kNormal = 1;
constexpr std::int32_t kControl = 3;
constexpr std::int32_t kUserDefined = 4;

struct Added {
  std::string_view text;
  std::int32_t type;
};

// The last 26 of the 151,669 tokens of Qwen3.
constexpr std::array kQwen3Added = {
    Added{"<|endoftext|>", kControl},       Added{"<|im_start|>", kControl},
    Added{"<|im_end|>", kControl},          Added{"<|object_ref_start|>", kControl},
    Added{"<|object_ref_end|>", kControl},  Added{"<|box_start|>", kControl},
    Added{"<|box_end|>", kControl},         Added{"<|quad_start|>", kControl},
    Added{"<|quad_end|>", kControl},        Added{"<|vision_start|>", kControl},
    Added{"<|vision_end|>", kControl},      Added{"<|vision_pad|>", kControl},
    Added{"<|image_pad|>", kControl},       Added{"<|video_pad|>", kControl},
    Added{"<tool_call>", kUserDefined},     Added{"</tool_call>", kUserDefined},
    Added{"<|fim_prefix|>", kUserDefined},  Added{"<|fim_middle|>", kUserDefined},
    Added{"<|fim_suffix|>", kUserDefined},  Added{"<|fim_pad|>", kUserDefined},
    Added{"<|repo_name|>", kUserDefined},   Added{"<|file_sep|>", kUserDefined},
    Added{"<tool_response>", kUserDefined}, Added{"</tool_response>", kUserDefined},
    Added{"<think>", kUserDefined},         Added{"</think>", kUserDefined}};
constexpr std::array kOtherAdded = {Added{"<|endoftext|>", kControl},
                                    Added{"<|im_start|>", kControl}, Added{"<|im_end|>", kControl}};

constexpr std::string_view kTemplate =
    "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + "
    "'<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' "
    "}}{% endif %}";

// The letters of the alphabet in the order of their code points, as vocabularies list them.
std::vector<std::string> byte_letters() {
  std::vector<char16_t> sorted(text::kByteLetters.begin(), text::kByteLetters.end());
  std::ranges::sort(sorted);
  std::vector<std::string> letters;
  for (const char16_t letter : sorted) append_utf8(letters.emplace_back(), letter);
  return letters;
}

}  // namespace

void add_made_up_vocabulary(io::GgufWriter& writer, const Shape& shape) {
  const bool is_qwen3 = shape.architecture == "qwen3";
  const auto added =
      is_qwen3 ? std::span<const Added>(kQwen3Added) : std::span<const Added>(kOtherAdded);
  const std::vector<std::string> letters = byte_letters();
  std::vector<std::string> tokens = letters;
  std::vector<std::string> merges;
  // 256 letters give 65,536 pairs and 16,777,216 triples: more than any vocabulary has
  const std::size_t plain = shape.vocabulary - added.size();
  for (std::size_t made = 0; tokens.size() < plain; ++made) {
    // the token before the last letter: a letter, or one of the pairs in the order in which they
    // were made
    const std::string left = tokens[made / letters.size()];
    const std::string& right = letters[made % letters.size()];
    merges.push_back(left + " " + right);
    tokens.push_back(left + right);
  }
  std::vector<std::int32_t> types(tokens.size(), kNormal);
  const auto first_added = static_cast<std::uint32_t>(tokens.size());
  for (const Added& token : added) {
    tokens.emplace_back(token.text);
    types.push_back(token.type);
  }
  writer.add_string("tokenizer.ggml.model", "gpt2");
  writer.add_string("tokenizer.ggml.pre", shape.pre_tokenizer);
  writer.add_strings("tokenizer.ggml.tokens", tokens);
  writer.add_i32s("tokenizer.ggml.token_type", types);
  writer.add_strings("tokenizer.ggml.merges", merges);
  writer.add_u32("tokenizer.ggml.bos_token_id", first_added);
  writer.add_u32("tokenizer.ggml.eos_token_id", first_added + 2);
  writer.add_u32("tokenizer.ggml.padding_token_id", first_added);
  writer.add_bool("tokenizer.ggml.add_bos_token", false);
  writer.add_string("tokenizer.chat_template", kTemplate);
}

}  // namespace tern::tools
