// Reads the flags of model, memory, device and sampling; each refusal names its flag.
#include "cli/model_setup.h"

#include <cmath>
#include <limits>
#include <random>

#include "cli/cli_error.h"
#include "cli/utf8_text.h"
#include "cli/values.h"

namespace tern::cli {
namespace {

void check_threads(const Arguments& arguments) {
  if (!arguments.has(Flag::kThreadsBatch)) return;
  const std::int64_t batch = arguments.integer(Flag::kThreadsBatch);
  if (!arguments.has(Flag::kThreads) || arguments.integer(Flag::kThreads) != batch) {
    fail(ErrorCode::kUsage, arguments.spelling(Flag::kThreadsBatch),
         "prompts and generation use the same threads in this build; give -t {}", batch);
  }
}

// Rows of a device step: -ub, lowered to -b where only -b was given.
int batch_rows(const Arguments& arguments) {
  const std::int64_t ubatch = arguments.integer(Flag::kUbatchSize);
  if (arguments.command() == kInfo || !arguments.has(Flag::kBatchSize)) {
    return static_cast<int>(ubatch);
  }
  const std::int64_t batch = arguments.integer(Flag::kBatchSize);
  if (arguments.has(Flag::kUbatchSize) && batch < ubatch) {
    fail(ErrorCode::kUsage, arguments.spelling(Flag::kBatchSize),
         "{} is below the {} tokens of a device step ({})", batch, ubatch,
         arguments.spelling(Flag::kUbatchSize));
  }
  return static_cast<int>(std::min(batch, ubatch));
}

std::pair<std::int32_t, float> logit_bias(const std::string& spelling, const std::string& text) {
  const std::size_t sign = text.find_first_of("+-", 1);
  const auto id = parse_integer(std::string_view(text).substr(0, sign));
  const auto bias = sign == std::string::npos ? std::nullopt : parse_number(text.substr(sign));
  if (!id || !bias || *id < 0 || *id > std::numeric_limits<std::int32_t>::max()) {
    fail(ErrorCode::kUsage, spelling, "'{}' is no bias; expected ID+B or ID-B, such as 15043-1.5",
         text);
  }
  if (*bias > std::numeric_limits<float>::max()) {
    fail(ErrorCode::kUsage, spelling, "'{}': a bias may be -inf, and at most {:g}", text,
         std::numeric_limits<float>::max());
  }
  return {static_cast<std::int32_t>(*id), static_cast<float>(*bias)};
}

}  // namespace

void check_device(const Arguments& arguments) {
  const std::string device = arguments.text(Flag::kDevice);
  if (device != "cpu") {
    fail(ErrorCode::kDevice, arguments.spelling(Flag::kDevice),
         "there is no device '{}'; this build has the devices: cpu", device);
  }
  const std::string flash = arguments.text(Flag::kFlashAttn);
  if (flash == "off" || flash == "0") {
    fail(ErrorCode::kUsage, arguments.spelling(Flag::kFlashAttn),
         "this build has no other attention kernels to switch to");
  }
}

LoadMode load_mode(const Arguments& arguments) {
  const std::string mode = arguments.text(Flag::kLoadMode);
  const LoadMode by_name = mode == "mmap"   ? LoadMode::kMmap
                           : mode == "read" ? LoadMode::kRead
                                            : LoadMode::kAuto;
  if (!arguments.has(Flag::kMmap)) return by_name;
  const LoadMode by_switch = arguments.on(Flag::kMmap) ? LoadMode::kMmap : LoadMode::kRead;
  // The better rank wins; two words of one command line that disagree are a mistake.
  if (!arguments.has(Flag::kLoadMode)) return by_switch;
  if (arguments.source(Flag::kMmap) != arguments.source(Flag::kLoadMode)) {
    return arguments.source(Flag::kMmap) < arguments.source(Flag::kLoadMode) ? by_switch : by_name;
  }
  if (by_switch != by_name) {
    fail(ErrorCode::kUsage, arguments.spelling(Flag::kMmap), "contradicts --load-mode {}", mode);
  }
  return by_name;
}

CacheType cache_type(std::string_view spelling, std::string_view name) {
  if (name == "f16") return CacheType::kF16;
  if (name == "f32") return CacheType::kF32;
  fail(ErrorCode::kUsage, spelling, "'{}' is not known here; this build has: f16, f32", name);
}

EngineOptions engine_options(const Arguments& arguments) {
  check_device(arguments);
  check_threads(arguments);
  EngineOptions options;
  if (arguments.has(Flag::kThreads)) {
    options.threads = static_cast<int>(arguments.integer(Flag::kThreads));
  }
  options.profile = arguments.text(Flag::kProfile);
  if (arguments.text(Flag::kIsa) != "auto") options.instruction_set = arguments.text(Flag::kIsa);
  return options;
}

ModelOptions model_options(const Arguments& arguments) {
  ModelOptions options;
  const bool takes_fit = (arguments.command() & (kRun | kInfo)) != 0;
  if (arguments.has(Flag::kCtxSize)) {
    options.context = arguments.integer(Flag::kCtxSize);
  } else if (takes_fit && !arguments.on(Flag::kFit)) {
    options.context = 0;
  }
  if (takes_fit) options.fit_target_mib = arguments.integer(Flag::kFitTarget);
  options.batch_rows = batch_rows(arguments);
  options.activations =
      arguments.text(Flag::kActivations) == "f32" ? Activations::kF32 : Activations::kI12;
  options.exact = arguments.on(Flag::kExact);
  options.cache_type_k = cache_type("-ctk", arguments.text(Flag::kCacheTypeK));
  options.cache_type_v = cache_type("-ctv", arguments.text(Flag::kCacheTypeV));
  options.load_mode = load_mode(arguments);
  options.check_tensors = arguments.on(Flag::kCheckTensors);
  options.layout = arguments.text(Flag::kLayout);
  options.pins = arguments.list(Flag::kPin);
  return options;
}

SamplingOptions sampling_options(const Arguments& arguments, SamplingOptions base) {
  const auto real = [&](Flag flag, float& value) {
    if (arguments.has(flag)) value = static_cast<float>(arguments.number(flag));
  };
  const auto whole = [&](Flag flag, int& value) {
    if (arguments.has(flag)) value = static_cast<int>(arguments.integer(flag));
  };
  real(Flag::kTemp, base.temperature);
  whole(Flag::kTopK, base.top_k);
  real(Flag::kTopP, base.top_p);
  real(Flag::kMinP, base.min_p);
  real(Flag::kRepeatPenalty, base.repeat_penalty);
  whole(Flag::kRepeatLastN, base.repeat_last_n);
  real(Flag::kPresencePenalty, base.presence_penalty);
  real(Flag::kFrequencyPenalty, base.frequency_penalty);
  for (const std::string& text : arguments.list(Flag::kLogitBias)) {
    base.logit_bias.push_back(logit_bias(arguments.spelling(Flag::kLogitBias), text));
  }
  const std::int64_t seed = arguments.integer(Flag::kSeed);
  base.seed = seed < 0 ? std::random_device{}() : static_cast<std::uint64_t>(seed);
  return base;
}

std::string base_name(const std::string& path) {
  const std::size_t end = path.find_last_not_of('/');
  if (end == std::string::npos) return path;
  const std::string trimmed = path.substr(0, end + 1);
  return trimmed.substr(trimmed.rfind('/') + 1);
}

std::string model_type(const ModelInfo& info) {
  const double parameters = static_cast<double>(info.parameters);
  std::string size;
  if (parameters >= 5e9) {
    size = fmt::format("{:.0f}B", parameters / 1e9);
  } else if (parameters >= 0.5e9) {
    size = fmt::format("{:.1f}B", parameters / 1e9);
    if (const std::size_t zero = size.find(".0B"); zero != std::string::npos) size.erase(zero, 2);
  } else {
    size = fmt::format("{:.0f}M", parameters / 1e6);
  }
  return fmt::format("{} {} {}", info.architecture, size, info.format_name);
}

void print_warnings(const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings) print_warning(warning);
}

void print_settings(const Context& context) {
  if (!context.arguments.on(Flag::kVerbose)) return;
  for (const std::string& line : context.arguments.settings()) {
    print_line(context.terminal.dimmed(visible(line, true)));
  }
}

void print_start(const Context& context, const Engine& engine, const Model& model) {
  const ModelInfo& info = model.info();
  if (!context.arguments.on(Flag::kQuiet)) {
    const auto line = [&](std::string_view what, const std::string& text) {
      print_line(context.terminal.dimmed(fmt::format("{:<8} {}", what, visible(text, true))));
    };
    const MemoryNeeds& needs = info.needs;
    const auto positions = static_cast<std::uint64_t>(model.context_size());
    line("model", fmt::format("{}: {}, {} weights, {}", base_name(info.path), model_type(info),
                              parameter_count(info.parameters), binary_size(info.data_bytes)));
    line("device", engine.device_text());
    line("kernels", fmt::format("{}", fmt::join(info.kernels, "; ")));
    line("context", fmt::format("{} tokens ({})", grouped(positions), model.context_reason()));
    line("memory",
         fmt::format("{} = weights {} + context {} + work {}", binary_size(needs.total(positions)),
                     binary_size(needs.weights), binary_size(needs.kv_per_position * positions),
                     binary_size(needs.arena)));
  }
  if (model.context_size() > info.context_length) {
    print_warning(fmt::format(
        "{}: the model was trained on {} tokens at a time; behind them its answers get worse",
        context.arguments.spelling(Flag::kCtxSize), info.context_length));
  }
  print_warnings(engine.warnings());
  print_warnings(info.warnings);
  print_warnings(model.tokenizer().warnings());
}

}  // namespace tern::cli
