// The executables of one loaded model, built on first use, and the one way to run a step on them.
#pragma once

#include <memory>
#include <mutex>

#include "backend/backend.h"
#include "models/text_model.h"
#include "program/passes/passes.h"
#include "tern/engine.h"

namespace tern::runtime {

// Which rows of a step have outputs.
enum class OutputForm : std::uint8_t {
  kLast,  // up to kLastRows rows: generation, prefill
  kAll,   // every row, in steps of at most kAllRows rows: perplexity, logits
  kTaps,  // as kAll, with the residual stream after every layer
};
inline constexpr int kLastRows = 1;
inline constexpr int kAllRows = 64;

struct PlanSettings {
  int batch_rows = 512;
  int pages_per_sequence = 1;
  program::Activations activations = program::Activations::kI12;
  program::KvDtype k = program::KvDtype::kF16;
  program::KvDtype v = program::KvDtype::kF16;
  bool exact = false;
  std::vector<std::string> pins;
};

// The plan of a form; pure.
[[nodiscard]] Result<std::shared_ptr<const backend::Plan>> make_plan(
    const models::TextModel& model, const backend::Backend& backend,
    const backend::DeviceProfile& profile, const PlanSettings& settings, OutputForm form,
    const program::Bucket& bucket);

// Most rows and the whole context of a form: the bucket of a backend that needs only one.
[[nodiscard]] program::Bucket largest_bucket(const PlanSettings& settings, OutputForm form);

// The outputs of a step, valid as long as this lives. "logits" is output 0.
class StepOutputs {
 public:
  StepOutputs(std::unique_lock<std::mutex> lock, const backend::Device& device,
              const backend::Executable& executable, backend::Submission submission)
      : lock_(std::move(lock)),
        device_(&device),
        executable_(&executable),
        submission_(submission) {}
  // Throws the device's error when it was lost.
  [[nodiscard]] backend::OutputRows at(std::size_t index) const {
    return device_->output(*executable_, submission_, index).value();
  }
  [[nodiscard]] const program::Program& program() const { return executable_->plan().program; }

 private:
  std::unique_lock<std::mutex> lock_;
  const backend::Device* device_;
  const backend::Executable* executable_;
  backend::Submission submission_;
};

class Executables {
 public:
  Executables(const models::TextModel& model, const backend::Backend& backend,
              backend::Device& device, PlanSettings settings,
              std::shared_ptr<const backend::ResidentWeights> weights,
              std::shared_ptr<backend::StatePool> states)
      : model_(model),
        backend_(backend),
        device_(device),
        settings_(std::move(settings)),
        weights_(std::move(weights)),
        states_(std::move(states)) {}

  // Most rows of one step of this form.
  [[nodiscard]] int max_rows(OutputForm form) const { return largest_bucket(settings_, form).rows; }
  [[nodiscard]] const PlanSettings& settings() const { return settings_; }

  // Runs one step. Steps of one model follow one another, from whatever thread they come: the next
  // one waits until the outputs of this one are released. Allocates nothing once a step of this
  // bucket has run (the first one builds its executable).
  [[nodiscard]] Result<StepOutputs> step(OutputForm form, const program::BatchBlock& batch,
                                         const CancelToken& cancel);
  // After logits that are not finite: which op was the first.
  [[nodiscard]] std::string first_non_finite(OutputForm form, const program::BatchBlock& batch);
  [[nodiscard]] Result<std::vector<double>> time_steps(const program::BatchBlock& batch,
                                                       int repeats);
  [[nodiscard]] Result<std::shared_ptr<const backend::Plan>> plan(OutputForm form) const;
  // Builds the executable of a form now.
  [[nodiscard]] Result<void> prepare(OutputForm form);

 private:
  // The executable for a step, by the bucket that the backend plans it for.
  [[nodiscard]] Result<backend::Executable*> get(OutputForm form, const program::Bucket& step);
  [[nodiscard]] static program::Bucket bucket_of(const program::BatchBlock& batch);

  const models::TextModel& model_;
  const backend::Backend& backend_;
  backend::Device& device_;
  PlanSettings settings_;
  std::shared_ptr<const backend::ResidentWeights> weights_;
  std::shared_ptr<backend::StatePool> states_;
  std::mutex mutex_;
  struct Entry {
    OutputForm form;
    program::Bucket bucket;
    std::unique_ptr<backend::Executable> executable;
  };
  std::vector<Entry> entries_;  // a handful, built on first use
};

}  // namespace tern::runtime
