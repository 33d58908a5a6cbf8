// The inside of the store: one kernel's way through the tiers, and what all ways share.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "backend/cache/single_flight.h"
#include "backend/gpu/pipeline_store/store.h"

namespace tern::gpu {

// What a tier has come up with, before a device has seen it.
struct Candidate {
  Tier tier = Tier::kEmbedded;
  PayloadKind kind = PayloadKind::kCubin;
  std::shared_ptr<const void> owned;  // of the bytes; empty: they lie in the executable
  std::span<const std::byte> bytes;
  std::optional<std::size_t> image;     // embedded: which library
  std::string compiler;                 // version; "embedded" for code of the executable
  std::optional<cache::Key> key;        // of the artefact; none: embedded
  std::optional<cache::FileMark> file;  // on disk: what to remove when it is bad
  double compile_ms = 0;
  std::string diagnostics;
};

// One kernel on its way.
struct Work {
  const KernelDescription* kernel = nullptr;
  std::string target;
  std::string name;    // for people
  std::string id;      // in this store
  std::string source;  // canonical texts of the key
  std::string flags;
  std::string constants;
  std::size_t next = 0;  // index of the tier to try
  std::vector<TierVerdict> verdicts;
  std::size_t rejections = 0;               // tiers whose self-test failed
  std::optional<cache::FileMark> bad_file;  // what the disk tier gave and the device refused
  std::optional<Candidate> candidate;       // from a compile, to be loaded
  std::optional<Result<PipelinePtr>> result;
};

// Tells of a compile that takes long: one start, one end. Used by one thread.
class CompileWatch {
 public:
  CompileWatch(const StoreOptions& options, std::string device)
      : options_(options), device_(std::move(device)), start_(std::chrono::steady_clock::now()) {}
  ~CompileWatch();
  CompileWatch(const CompileWatch&) = delete;
  CompileWatch& operator=(const CompileWatch&) = delete;

  void expect(std::size_t kernels, std::int64_t expected_ms);
  void done(std::size_t kernels);
  // To be called now and then: says something once it has taken long.
  void look();
  [[nodiscard]] std::chrono::steady_clock::time_point deadline() const {
    return start_ + std::chrono::milliseconds(options_.notice_after_ms);
  }
  [[nodiscard]] bool has_started() const { return has_started_; }

 private:
  void tell(CompileNotice::Phase phase);
  [[nodiscard]] double elapsed_ms() const;

  const StoreOptions& options_;
  std::string device_;
  std::chrono::steady_clock::time_point start_;
  std::size_t total_ = 0;
  std::size_t done_ = 0;
  bool has_started_ = false;
};

struct Store::State {
  DeviceDescription device;
  std::shared_ptr<Loader> loader;
  EmbeddedTable embedded;
  std::vector<std::shared_ptr<Compiler>> compilers;
  StoreOptions options;

  // What a compile of a key came to; shared by all who waited for it.
  struct Outcome {
    CompileResult result;
    std::shared_ptr<const std::vector<std::byte>> bytes;
    std::optional<cache::FileMark> file;
    bool is_from_disk = false;
    bool is_answered = false;  // the pipeline was made meanwhile
    double compile_ms = 0;
  };
  cache::SingleFlight<Outcome> compiles;

  mutable std::mutex mutex;  // guards the three below
  std::map<std::string, PipelinePtr> pipelines;
  std::map<std::string, Error> failures;
  std::set<std::string> warned;

  std::mutex loading;  // one caller at a time with the loader; guards the four below
  std::map<std::size_t, Result<std::shared_ptr<Module>>> images;
  std::map<std::string, std::weak_ptr<Module>> modules;  // by artefact key, while they are used
  std::map<std::size_t, std::string> image_hashes;
  bool is_archive_open = false;

  // store.cpp
  [[nodiscard]] Work begin(const KernelDescription& kernel, const std::string& target) const;
  [[nodiscard]] bool is_answered(Work& work) const;
  [[nodiscard]] bool is_known(const std::string& id) const;
  void settle(Work& work, Result<PipelinePtr> result);
  void fail_for_good(Work& work);
  void advance(std::span<Work* const> works, CompileWatch& watch);
  [[nodiscard]] bool has_tiers_left(const Work& work) const {
    return work.next < options.switches.tiers.size();
  }
  void warn(const std::string& text);

  // store_tiers.cpp
  void try_tier(Work& work);  // embedded and disk; the others only prepare
  void try_embedded(Work& work);
  void try_disk(Work& work);
  [[nodiscard]] const EmbeddedKernel* find_embedded(const Work& work, bool is_ptx,
                                                    std::string& why) const;
  [[nodiscard]] Compiler* compiler_of(Tier tier) const;
  [[nodiscard]] Result<cache::Key> key_for(const Work& work, const std::string& compiler) const;
  // The compiler's version as it stands in the key.
  [[nodiscard]] Result<std::string> version_for(const Work& work, Compiler& compiler,
                                                std::string& why) const;
  void compile(Work& work, Tier tier);
  [[nodiscard]] Outcome compile_now(const Work& work, Compiler& compiler, const cache::Key& key,
                                    bool with_cache);
  [[nodiscard]] CompileResult run_compiler(const Work& work, Compiler& compiler,
                                           const cache::Key& key);
  [[nodiscard]] bool uses_disk() const;
  // What this backend's compilers make, and thus what its entries hold.
  [[nodiscard]] PayloadKind code_kind() const {
    return device.backend == "metal" ? PayloadKind::kMetallib : PayloadKind::kCubin;
  }

  // store_load.cpp
  void finish(Work& work, Candidate candidate);
  struct Loaded {
    std::shared_ptr<Pipeline> pipeline;
    std::string reason;  // no pipeline: why
    bool is_device_failure = false;
    bool is_self_test = false;
  };
  [[nodiscard]] Loaded load(const Work& work, const Candidate& candidate);
  [[nodiscard]] Result<std::shared_ptr<Module>> load_module(const Work& work,
                                                            const Candidate& candidate);
  [[nodiscard]] std::string check_entry(const EntryPoint& expected, const LoadedEntry& found) const;
  [[nodiscard]] std::string known_bad_reason(const Work& work, const Candidate& candidate) const;
  void self_test(const Work& work, const Candidate& candidate, Loaded& loaded);
  [[nodiscard]] std::optional<cache::Key> record_key(const Work& work, const Candidate& candidate);
  void verify(Work& work, const Candidate& candidate, const Pipeline& hit);
  [[nodiscard]] std::string compare(const Work& work, const Pipeline& hit, const Pipeline& rebuilt,
                                    bool is_same_compiler) const;
  void open_archive();
  void write_archive();
};

}  // namespace tern::gpu
