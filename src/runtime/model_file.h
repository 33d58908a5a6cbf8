// A model file as the runtime opens it: mapped, parsed, understood, and described.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "backend/backend.h"
#include "base/file_map.h"
#include "io/gguf.h"
#include "models/text_model.h"
#include "runtime/executables.h"
#include "tern/engine.h"

namespace tern::runtime {

struct ModelFile {
  std::shared_ptr<const FileMap> map;
  std::unique_ptr<io::GgufFile> gguf;
  std::unique_ptr<models::TextModel> model;  // null: `refusal` says why the file cannot be run
  std::optional<Error> refusal;
};

// Refuses options outside of their range, naming the flag.
[[nodiscard]] Result<void> check_options(const ModelOptions& options);

// Errors: what cannot even be read as a container; kCancelled while a file is read into memory. The
// path is in front.
[[nodiscard]] Result<ModelFile> open_model_file(const std::string& path,
                                                const ModelOptions& options,
                                                const ProgressFn& progress,
                                                const CancelToken& cancel);

// Reads headers only. Fills everything but `needs`, `device` and `kernels`.
[[nodiscard]] ModelInfo describe(const std::string& path, const ModelFile& file);

// How plans are made for these options and a context.
[[nodiscard]] PlanSettings plan_settings(const ModelOptions& options, std::int64_t context);

// Weights, arena and KV from the plans that would run. Fills also device kernels of the info.
[[nodiscard]] Result<MemoryNeeds> memory_needs(const ModelFile& file,
                                               const backend::Backend& backend,
                                               const backend::DeviceProfile& profile,
                                               const PlanSettings& settings);

struct ContextChoice {
  std::int64_t context = 0;
  std::string reason;
};
// The context for the options: what was asked for, or the model's, reduced to what fits. Errors:
// kOutOfMemory (F23) with a setting that would fit.
[[nodiscard]] Result<ContextChoice> choose_context(const ModelFile& file,
                                                   const backend::Backend& backend,
                                                   const backend::DeviceProfile& profile,
                                                   const ModelOptions& options);

}  // namespace tern::runtime
