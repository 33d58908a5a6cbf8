// The families that Tern runs, and the files that are no language models by themselves.
#include "models/registry.h"

#include <array>
#include <string_view>

#include "base/utf8.h"
#include "models/llama/llama.h"
#include "models/qwen3/qwen3.h"

namespace tern::models {
namespace {

using Opener = Result<std::unique_ptr<TextModel>> (*)(const io::GgufFile&);

struct Family {
  std::string_view architecture;
  Opener open;
};

constexpr std::array kFamilies = {
    Family{"qwen3", open_qwen3},
    Family{"llama", open_llama},
};

// Files that are no language models by themselves, with what they are for.
Result<void> refuse_companions(const io::GgufFile& file, std::string_view architecture) {
  for (std::string_view draft : {"dspark", "dflash", "eagle3"})
    if (architecture == draft)
      return fail(ErrorCode::kUnsupported,
                  "this is a draft model for speculative decoding ('{}'), which Tern does not run "
                  "yet; give the model that it drafts for",
                  architecture);
  if (architecture == "clip")
    return fail(ErrorCode::kUnsupported,
                "this is a vision projector (mmproj), not a language model, and Tern does not "
                "read pictures yet; give the language model beside it");
  const Result<std::string_view> type = file.get_string("general.type", "model");
  TERN_TRY(type);
  if (*type == "adapter")
    return fail(ErrorCode::kUnsupported,
                "this is an adapter (LoRA), not a model, and Tern does not apply adapters yet; "
                "give a model that it was merged into");
  return {};
}

}  // namespace

Result<std::unique_ptr<TextModel>> open_text_model(const io::GgufFile& file) {
  TERN_TRY(io::refuse_split(file));
  const Result<std::string_view> architecture = file.get_string("general.architecture");
  TERN_TRY(architecture);
  TERN_TRY(refuse_companions(file, *architecture));
  std::string known;
  for (const Family& family : kFamilies) {
    if (family.architecture == *architecture) return family.open(file);
    known += known.empty() ? "" : ", ";
    known += family.architecture;
  }
  return fail(ErrorCode::kUnsupported, "architecture '{}' is not supported ({} are)",
              escape_for_message(*architecture), known);
}

}  // namespace tern::models
