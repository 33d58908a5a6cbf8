// The table of limits for people.
#include "base/limits.h"

#include <array>

#include "tern/limits.h"

namespace tern {
namespace limits {
namespace {

constexpr std::array kTable = {
    Limit{"GGUF key, bytes", kGgufKeyBytes},
    Limit{"GGUF pairs", kGgufPairs},
    Limit{"GGUF tensors", kGgufTensors},
    Limit{"GGUF array nesting", kGgufArrayNesting},
    Limit{"GGUF tensor name, bytes", kGgufTensorNameBytes},
    Limit{"GGUF dimensions", kGgufDimensions},
    Limit{"GGUF alignment, bytes", kGgufAlignment},
    Limit{"tensor elements", kTensorElements},
    Limit{"layers", kLayers},
    Limit{"heads", kHeads},
    Limit{"width of anything", kWidth},
    Limit{"vocabulary, tokens", kVocabulary},
    Limit{"token text, bytes", kTokenBytes},
    Limit{"safetensors header, bytes", kSafetensorsHeaderBytes},
    Limit{"safetensors tensors", kSafetensorsTensors},
    Limit{"safetensors dimensions", kSafetensorsDimensions},
    Limit{"JSON depth", kJsonDepth},
    Limit{"JSON string in a file, bytes", kJsonStringBytes},
    Limit{"template source, bytes", kTemplateSourceBytes},
    Limit{"template parser depth", kTemplateParserDepth},
    Limit{"template call depth", kTemplateCallDepth},
    Limit{"template steps", kTemplateSteps},
    Limit{"template output, bytes", kTemplateOutputBytes},
    Limit{"template text, bytes", kTemplateStringBytes},
    Limit{"template values, bytes", kTemplateLiveBytes},
    Limit{"template value depth", kTemplateValueDepth},
    Limit{"template evaluation depth", kTemplateEvaluationDepth},
    Limit{"template range", kTemplateRange},
    Limit{"template arguments of a call", kTemplateArguments},
    Limit{"template integer, digits", kTemplateIntegerDigits},
};

}  // namespace
}  // namespace limits

std::span<const Limit> limit_table() { return limits::kTable; }

}  // namespace tern
