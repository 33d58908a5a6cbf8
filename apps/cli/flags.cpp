// The rows of the table of flags, and how a spelling finds its row.
#include "cli/flags.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "tern/engine.h"

namespace tern::cli {
namespace {

using K = ValueKind;
using G = HelpGroup;

constexpr FlagRow flag(Flag id, std::string_view name, std::string_view short_names, K kind,
                       std::string_view value_name, std::string_view fallback, G group,
                       unsigned commands, std::string_view help) {
  FlagRow row;
  row.id = id;
  row.name = name;
  row.short_names = short_names;
  row.kind = kind;
  row.value_name = value_name;
  row.fallback = fallback;
  row.group = group;
  row.commands = commands;
  row.help = help;
  return row;
}

// A flag that is known and not there yet: refused by name.
constexpr FlagRow absent(std::string_view name, std::string_view short_names = "",
                         std::string_view aliases = "", std::string_view twin = "") {
  FlagRow row;
  row.name = name;
  row.short_names = short_names;
  row.aliases = aliases;
  row.llama_twin = twin;
  row.available = false;
  return row;
}

constexpr unsigned kSingle = kLoading & ~static_cast<unsigned>(kBench);  // one setting, no lists
constexpr unsigned kText = kRun | kTokenize | kPerplexity;
constexpr unsigned kChat = kRun | kTemplate;
constexpr double kMost = 9.2e18;

constexpr std::array kTable = {
    // Prompt and chat
    flag(Flag::kPrompt, "prompt", "-p", K::kText, "TEXT", "", G::kPrompt, kRun | kTokenize,
         "the text; \\n, \\t and the like are escapes unless --no-escape"),
    flag(Flag::kFile, "file", "-f", K::kPath, "FILE", "", G::kPrompt, kText,
         "the text, byte for byte from a file (- is stdin)"),
    flag(Flag::kNPredict, "n-predict", "-n", K::kTokens, "N", "-1", G::kPrompt, kRun,
         "most tokens to generate; -1: until the end, 0: only evaluate the prompt")
        .range(-1, kMost)
        .also("predict")
        .twin("LLAMA_ARG_N_PREDICT"),
    flag(Flag::kSystemPrompt, "system-prompt", "-sys", K::kText, "TEXT", "", G::kPrompt, kRun,
         "the system message; an empty text is an empty message"),
    flag(Flag::kSystemPromptFile, "system-prompt-file", "-sysf", K::kPath, "FILE", "", G::kPrompt,
         kRun, "the system message from a file"),
    flag(Flag::kRaw, "raw", "", K::kSwitch, "", "off", G::kPrompt, kRun,
         "the text as it is, without a chat template"),
    flag(Flag::kEscape, "escape", "-e", K::kSwitch, "", "on", G::kPrompt, kRun | kTokenize,
         "escapes in -p and -r"),
    flag(Flag::kChatTemplate, "chat-template", "", K::kText, "TEXT", "the model's", G::kPrompt,
         kRun, "another chat template, as text")
        .twin("LLAMA_ARG_CHAT_TEMPLATE"),
    flag(Flag::kChatTemplateFile, "chat-template-file", "", K::kPath, "FILE", "the model's",
         G::kPrompt, kChat, "another chat template")
        .twin("LLAMA_ARG_CHAT_TEMPLATE_FILE"),
    flag(Flag::kChatTemplateKwargs, "chat-template-kwargs", "", K::kText, "JSON", "", G::kPrompt,
         kRun, "variables for the template: {\"enable_thinking\": true}")
        .twin("LLAMA_ARG_CHAT_TEMPLATE_KWARGS"),
    flag(Flag::kJinja, "jinja", "", K::kSwitch, "", "on", G::kPrompt, kChat, "always on; accepted")
        .twin("LLAMA_ARG_JINJA"),

    // Model, memory, device
    flag(Flag::kModel, "model", "-m", K::kPath, "PATH", "", G::kModel,
         kPlanning | kTokenize | kTemplate | kCalibrate, "the model; the same as the word MODEL")
        .twin("LLAMA_ARG_MODEL"),
    flag(Flag::kCtxSize, "ctx-size", "-c", K::kTokens, "N", "fit", G::kModel,
         kPlanning & ~static_cast<unsigned>(kBench),
         "context in tokens; 0: the model's; default: the model's or what fits")
        .range(0, kMost)
        .twin("LLAMA_ARG_CTX_SIZE"),
    flag(Flag::kFit, "fit", "", K::kOnOff, "on|off", "on", G::kModel, kRun | kInfo,
         "reduce a context that was not asked for to what fits")
        .twin("LLAMA_ARG_FIT"),
    flag(Flag::kFitTarget, "fit-target", "", K::kInteger, "MiB", "512", G::kModel, kRun | kInfo,
         "memory to leave free")
        .range(0, 1e9)
        .twin("LLAMA_ARG_FIT_TARGET"),
    flag(Flag::kUbatchSize, "ubatch-size", "-ub", K::kTokens, "N", "512", G::kModel,
         kSingle | kInfo | kCalibrate, "prompt tokens per device step")
        .range(1, kMaxBatchRows)
        .twin("LLAMA_ARG_UBATCH"),
    flag(Flag::kBatchSize, "batch-size", "-b", K::kTokens, "N", "2048", G::kModel, kSingle,
         "prompt tokens per request step, at least -ub")
        .range(1, 1e9)
        .twin("LLAMA_ARG_BATCH"),
    flag(Flag::kThreads, "threads", "-t", K::kInteger, "N", "physical cores", G::kModel,
         kSingle | kInfo | kCalibrate, "threads")
        .range(1, 1024)
        .twin("LLAMA_ARG_THREADS"),
    flag(Flag::kThreadsBatch, "threads-batch", "-tb", K::kInteger, "N", "as -t", G::kModel,
         kSingle | kInfo, "the same; another number than -t is refused")
        .range(1, 1024),
    flag(Flag::kIsa, "isa", "", K::kChoice, "auto|avx512|avx2|portable", "auto", G::kModel,
         kPlanning | kCalibrate,
         "the best instruction set that kernels may use; one that is not there is refused"),
    flag(Flag::kDevice, "device", "-dev", K::kText, "NAME", "cpu", G::kModel,
         kPlanning | kCalibrate, "the device; this build has: cpu")
        .twin("LLAMA_ARG_DEVICE"),
    flag(Flag::kActivations, "activations", "", K::kChoice, "i12|f32", "i12", G::kModel,
         kPlanning | kCalibrate, "activations of packed weights; f32 is the reference"),
    flag(Flag::kExact, "exact", "", K::kSwitch, "", "off", G::kModel, kPlanning,
         "an answer does not depend on how the prompt was cut"),
    flag(Flag::kCacheTypeK, "cache-type-k", "-ctk", K::kChoice, "f16|f32", "f16", G::kModel,
         kSingle | kInfo, "keys of the context")
        .twin("LLAMA_ARG_CACHE_TYPE_K"),
    flag(Flag::kCacheTypeV, "cache-type-v", "-ctv", K::kChoice, "f16|f32", "f16", G::kModel,
         kSingle | kInfo, "values of the context")
        .twin("LLAMA_ARG_CACHE_TYPE_V"),
    flag(Flag::kFlashAttn, "flash-attn", "-fa", K::kChoice, "on|auto|off|1|0", "auto", G::kModel,
         kPlanning, "accepted; off is refused: there are no other kernels")
        .twin("LLAMA_ARG_FLASH_ATTN"),
    flag(Flag::kLoadMode, "load-mode", "", K::kChoice, "auto|mmap|read", "auto", G::kModel,
         kPlanning, "map the file or read it")
        .twin("LLAMA_ARG_LOAD_MODE"),
    flag(Flag::kMmap, "mmap", "", K::kSwitch, "", "auto", G::kModel, kPlanning,
         "--load-mode mmap; --no-mmap: read")
        .twin("LLAMA_ARG_MMAP"),
    flag(Flag::kCheckTensors, "check-tensors", "", K::kSwitch, "", "off", G::kModel, kLoading,
         "read every block before loading: scales and numbers must be finite"),
    flag(Flag::kLayout, "layout", "", K::kText, "NAME", "", G::kModel, kPlanning | kCalibrate,
         "names an ambiguous block layout"),
    flag(Flag::kPin, "pin", "", K::kTextList, "OP:VARIANT", "", G::kModel, kPlanning,
         "use this kernel variant; repeatable"),

    // Sampling
    flag(Flag::kSeed, "seed", "-s", K::kInteger, "N", "-1", G::kSampling, kRun,
         "-1: random, and reported")
        .range(-1, kMost),
    flag(Flag::kTemp, "temp", "", K::kNumber, "F", "0.8", G::kSampling, kRun,
         "temperature; 0: the likeliest token")
        .range(0, 1e6)
        .also("temperature")
        .twin("LLAMA_ARG_TEMPERATURE"),
    flag(Flag::kTopK, "top-k", "", K::kInteger, "N", "40", G::kSampling, kRun,
         "keep the N likeliest; 0: off")
        .range(0, 2e9)
        .twin("LLAMA_ARG_TOP_K"),
    flag(Flag::kTopP, "top-p", "", K::kNumber, "F", "0.95", G::kSampling, kRun,
         "keep the likeliest up to this sum; 1: off")
        .range(0, 1)
        .twin("LLAMA_ARG_TOP_P"),
    flag(Flag::kMinP, "min-p", "", K::kNumber, "F", "0.05", G::kSampling, kRun,
         "drop what is below this share of the likeliest; 0: off")
        .range(0, 1)
        .twin("LLAMA_ARG_MIN_P"),
    flag(Flag::kRepeatPenalty, "repeat-penalty", "", K::kNumber, "F", "1", G::kSampling, kRun,
         "divides the logits of recent tokens; 1: off")
        .range(1e-6, 1e6)
        .twin("LLAMA_ARG_REPEAT_PENALTY"),
    flag(Flag::kRepeatLastN, "repeat-last-n", "", K::kInteger, "N", "64", G::kSampling, kRun,
         "window of the penalties; 0: off, -1: the whole context")
        .range(-1, 2e9),
    flag(Flag::kPresencePenalty, "presence-penalty", "", K::kNumber, "F", "0", G::kSampling, kRun,
         "taken from tokens that occurred")
        .range(-1e6, 1e6)
        .twin("LLAMA_ARG_PRESENCE_PENALTY"),
    flag(Flag::kFrequencyPenalty, "frequency-penalty", "", K::kNumber, "F", "0", G::kSampling, kRun,
         "taken for each time a token occurred")
        .range(-1e6, 1e6)
        .twin("LLAMA_ARG_FREQUENCY_PENALTY"),
    flag(Flag::kLogitBias, "logit-bias", "-l", K::kTextList, "ID(+/-)B", "", G::kSampling, kRun,
         "adds B to the logit of token ID: 15043+1, 15043-inf; repeatable"),
    flag(Flag::kIgnoreEos, "ignore-eos", "", K::kSwitch, "", "off", G::kSampling, kRun,
         "end tokens do not end the answer"),
    flag(Flag::kMinTokens, "min-tokens", "", K::kTokens, "N", "0", G::kSampling, kRun,
         "end tokens are not chosen before")
        .range(0, kMost),
    flag(Flag::kReversePrompt, "reverse-prompt", "-r", K::kTextList, "TEXT", "", G::kSampling, kRun,
         "ends the answer before this text; repeatable")
        .also("stop"),

    // bench
    flag(Flag::kBenchPrompt, "n-prompt", "-p", K::kNumbers, "N", "512", G::kTool, kBench,
         "prompt tokens; 0: no such test")
        .range(0, 1e9),
    flag(Flag::kBenchGen, "n-gen", "-n", K::kNumbers, "N", "128", G::kTool, kBench,
         "generated tokens; 0: no such test")
        .range(0, 1e9),
    flag(Flag::kBenchPg, "pg", "-pg", K::kTextList, "PP,TG", "", G::kTool, kBench,
         "a prompt and then generation, timed together; repeatable"),
    flag(Flag::kBenchDepth, "n-depth", "-d", K::kNumbers, "N", "0", G::kTool, kBench,
         "tokens in the context before the test")
        .range(0, 1e9),
    flag(Flag::kBenchRepetitions, "repetitions", "-r", K::kNumbers, "N", "5", G::kTool, kBench,
         "runs of each test")
        .range(1, 1e6),
    flag(Flag::kBenchBatch, "batch-size", "-b", K::kNumbers, "N", "2048", G::kTool, kBench,
         "prompt tokens per request step")
        .range(1, 1e9)
        .twin("LLAMA_ARG_BATCH"),
    flag(Flag::kBenchUbatch, "ubatch-size", "-ub", K::kNumbers, "N", "512", G::kTool, kBench,
         "prompt tokens per device step")
        .range(1, kMaxBatchRows)
        .twin("LLAMA_ARG_UBATCH"),
    flag(Flag::kBenchThreads, "threads", "-t", K::kNumbers, "N", "physical cores", G::kTool, kBench,
         "threads")
        .range(1, 1024)
        .twin("LLAMA_ARG_THREADS"),
    flag(Flag::kBenchCacheTypeK, "cache-type-k", "-ctk", K::kTextList, "TYPE", "f16", G::kTool,
         kBench, "keys of the context: f16, f32")
        .twin("LLAMA_ARG_CACHE_TYPE_K"),
    flag(Flag::kBenchCacheTypeV, "cache-type-v", "-ctv", K::kTextList, "TYPE", "f16", G::kTool,
         kBench, "values of the context: f16, f32")
        .twin("LLAMA_ARG_CACHE_TYPE_V"),
    flag(Flag::kBenchOutput, "output", "-o", K::kChoice, "md|json|jsonl|csv", "md", G::kTool,
         kBench, "form of the result on stdout"),
    flag(Flag::kBenchOutputErr, "output-err", "-oe", K::kChoice, "none|md|json|jsonl|csv", "none",
         G::kTool, kBench, "the result on stderr too, in this form"),
    flag(Flag::kBenchWarmup, "warmup", "", K::kSwitch, "", "on", G::kTool, kBench,
         "one run that is not counted"),
    flag(Flag::kBenchDelay, "delay", "", K::kNumber, "S", "0", G::kTool, kBench,
         "seconds to wait between tests")
        .range(0, 86400),
    flag(Flag::kBenchCompare, "compare", "", K::kPath, "FILE", "", G::kTool, kBench,
         "a result in json; adds a column with the ratio to it"),

    // info, explain
    flag(Flag::kRows, "rows", "", K::kTokens, "N", "1", G::kTool, kExplain,
         "tokens in the step that is explained")
        .range(1, kMaxBatchRows)
        .also("tokens"),
    flag(Flag::kTime, "time", "", K::kSwitch, "", "off", G::kTool, kExplain,
         "run every op and say how long it takes"),
    flag(Flag::kJson, "json", "", K::kSwitch, "", "off", G::kTool,
         kInfo | kExplain | kTokenize | kPerplexity | kCalibrate, "the result as JSON"),
    flag(Flag::kProfile, "profile", "", K::kText, "NAME|FILE", "", G::kTool, kExplain,
         "plan for a device that is not here: h200, rtx4090, m4-pro, or a file"),
    flag(Flag::kQuick, "quick", "", K::kSwitch, "", "off", G::kTool, kCalibrate,
         "fewer rows and fewer rounds"),
    flag(Flag::kShapes, "shapes", "", K::kPath, "FILE", "", G::kTool, kCalibrate,
         "what to measure, one a line: f16 4096 576 1,8,512"),
    flag(Flag::kHash, "hash", "", K::kSwitch, "", "off", G::kTool, kInfo,
         "the file's SHA-256; reads the whole file"),
    flag(Flag::kKeys, "keys", "", K::kSwitch, "", "off", G::kTool, kInfo, "every metadata key"),
    flag(Flag::kTensors, "tensors", "", K::kSwitch, "", "off", G::kTool, kInfo, "every tensor"),
    flag(Flag::kTemplateText, "template", "", K::kSwitch, "", "off", G::kTool, kInfo,
         "only the chat template, byte for byte"),

    // tokenize
    flag(Flag::kIds, "ids", "", K::kSwitch, "", "off", G::kTool, kTokenize,
         "one line: [504, 3575]"),
    flag(Flag::kCount, "count", "", K::kSwitch, "", "off", G::kTool, kTokenize, "the number alone"),
    flag(Flag::kBos, "bos", "", K::kSwitch, "", "on", G::kTool, kTokenize,
         "begin and end tokens that the file asks for"),
    flag(Flag::kParseSpecial, "parse-special", "", K::kOptionalChoice, "all|defined|none", "all",
         G::kTool, kTokenize, "texts of which special tokens become these tokens"),
    flag(Flag::kSpecial, "special", "", K::kSwitch, "", "on", G::kTool, kTokenize,
         "off: --no-bos --no-parse-special; with --decode: leave them out"),
    flag(Flag::kDecode, "decode", "", K::kText, "IDS", "", G::kTool, kTokenize,
         "the text of these ids: \"504,3575\""),
    flag(Flag::kDecodeFile, "decode-file", "", K::kPath, "FILE", "", G::kTool, kTokenize,
         "the same, ids from a file"),
    flag(Flag::kJsonl, "jsonl", "", K::kPath, "FILE", "", G::kTool, kTokenize | kTemplate,
         "one JSON value a line in, one object a line out (- is stdin)"),

    // template
    flag(Flag::kMessagesJson, "messages-json", "", K::kPath, "FILE", "", G::kTool, kTemplate,
         "a list of messages or a request (- is stdin)"),
    flag(Flag::kNow, "now", "", K::kText, "TIME", "", G::kTool, kTemplate,
         "the template's clock: \"2026-11-30 16:03:21\""),

    // logits, perplexity
    flag(Flag::kTokenIds, "token-ids", "", K::kText, "IDS", "", G::kTool, kLogits, "\"1,2,3\""),
    flag(Flag::kTokenIdsFile, "token-ids-file", "", K::kPath, "FILE", "", G::kTool, kLogits,
         "ids separated by commas or white space"),
    flag(Flag::kOutput, "output", "-o", K::kPath, "FILE", "", G::kTool, kLogits,
         "the safetensors file to write"),
    flag(Flag::kForce, "force", "", K::kSwitch, "", "off", G::kTool, kLogits | kPerplexity,
         "replace a file that exists"),
    flag(Flag::kLast, "last", "", K::kTokens, "N", "all", G::kTool, kLogits,
         "logits of the last N positions only")
        .range(1, kMost),
    flag(Flag::kDecodeLast, "decode", "", K::kTokens, "N", "0", G::kTool, kLogits,
         "evaluate the last N ids one at a time")
        .range(0, kMost),
    flag(Flag::kTaps, "taps", "", K::kSwitch, "", "off", G::kTool, kLogits,
         "embeddings, layer outputs and final norm too"),
    flag(Flag::kKlBase, "kl-divergence-base", "", K::kPath, "FILE", "", G::kTool, kPerplexity,
         "log-probabilities: written, or read with --kl-divergence"),
    flag(Flag::kKlDivergence, "kl-divergence", "", K::kSwitch, "", "off", G::kTool, kPerplexity,
         "compare with the file of --kl-divergence-base"),
    flag(Flag::kLimits, "limits", "", K::kSwitch, "", "off", G::kTool, kVersion,
         "the table of limits"),

    // Output
    flag(Flag::kBenchProgress, "progress", "", K::kOptionalChoice, "plain|auto|off", "auto",
         G::kOutput, kBench, "say what is being measured, also where stderr is no terminal"),
    flag(Flag::kProgress, "progress", "", K::kChoice, "plain|auto|off", "auto", G::kOutput,
         (kLoading & ~static_cast<unsigned>(kBench)) | kCalibrate, "bars, lines, or nothing"),
    flag(Flag::kQuiet, "quiet", "", K::kSwitch, "", "off", G::kOutput, kLoading | kCalibrate,
         "no start lines and no progress"),
    flag(Flag::kPerf, "perf", "", K::kSwitch, "", "on", G::kOutput, kRun,
         "the line of figures after an answer")
        .twin("LLAMA_ARG_PERF"),
    flag(Flag::kVerbosePrompt, "verbose-prompt", "", K::kSwitch, "", "off", G::kOutput, kRun,
         "the tokens of the prompt, on stderr"),
    flag(Flag::kColor, "color", "", K::kOptionalChoice, "auto|on|off", "auto", G::kOutput,
         kPlanning | kCalibrate, "colours on stderr")
        .also("colour"),
    flag(Flag::kVerbose, "verbose", "-v", K::kSwitch, "", "off", G::kOutput,
         kPlanning | kTokenize | kTemplate | kCalibrate, "every setting, and where it came from"),
    flag(Flag::kHelp, "help", "-h", K::kSwitch, "", "off", G::kOutput, kAllCommands, "this text")
        .also("usage"),

    // Known, and not in this build
    absent("config"),
    absent("cpu-mask", "-C"),
    absent("cpu-range", "-Cr"),
    absent("cpu-strict"),
    absent("prio"),
    absent("poll"),
    absent("n-gpu-layers", "-ngl", "gpu-layers", "LLAMA_ARG_N_GPU_LAYERS"),
    absent("list-devices"),
    absent("tensor-split", "-ts", "", "LLAMA_ARG_TENSOR_SPLIT"),
    absent("split-mode", "-sm", "", "LLAMA_ARG_SPLIT_MODE"),
    absent("main-gpu", "-mg", "", "LLAMA_ARG_MAIN_GPU"),
    absent("kv-offload", "-nkvo", "no-kv-offload", "LLAMA_ARG_KV_OFFLOAD"),
    absent("mlock"),
    absent("override-kv"),
    absent("check-numerics"),
    absent("repack-cache"),
    absent("mmproj", "-mm", "", "LLAMA_ARG_MMPROJ"),
    absent("image"),
    absent("image-max-tokens", "", "", "LLAMA_ARG_IMAGE_MAX_TOKENS"),
    absent("numa", "", "", "LLAMA_ARG_NUMA"),
    absent("model-url", "-mu", "", "LLAMA_ARG_MODEL_URL"),
    absent("dry-multiplier"),
    absent("dry-base"),
    absent("dry-allowed-length"),
    absent("dry-penalty-last-n"),
    absent("dry-sequence-breaker"),
    absent("xtc-probability"),
    absent("xtc-threshold"),
    absent("dynatemp-range"),
    absent("dynatemp-exp"),
    absent("top-nsigma", "", "top-n-sigma"),
    absent("typical", "", "typical-p"),
    absent("mirostat"),
    absent("mirostat-lr"),
    absent("mirostat-ent"),
    absent("samplers"),
    absent("grammar"),
    absent("grammar-file"),
    absent("json-schema", "-j"),
    absent("json-schema-file", "-jf"),
    absent("logprobs"),
    absent("reasoning", "-rea", "", "LLAMA_ARG_REASONING"),
    absent("reasoning-format", "", "", "LLAMA_ARG_THINK"),
    absent("reasoning-budget", "", "", "LLAMA_ARG_THINK_BUDGET"),
    absent("tools"),
    absent("model-draft", "-md", "draft spec-draft-model"),
    absent("spec-type"),
    absent("spec-draft-n-max"),
    absent("spec-draft-n-min"),
    absent("spec-draft-p-min"),
    absent("lora"),
    absent("lora-scaled"),
    absent("lora-init-without-apply"),
    absent("embedding", "", "embeddings"),
    absent("pooling"),
    absent("prompt-cache"),
    absent("prompt-cache-ro"),
    absent("prompt-cache-all"),
    absent("keep"),
    absent("context-shift", "", "", "LLAMA_ARG_CONTEXT_SHIFT"),
    absent("verbosity", "-lv"),
    absent("log-file"),
    absent("log-jsonl"),
    absent("log-timestamps"),
    absent("offline"),
    absent("batched"),
    absent("fail-on"),
    absent("batch"),
};

constexpr bool contains_word(std::string_view list, std::string_view word) {
  while (!list.empty()) {
    const std::size_t end = list.find(' ');
    if (list.substr(0, end) == word) return true;
    if (end == std::string_view::npos) return false;
    list.remove_prefix(end + 1);
  }
  return false;
}

bool answers_to(const FlagRow& row, std::string_view spelling) {
  if (spelling.size() > 2 && spelling.substr(0, 2) == "--") {
    const std::string_view name = spelling.substr(2);
    return row.name == name || contains_word(row.aliases, name);
  }
  return contains_word(row.short_names, spelling);
}

}  // namespace

std::span<const FlagRow> flag_table() { return kTable; }

const FlagRow& flag_row(Flag flag) {
  const auto* row = std::find_if(kTable.begin(), kTable.end(),
                                 [&](const FlagRow& each) { return each.id == flag; });
  if (flag == Flag::kNone || row == kTable.end()) std::abort();  // a flag without a row: cli_test
  return *row;
}

const FlagRow* find_flag(std::string_view spelling, unsigned command, bool any_command) {
  const FlagRow* refused = nullptr;
  const FlagRow* elsewhere = nullptr;
  for (const FlagRow& row : kTable) {
    if (!answers_to(row, spelling)) continue;
    if (!row.available) {
      refused = &row;
    } else if ((row.commands & command) != 0) {
      return &row;
    } else if (elsewhere == nullptr) {
      elsewhere = &row;
    }
  }
  if (refused != nullptr) return refused;
  return any_command ? elsewhere : nullptr;
}

std::string_view help_group_title(HelpGroup group) {
  switch (group) {
    case G::kPrompt:
      return "prompt and chat";
    case G::kModel:
      return "model, memory, device";
    case G::kSampling:
      return "sampling";
    case G::kTool:
      return "this command";
    case G::kOutput:
      return "output";
  }
  return "";
}

}  // namespace tern::cli
