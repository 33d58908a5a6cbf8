// Engine::open and Engine::inspect: from a path to a model that runs, or to a description of one.
#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"
#include "base/progress.h"
#include "io/gguf_tokenizer.h"
#include "quant/codec.h"
#include "runtime/guarded.h"
#include "runtime/model_file.h"
#include "runtime/model_impl.h"
#include "runtime/path_error.h"
#include "runtime/tokenizer_impl.h"

namespace tern {
namespace {

using runtime::ModelFile;
using runtime::OutputForm;

Result<Tokenizer> open_tokenizer(const std::string& path, const ModelFile& file) {
  const Result<text::TokenizerData> data = io::read_gguf_tokenizer(*file.gguf);
  if (!data.ok()) return runtime::with_path(path, data.error());
  Result<text::Tokenizer> made = text::Tokenizer::create(*data);
  if (!made.ok()) return runtime::with_path(path, made.error());
  const std::int64_t rows = file.model->config().vocabulary;
  if (made->size() > rows)
    return fail(ErrorCode::kInvalidFile,
                "{}: the tokenizer has {} tokens, tensor 'token_embd.weight' only {} rows", path,
                made->size(), rows);
  return Tokenizer(std::make_shared<const Tokenizer::Impl>(std::move(*made)));
}

// A number of the file between 0 and `most`, which a sampler takes.
Result<float> sampling_number(const io::GgufFile& g, std::string_view key, float fallback,
                              float most) {
  const Result<float> value = g.get_f32(key, fallback);
  TERN_TRY(value);
  if (*value >= 0 && *value <= most) return value;  // false for NaN
  return fail(ErrorCode::kInvalidFile, "key '{}' is {}, expected 0 to {}", key, *value, most);
}

// The file's general.sampling.*, else the architecture's.
Result<SamplingOptions> default_sampling(const ModelFile& file) {
  const models::SamplingDefaults d = file.model->sampling_defaults();
  const io::GgufFile& g = *file.gguf;
  SamplingOptions s;
  const Result<float> temperature =
      sampling_number(g, "general.sampling.temp", d.temperature, 1e6F);
  TERN_TRY(temperature);
  // 0 and below: off, as other programs write it.
  const Result<std::int64_t> top_k = g.get_i64("general.sampling.top_k", d.top_k);
  TERN_TRY(top_k);
  const Result<float> top_p = sampling_number(g, "general.sampling.top_p", d.top_p, 1);
  TERN_TRY(top_p);
  const Result<float> min_p = sampling_number(g, "general.sampling.min_p", d.min_p, 1);
  TERN_TRY(min_p);
  s.temperature = *temperature;
  s.top_k = static_cast<int>(std::clamp<std::int64_t>(*top_k, 0, 1 << 30));
  s.top_p = *top_p;
  s.min_p = *min_p;
  return s;
}

// The first number of a dense tensor that is not finite, as text ("weight 7 is nan").
std::string bad_number(quant::Format format, std::span<const std::byte> bytes, std::int64_t first) {
  const auto size = static_cast<std::size_t>(quant::info(format).block_bytes);
  std::array<float, 256> values{};
  for (std::size_t at = 0; at < bytes.size(); at += values.size() * size) {
    const std::size_t count = std::min(values.size(), (bytes.size() - at) / size);
    quant::decode_row(format, bytes.data() + at, static_cast<std::int64_t>(count), values.data());
    for (std::size_t i = 0; i < count; ++i)
      if (!std::isfinite(values[i]))
        return fmt::format("weight {} is {}", first + static_cast<std::int64_t>(at / size + i),
                           std::isnan(values[i]) ? "nan" : "inf");
  }
  return {};
}

// What is wrong with a piece that begins with block `first` of its tensor; empty: nothing.
std::string bad_block(quant::Format format, std::span<const std::byte> bytes, std::int64_t first) {
  if (quant::info(format).kind == quant::FormatClass::kDense)
    return bad_number(format, bytes, first);
  const std::optional<std::int64_t> bad = quant::first_bad_scale(format, bytes);
  if (!bad) return {};
  const std::byte* block = bytes.data() + *bad * quant::info(format).block_bytes;
  return fmt::format("block {} has scale {}", first + *bad,
                     quant::scale_is_nan(format, block) ? "nan" : "inf");
}

// --check-tensors: reads every block before anything is laid out (F19, and dense numbers that are
// not finite).
Result<void> check_tensors(const program::WeightSet& set, const ProgressFn& progress,
                           const CancelToken& cancel) {
  std::uint64_t total = 0;
  for (const program::WeightDecl& d : set.weights)
    for (const program::WeightPart& part : d.parts) total += part.bytes.size();
  ProgressMeter meter(progress, "checking weights", "bytes", total);
  for (const program::WeightDecl& d : set.weights) {
    const auto block_bytes = static_cast<std::size_t>(quant::info(d.format).block_bytes);
    const std::size_t piece = FileMap::kReadPiece / block_bytes * block_bytes;
    for (const program::WeightPart& part : d.parts)
      for (std::size_t at = 0; at < part.bytes.size(); at += piece) {
        if (cancel.requested()) return fail(ErrorCode::kCancelled, "loading was cancelled");
        const auto bytes = part.bytes.subspan(at, std::min(piece, part.bytes.size() - at));
        const std::string bad =
            bad_block(d.format, bytes, static_cast<std::int64_t>(at / block_bytes));
        if (!bad.empty()) return fail(ErrorCode::kInvalidFile, "tensor '{}' {}", part.name, bad);
        meter.add(bytes.size());
      }
  }
  meter.finish();
  return {};
}

// Lays the weights out and drops the file's pages behind them, so that the process holds one copy.
Result<std::shared_ptr<const backend::ResidentWeights>> upload(
    Model::Impl& m, const std::string& path, const std::vector<std::string>& pins, bool is_checked,
    const ProgressFn& progress, const CancelToken& cancel) {
  program::WeightSet set = m.model->weights();
  set.pins = pins;
  const FileMap& map = *m.file;
  if (is_checked) {
    const Result<void> checked = check_tensors(set, progress, cancel);
    if (map.damaged()) return map.damage_error();
    if (!checked.ok()) return runtime::with_path(path, checked.error());
  }
  set.release = [&map](std::span<const std::byte> bytes) {
    map.drop_pages(static_cast<std::uint64_t>(bytes.data() - map.bytes().data()), bytes.size());
  };
  Result<std::shared_ptr<const backend::ResidentWeights>> weights =
      m.engine->device->upload(set, progress, cancel);
  if (map.damaged()) return map.damage_error();
  if (!weights.ok()) return runtime::with_path(path, weights.error());
  return weights;
}

Result<std::vector<std::string>> kernel_texts(const ModelFile& file, const Engine::Impl& engine,
                                              const runtime::PlanSettings& settings) {
  const Result<std::shared_ptr<const backend::Plan>> plan =
      runtime::make_plan(*file.model, *engine.backend, engine.profile, settings, OutputForm::kLast,
                         runtime::largest_bucket(settings, OutputForm::kLast));
  TERN_TRY(plan);
  std::vector<std::string> texts;
  const program::Program& p = (*plan)->program;
  for (const backend::PlanStep& step : (*plan)->steps) {
    const auto* linear = std::get_if<program::Linear>(&p.ops[step.first_op].kind);
    if (!linear) continue;
    const std::string_view tag = quant::info(p.at(linear->weight).weight.format).tag;
    const auto add = [&](const std::string& kernel) {
      std::string text = fmt::format("{}: {}", tag, kernel);
      if (std::find(texts.begin(), texts.end(), text) == texts.end())
        texts.push_back(std::move(text));
    };
    add(step.kernel);
    for (const backend::KernelForRows& at : step.by_rows) add(at.kernel);
  }
  return texts;
}

// The parts of the description that need a device.
Result<void> describe_run(const ModelFile& file, const Engine::Impl& engine, std::string device,
                          const runtime::PlanSettings& settings, ModelInfo& info) {
  const Result<MemoryNeeds> needs =
      runtime::memory_needs(file, *engine.backend, engine.profile, settings);
  TERN_TRY(needs);
  info.needs = *needs;
  info.device = std::move(device);
  Result<std::vector<std::string>> kernels = kernel_texts(file, engine, settings);
  TERN_TRY(kernels);
  info.kernels = std::move(*kernels);
  return {};
}

// "907 MiB were free at the start; ", as far as it is known.
std::string memory_text(const backend::DeviceProfile& profile) {
  if (profile.memory_bytes == 0) return {};
  return fmt::format("{} MiB were free at the start; ", profile.memory_bytes >> 20U);
}

Result<Model> open_model(const std::shared_ptr<Engine::Impl>& engine, const std::string& device,
                         const std::string& path, const ModelOptions& options,
                         const ProgressFn& progress, const CancelToken& cancel) {
  TERN_TRY(runtime::check_device(*engine));
  TERN_TRY(runtime::check_options(options));
  Result<ModelFile> opened = runtime::open_model_file(path, options, progress, cancel);
  TERN_TRY(opened);
  if (opened->refusal) return *opened->refusal;
  const Result<runtime::ContextChoice> context =
      runtime::choose_context(*opened, *engine->backend, engine->profile, options);
  if (!context.ok()) return runtime::with_path(path, context.error());
  auto m = std::make_shared<Model::Impl>();
  m->engine = engine;
  Result<Tokenizer> tokenizer = open_tokenizer(path, *opened);
  TERN_TRY(tokenizer);
  m->tokenizer = std::move(*tokenizer);
  if (cancel.requested()) return fail(ErrorCode::kCancelled, "loading was cancelled");
  const Result<SamplingOptions> sampling = default_sampling(*opened);
  if (!sampling.ok()) return runtime::with_path(path, sampling.error());
  m->sampling = *sampling;
  m->context = context->context;
  m->context_reason = context->reason;
  m->info = runtime::describe(path, *opened);
  const runtime::PlanSettings settings = runtime::plan_settings(options, m->context);
  TERN_TRY(describe_run(*opened, *engine, device, settings, m->info));
  m->file = opened->map;
  m->gguf = std::move(opened->gguf);
  m->model = std::move(opened->model);
  m->file->advise_sequential();
  Result<std::shared_ptr<const backend::ResidentWeights>> weights =
      upload(*m, path, options.pins, options.check_tensors, progress, cancel);
  TERN_TRY(weights);
  const Result<std::shared_ptr<const backend::Plan>> plan =
      runtime::make_plan(*m->model, *engine->backend, engine->profile, settings, OutputForm::kLast,
                         runtime::largest_bucket(settings, OutputForm::kLast));
  TERN_TRY(plan);
  Result<std::shared_ptr<backend::StatePool>> states = engine->device->make_states(
      (*plan)->program.states, {.pages = settings.pages_per_sequence, .slots = 0});
  TERN_TRY(states);
  m->pages = std::make_unique<runtime::PagePool>((*states)->pages());
  m->executables = std::make_unique<runtime::Executables>(
      *m->model, *engine->backend, *engine->device, settings, *weights, std::move(*states));
  TERN_TRY(m->executables->prepare(OutputForm::kLast));
  return Model(std::shared_ptr<const Model::Impl>(std::move(m)));
}

}  // namespace

Result<Model> Engine::open(const std::string& path, const ModelOptions& options,
                           const ProgressFn& progress, const CancelToken& cancel) const {
  Result<Model> opened = runtime::guarded(path, "to load the model", [&]() -> Result<Model> {
    return open_model(impl_, device_text(), path, options, progress, cancel);
  });
  if (opened.ok() || opened.error().code() != ErrorCode::kOutOfMemory) return opened;
  const std::string message = opened.error().message();
  // The choice of the context has given its numbers and its advice.
  if (message.find(" are free on ") != std::string::npos) return opened;
  return fail(ErrorCode::kOutOfMemory, "{}; {}a smaller --ctx-size or a smaller model needs less",
              message, memory_text(impl_->profile));
}

Result<ModelInfo> Engine::inspect(const std::string& path, const ModelOptions& options) const {
  return runtime::guarded(path, "to read the file", [&]() -> Result<ModelInfo> {
    TERN_TRY(runtime::check_options(options));
    const Result<ModelFile> file = runtime::open_model_file(path, options, {}, {});
    TERN_TRY(file);
    ModelInfo info = runtime::describe(path, *file);
    if (!file->model) return info;
    const std::int64_t context =
        options.context > 0 ? options.context : file->model->config().context_length;
    const Result<void> run =
        describe_run(*file, *impl_, device_text(), runtime::plan_settings(options, context), info);
    if (!run.ok() && run.error().code() != ErrorCode::kUnsupported) return run.error();
    if (!run.ok()) info.cannot_run = run.error().message();
    return info;
  });
}

const ModelInfo& Model::info() const { return impl_->info; }
const Tokenizer& Model::tokenizer() const { return *impl_->tokenizer; }
SamplingOptions Model::default_sampling() const { return impl_->sampling; }
std::int64_t Model::context_size() const { return impl_->context; }
const std::string& Model::context_reason() const { return impl_->context_reason; }

Result<ChatTemplate> Model::chat_template() const {
  return runtime::guarded(
      impl_->info.path, "to parse its chat template", [&]() -> Result<ChatTemplate> {
        const std::string& source = impl_->tokenizer->chat_template();
        if (source.empty())
          return fail(
              ErrorCode::kNotFound,
              "{}: the file has no chat template; give one with --chat-template-file, or send the "
              "text as it is with --raw",
              impl_->info.path);
        Result<ChatTemplate> parsed = ChatTemplate::parse(source);
        if (!parsed.ok()) return runtime::with_path(impl_->info.path, parsed.error());
        return parsed;
      });
}

}  // namespace tern
