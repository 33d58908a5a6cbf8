// Engine::open and Engine::inspect: from a path to a model that runs, or to a description of one.
#include <algorithm>

#include "base/error.h"
#include "io/gguf_tokenizer.h"
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

// The file's general.sampling.*, else the architecture's.
Result<SamplingOptions> default_sampling(const ModelFile& file) {
  const models::SamplingDefaults d = file.model->sampling_defaults();
  const io::GgufFile& g = *file.gguf;
  SamplingOptions s;
  const Result<float> temperature = g.get_f32("general.sampling.temp", d.temperature);
  TERN_TRY(temperature);
  const Result<std::int64_t> top_k = g.get_i64("general.sampling.top_k", d.top_k);
  TERN_TRY(top_k);
  const Result<float> top_p = g.get_f32("general.sampling.top_p", d.top_p);
  TERN_TRY(top_p);
  const Result<float> min_p = g.get_f32("general.sampling.min_p", d.min_p);
  TERN_TRY(min_p);
  s.temperature = *temperature;
  s.top_k = static_cast<int>(std::clamp<std::int64_t>(*top_k, 0, 1 << 30));
  s.top_p = *top_p;
  s.min_p = *min_p;
  return s;
}

// Lays the weights out and drops the file's pages behind them, so that the process holds one copy.
Result<std::shared_ptr<const backend::ResidentWeights>> upload(Model::Impl& m,
                                                               const std::string& path,
                                                               const ProgressFn& progress,
                                                               const CancelToken& cancel) {
  program::WeightSet set = m.model->weights();
  const FileMap& map = *m.file;
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
    std::string text =
        fmt::format("{}: {}", quant::info(p.at(linear->weight).weight.format).tag, step.kernel);
    if (std::find(texts.begin(), texts.end(), text) == texts.end())
      texts.push_back(std::move(text));
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

Result<Model> open_model(const std::shared_ptr<Engine::Impl>& engine, const std::string& device,
                         const std::string& path, const ModelOptions& options,
                         const ProgressFn& progress, const CancelToken& cancel) {
  TERN_TRY(runtime::check_options(options));
  Result<ModelFile> opened = runtime::open_model_file(path, options);
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
      upload(*m, path, progress, cancel);
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
  try {
    return open_model(impl_, device_text(), path, options, progress, cancel);
  } catch (const Error& e) {
    return e;
  } catch (const std::bad_alloc&) {
    return fail(ErrorCode::kOutOfMemory, "{}: no memory is left to load the model", path);
  }
}

Result<ModelInfo> Engine::inspect(const std::string& path, const ModelOptions& options) const {
  try {
    TERN_TRY(runtime::check_options(options));
    const Result<ModelFile> file = runtime::open_model_file(path, options);
    TERN_TRY(file);
    ModelInfo info = runtime::describe(path, *file);
    if (!file->model) return info;
    const std::int64_t context =
        options.context > 0 ? options.context : file->model->config().context_length;
    TERN_TRY(
        describe_run(*file, *impl_, device_text(), runtime::plan_settings(options, context), info));
    return info;
  } catch (const Error& e) {
    return e;
  } catch (const std::bad_alloc&) {
    return fail(ErrorCode::kOutOfMemory, "{}: no memory is left to read the file", path);
  }
}

const ModelInfo& Model::info() const { return impl_->info; }
const Tokenizer& Model::tokenizer() const { return *impl_->tokenizer; }
SamplingOptions Model::default_sampling() const { return impl_->sampling; }
std::int64_t Model::context_size() const { return impl_->context; }
const std::string& Model::context_reason() const { return impl_->context_reason; }

Result<ChatTemplate> Model::chat_template() const {
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
}

}  // namespace tern
