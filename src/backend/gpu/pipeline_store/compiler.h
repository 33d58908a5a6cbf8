// What a compiler is to the store: an identity for the key, and sources in, artefact out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backend/cache/entry.h"
#include "backend/gpu/pipeline_store/kernel.h"
#include "base/error.h"

namespace tern::gpu {

using cache::PayloadKind;

enum class Tier {
  kEmbedded,  // in the executable
  kDisk,      // verified entry
  kOffline,   // a compiler program
  kRuntime,   // a compiler library
  kDriver,    // the driver's linker over embedded PTX
};
inline constexpr std::size_t kTiers = 5;
[[nodiscard]] std::string_view name_of(Tier tier);

struct CompilerIdentity {
  // The full version line and the build id or content hash. Never a path.
  std::string version;
  std::string location;  // for people only
};

struct CompileJob {
  const CodeInputs& code;
  std::string target;
  std::string scratch;             // an empty private folder, for one that needs it
  std::span<const std::byte> ptx;  // tier driver: the embedded PTX
};

struct Compiled {
  PayloadKind kind = PayloadKind::kCubin;
  std::vector<std::byte> bytes;
  std::vector<std::string> entry_points;
};

struct CompileResult {
  std::optional<Compiled> artefact;
  std::string error;        // one sentence, where there is no artefact
  std::string diagnostics;  // of the compiler, at most 64 KiB, cut between characters
  // The sources do not compile: trying again cannot help. Otherwise the surroundings failed.
  bool is_input_error = false;
};

inline constexpr std::size_t kMostDiagnosticBytes = 64 * 1024;
// At most that many bytes, cut at a character boundary, with a note of what was left out.
[[nodiscard]] std::string cut_diagnostics(std::string_view text,
                                          std::size_t most = kMostDiagnosticBytes);

// Threads: compile() may be called by several at once; identity() remembers its answer.
class Compiler {
 public:
  virtual ~Compiler() = default;
  [[nodiscard]] virtual Tier tier() const = 0;
  [[nodiscard]] virtual std::string name() const = 0;
  // Errors: kNotFound (absence is normal), anything else: it is there and does not work.
  [[nodiscard]] virtual Result<CompilerIdentity> identity() = 0;
  [[nodiscard]] virtual CompileResult compile(const CompileJob& job) = 0;
  [[nodiscard]] virtual bool needs_scratch() const { return false; }
  // What one kernel usually takes, to decide about a notice.
  [[nodiscard]] virtual std::int64_t expected_ms() const { return 500; }
};

// The driver's linker: PTX in, cubin for the device out. CUDA implements it over its function
// table.
class PtxLinker {
 public:
  virtual ~PtxLinker() = default;
  [[nodiscard]] virtual Result<std::vector<std::byte>> link(std::span<const std::byte> ptx,
                                                            const std::string& target) = 0;
  // The driver's version and build.
  [[nodiscard]] virtual std::string version() const = 0;
};

}  // namespace tern::gpu
