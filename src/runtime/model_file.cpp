#include "runtime/model_file.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/checked.h"
#include "models/registry.h"
#include "runtime/path_error.h"

namespace tern::runtime {
namespace {

// Positions are 32-bit numbers in the batch block.
constexpr std::int64_t kMostPositions = std::numeric_limits<std::int32_t>::max();

FileMap::Options map_options(const ModelOptions& options, const ProgressFn& progress,
                             const CancelToken& cancel) {
  FileMap::Options map;
  map.progress = progress;
  map.cancel = cancel;
  switch (options.load_mode) {
    case LoadMode::kAuto:
      map.mode = FileMap::Mode::kAuto;
      break;
    case LoadMode::kMmap:
      map.mode = FileMap::Mode::kMmap;
      break;
    case LoadMode::kRead:
      map.mode = FileMap::Mode::kRead;
      break;
  }
  return map;
}

program::KvDtype kv_dtype(CacheType type) {
  return type == CacheType::kF32 ? program::KvDtype::kF32 : program::KvDtype::kF16;
}

std::uint64_t mib(std::uint64_t bytes) { return (bytes + (1U << 20) - 1) >> 20; }

}  // namespace

Result<void> check_options(const ModelOptions& o) {
  if (o.batch_rows < 1 || o.batch_rows > kMaxBatchRows)
    return fail(ErrorCode::kUsage, "--ubatch-size {}: expected 1 to {}", o.batch_rows,
                kMaxBatchRows);
  if (o.context > kMostPositions)
    return fail(ErrorCode::kUsage, "--ctx-size {}: expected at most {}", o.context, kMostPositions);
  if (o.context < -1)
    return fail(ErrorCode::kUsage,
                "--ctx-size {}: expected a number of tokens, or 0 for the model's", o.context);
  return {};
}

Result<ModelFile> open_model_file(const std::string& path, const ModelOptions& options,
                                  const ProgressFn& progress, const CancelToken& cancel) {
  Result<FileMap> map = FileMap::open(path, map_options(options, progress, cancel));
  TERN_TRY(map);  // the message begins with the path
  ModelFile file;
  file.map = std::make_shared<const FileMap>(std::move(*map));
  Result<io::GgufFile> gguf = io::GgufFile::open(file.map, {.layout = options.layout});
  if (!gguf.ok()) return with_path(path, gguf.error());
  file.gguf = std::make_unique<io::GgufFile>(std::move(*gguf));
  Result<std::unique_ptr<models::TextModel>> model = models::open_text_model(*file.gguf);
  if (model.ok()) {
    file.model = std::move(*model);
  } else {
    file.refusal = with_path(path, model.error());
  }
  return file;
}

PlanSettings plan_settings(const ModelOptions& options, std::int64_t context) {
  PlanSettings s;
  s.batch_rows = options.batch_rows;
  s.pages_per_sequence = static_cast<int>(ceil_div(context, program::kPagePositions));
  s.activations = options.activations == Activations::kF32 ? program::Activations::kF32
                                                           : program::Activations::kI12;
  s.k = kv_dtype(options.cache_type_k);
  s.v = kv_dtype(options.cache_type_v);
  s.exact = options.exact;
  s.pins = options.pins;
  return s;
}

Result<MemoryNeeds> memory_needs(const ModelFile& file, const backend::Backend& backend,
                                 const backend::DeviceProfile& profile,
                                 const PlanSettings& settings) {
  const Result<std::shared_ptr<const backend::Plan>> plan =
      make_plan(*file.model, backend, profile, settings, OutputForm::kLast,
                largest_bucket(settings, OutputForm::kLast));
  TERN_TRY(plan);
  MemoryNeeds needs;
  program::WeightSet weights = file.model->weights();
  weights.pins = settings.pins;
  needs.weights = backend.estimate(weights, profile).bytes;
  needs.arena = (*plan)->arena_bytes + (*plan)->scratch_bytes;
  for (const program::StateDecl& state : (*plan)->program.states)
    needs.kv_per_position += state.bytes_per_position();
  return needs;
}

Result<ContextChoice> choose_context(const ModelFile& file, const backend::Backend& backend,
                                     const backend::DeviceProfile& profile,
                                     const ModelOptions& options) {
  const std::int64_t of_model = file.model->config().context_length;
  const std::int64_t asked = options.context > 0 ? options.context : of_model;
  ContextChoice choice{std::min(asked, kMostPositions),
                       options.context > 0 ? "as asked for" : "the model's"};
  const Result<MemoryNeeds> needs =
      memory_needs(file, backend, profile, plan_settings(options, choice.context));
  TERN_TRY(needs);
  if (profile.memory_bytes == 0) return choice;
  const std::uint64_t spare =
      options.context == -1 ? static_cast<std::uint64_t>(options.fit_target_mib) << 20 : 0;
  const std::uint64_t fixed = needs->weights + needs->arena + spare;
  const std::uint64_t room = profile.memory_bytes > fixed ? profile.memory_bytes - fixed : 0;
  const auto fitting = static_cast<std::int64_t>(room / needs->kv_per_position) / 64 * 64;
  if (choice.context <= fitting) return choice;
  const std::int64_t least = std::min<std::int64_t>(of_model, 4096);
  if (options.context == -1 && fitting >= least)
    return ContextChoice{
        fitting, fmt::format("reduced from the model's {} to what fits into {} MiB", of_model,
                             mib(profile.memory_bytes))};
  const std::int64_t wanted = options.context == -1 ? least : choice.context;
  // What is spared is only so where the context was not asked for.
  const std::uint64_t others = needs->weights + needs->arena;
  const std::uint64_t for_context =
      profile.memory_bytes > others ? profile.memory_bytes - others : 0;
  const auto possible = static_cast<std::int64_t>(for_context / needs->kv_per_position) / 64 * 64;
  const std::string help = possible >= 64
                               ? fmt::format(" Fits with --ctx-size {}.", std::min(possible, asked))
                               : std::string(" Free memory, or use a smaller model.");
  const std::string kept =
      spare > 0 ? fmt::format(" ({} of them are kept free by --fit-target)", mib(spare)) : "";
  return fail(ErrorCode::kOutOfMemory,
              "needs {} MiB for weights, {} MiB for activations and {} MiB for context {}; {} MiB "
              "are free on {}{}.{}",
              mib(needs->weights), mib(needs->arena),
              mib(needs->kv_per_position * static_cast<std::uint64_t>(wanted)), wanted,
              mib(profile.memory_bytes), profile.name, kept, help);
}

}  // namespace tern::runtime
