// The entry to the library: an engine opens models; a model makes sessions.
//
//   auto engine = tern::Engine::create({}).value();
//   auto model = engine.open("model.gguf", {}, {}, {}).value();
//   auto session = model.session({}).value();
//   auto ids = model.tokenizer().encode("Hello", {}).value();
//   auto answer = session.generate({.prompt = ids, .max_tokens = 16}, {}, {}, {}).value();
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tern/calibration.h"
#include "tern/cancel.h"
#include "tern/chat_template.h"
#include "tern/error.h"
#include "tern/model_info.h"
#include "tern/progress.h"
#include "tern/session.h"
#include "tern/tokenizer.h"

namespace tern {

struct EngineOptions {
  std::string device = "cpu";
  int threads =
      0;  // 0: physical cores within the affinity mask and the quota of the process's group
  std::string instruction_set{};  // "", or the best to use: "avx512", "avx2", "portable"; one that
                                  // is absent is an error
  // Not "": plan for a device that is not here, by the name of a profile that ships ("h200",
  // "rtx4090", "m4-pro") or a file. Such an engine explains and inspects; it loads nothing.
  std::string profile{};
};

enum class Activations : std::uint8_t { kI12, kF32 };
enum class CacheType : std::uint8_t { kF16, kF32 };
enum class LoadMode : std::uint8_t { kAuto, kMmap, kRead };

inline constexpr int kMaxBatchRows = 8192;  // most tokens of one device step

struct ModelOptions {
  std::int64_t context =
      -1;  // positions; 0: the model's; -1: the model's, reduced to what fits in memory
  int batch_rows = 512;  // tokens per device step (-ub), 1 to kMaxBatchRows
  Activations activations = Activations::kI12;
  bool exact = false;  // only kernels whose sums do not depend on how a prompt is cut
  CacheType cache_type_k = CacheType::kF16;
  CacheType cache_type_v = CacheType::kF16;
  LoadMode load_mode = LoadMode::kAuto;
  // Read every block before loading: kInvalidFile for a scale or a dense number that is not finite.
  // (Scales are checked in any case, when their weights are laid out.)
  bool check_tensors = false;
  std::string layout{};               // names an ambiguous block layout (F06)
  std::vector<std::string> pins{};    // "op:variant"
  std::int64_t fit_target_mib = 512;  // memory to leave free where context is -1
};

struct CalibrationOptions {
  std::string model{};   // measures what this model's steps need
  std::string shapes{};  // or a file of shapes, one a line; neither: a set of usual ones
  bool quick = false;    // fewer rows, fewer rounds
  ModelOptions model_options{};
};

struct SessionOptions {
  std::int64_t context = 0;  // 0: the model's
};

// A row of `tern explain`.
struct ExplainRow {
  std::string region;  // "layer 3"
  std::string op;      // "linear"
  std::string shapes;  // "[rows, 2048] x blk.3.qkv [4096 x 2048 q1_g128] -> [rows, 4096]"
  std::string kernel;  // "packed_product:lut"
  std::string reason;
  double bytes = 0;  // that must be read and written per run
  double flops = 0;
  double microseconds = 0;  // with `time`: median of several runs; else 0
};

struct Explanation {
  std::string device;  // "cpu: AVX2, 2 threads"
  std::int64_t rows = 1, context = 0;
  std::vector<ExplainRow> rows_of_ops;
  std::vector<std::string> warnings;
  MemoryNeeds needs;
  double read_gbps = 0;  // ceiling, measured with --time; else 0
};

struct LogitsRequest {
  std::vector<std::int32_t> ids{};
  std::int64_t last = 0;    // rows of logits, 0: all
  std::int64_t decode = 0;  // the last `decode` ids are evaluated one at a time
  bool taps = false;        // layer outputs too
};
struct NamedTensor {
  std::string name;  // "logits", "layer_out.0", "final_norm", "embeddings"
  std::vector<std::int64_t> shape;
  std::vector<float> values;
};

// A loaded model. Copies share it; immutable; every function may be called from any thread.
class Model {
 public:
  struct Impl;

  [[nodiscard]] const ModelInfo& info() const;
  [[nodiscard]] const Tokenizer& tokenizer() const;
  // The file's chat template, or kNotFound.
  [[nodiscard]] Result<ChatTemplate> chat_template() const;
  // Sampling defaults: the file's general.sampling.*, else the architecture's (formats.md 10), else
  // the library's.
  [[nodiscard]] SamplingOptions default_sampling() const;
  [[nodiscard]] std::int64_t context_size() const;
  // Why the context has this size, for people.
  [[nodiscard]] const std::string& context_reason() const;

  [[nodiscard]] Result<Session> session(const SessionOptions& options) const;

  // Logits (and layer outputs) of token ids, on a session of its own.
  [[nodiscard]] Result<std::vector<NamedTensor>> logits(const LogitsRequest& request,
                                                        const ProgressFn& progress,
                                                        const CancelToken& cancel) const;
  // The plan of one step. With `time` every op is run and timed.
  [[nodiscard]] Result<Explanation> explain(std::int64_t rows, std::int64_t context,
                                            bool time) const;

  explicit Model(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}

 private:
  std::shared_ptr<const Impl> impl_;
};

// A device and its threads. Several engines in one process work side by side.
class Engine {
 public:
  struct Impl;
  // Errors: kDevice naming the devices that exist; kUnsupported for an instruction set that the
  // processor lacks, naming what is missing. Each begins with what was wrong ("--threads 9999:
  // ...").
  [[nodiscard]] static Result<Engine> create(const EngineOptions& options);

  // Errors: formats.md 11 (the path is in front); kOutOfMemory with need and have before anything
  // is allocated.
  [[nodiscard]] Result<Model> open(const std::string& path, const ModelOptions& options,
                                   const ProgressFn& progress, const CancelToken& cancel) const;

  // What is in a file and what it would need here; works on files that cannot be run. Reads headers
  // only.
  [[nodiscard]] Result<ModelInfo> inspect(const std::string& path,
                                          const ModelOptions& options) const;
  // The plan of one step of a model that is not loaded, on this device.
  [[nodiscard]] Result<Explanation> explain(const std::string& path, const ModelOptions& options,
                                            std::int64_t rows, std::int64_t context) const;

  // "cpu: AVX2 FMA F16C, 2 threads".
  [[nodiscard]] std::string device_text() const;
  [[nodiscard]] std::string processor_name() const;
  [[nodiscard]] int threads() const;
  // One line each about slower paths than the machine could have.
  [[nodiscard]] std::vector<std::string> warnings() const;
  // Bytes per second that this engine's threads read from memory, in GB/s (1e9). Takes about half a
  // second.
  [[nodiscard]] double measure_read_gbps() const;
  // About the same, in a quarter of a second and 256 MiB, for a first look at a file. Errors:
  // kOutOfMemory where less than four times that memory is free, kDevice where the device cannot
  // say, kCancelled.
  [[nodiscard]] Result<double> estimate_read_gbps(const CancelToken& cancel) const;
  // Of the last level of the processor's cache: weights that fit it are read faster. 0: not known.
  [[nodiscard]] std::uint64_t last_cache_bytes() const;
  // Measures the variants of products against each other and keeps the result for engines that are
  // created later; this one goes on as it is. Takes seconds to minutes. Errors: kUsage for shapes
  // that do not parse; kCancelled; kIo when the result cannot be kept.
  [[nodiscard]] Result<CalibrationReport> calibrate(const CalibrationOptions& options,
                                                    const ProgressFn& progress,
                                                    const CancelToken& cancel) const;

  explicit Engine(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

 private:
  std::shared_ptr<Impl> impl_;
};

}  // namespace tern
