// What a kernel is to the store: everything that decides its code, and what must be true of it once
// it is loaded.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "backend/cache/key.h"
#include "base/error.h"

namespace tern::gpu {

// One file of source text under the name by which others include it.
struct SourceFile {
  std::string name;
  std::string text;
};

struct Constant {
  std::string name;
  std::string type;   // "int", "uint", "bool", "float"
  std::string value;  // as the source language writes it
};

enum class MathMode { kPrecise, kFast };

// All options that a compiler may be given. The members are taken apart by name below: a new one
// needs its line in the key before it compiles.
struct CompileOptions {
  int optimisation = 3;
  MathMode math = MathMode::kPrecise;
  std::string language = "c++20";
  bool has_debug_info = false;
  int most_registers = 0;            // 0: the compiler decides
  std::vector<std::string> defines;  // "NAME=VALUE", sorted in the key
};

// All that a compiler reads, besides the target. A compiler is handed this and nothing else, so
// that nothing reaches the code that the key does not know.
struct CodeInputs {
  std::string stem;                 // "gemv_q1_g128"
  std::string variant;              // "b1_mma"
  std::vector<SourceFile> sources;  // the first is the translation unit, the others it includes
  std::vector<Constant> constants;  // compiled in, as defines
  CompileOptions options;
  std::string generator;  // hash of the program that wrote the sources; empty: people did
};

// Visits every member under the name of its key line. Works on const and changeable inputs (the
// test that perturbs each one).
template <class Options, class Visit>
void visit_option_fields(Options& options, Visit&& visit) {
  auto& [optimisation, math, language, has_debug_info, most_registers, defines] = options;
  visit("optimisation", optimisation);
  visit("math", math);
  visit("language", language);
  visit("debug", has_debug_info);
  visit("registers", most_registers);
  visit("defines", defines);
}
template <class Inputs, class Visit>
void visit_code_fields(Inputs& inputs, Visit&& visit) {
  auto& [stem, variant, sources, constants, options, generator] = inputs;
  visit("kernel", stem);
  visit("variant", variant);
  visit("source", sources);
  visit("constants", constants);
  visit("flags", options);
  visit("generator", generator);
}

// The launch that an entry point must be able to run.
struct LaunchNeeds {
  std::uint32_t threads = 1;         // of a group
  std::uint64_t dynamic_shared = 0;  // bytes, on top of the static ones
  std::uint32_t simd_width = 0;      // 0: does not matter
};

// Size and layout hash of a parameter block: what the kernel exports must equal the host's.
struct ParamsMark {
  std::uint64_t bytes = 0;
  std::uint64_t layout = 0;
  friend bool operator==(const ParamsMark&, const ParamsMark&) = default;
};

struct EntryPoint {
  std::string name;
  ParamsMark params;
  LaunchNeeds launch;
};

// The name of the constant of two 64-bit words {bytes, layout} that a kernel exports beside an
// entry point.
[[nodiscard]] inline std::string params_mark_name(std::string_view entry_point) {
  return std::string(entry_point) + "_params_mark";
}

struct SelfTestOutcome {
  bool passed = false;
  double error = 0;      // as measured
  double tolerance = 0;  // as allowed
  std::string detail;    // which shape and element; empty when it passed
  std::string digest;    // of the result's bits, for TERN_KERNEL_VERIFY; may be empty
};

struct Pipeline;
// A known-answer test on the device, at most 1 ms. An error means that the device failed.
struct SelfTest {
  std::string version;                                          // of the test itself
  std::function<Result<SelfTestOutcome>(const Pipeline&)> run;  // empty: there is none
};

struct KernelDescription {
  CodeInputs code;
  std::vector<EntryPoint> entry_points;
  // Set when a pipeline is made from a library, not when the library is compiled (Metal's function
  // constants). They are no part of the artefact's key.
  std::vector<Constant> load_constants;
  SelfTest self_test;
};

// The fields of an artefact's key (format is added by the cache).
struct KernelKey {
  std::string tern;
  std::string kernel;
  std::string variant;
  std::string constants;
  std::string source;
  std::string flags;
  std::string target;
  std::string compiler;
  std::string driver;
  std::string runtime;
  std::string env;  // variables that reach code generation: none, children get none
};
template <class Visit>
void visit_key_fields(const KernelKey& key, Visit&& visit) {
  const auto& [tern, kernel, variant, constants, source, flags, target, compiler, driver, runtime,
               env] = key;
  visit("tern", tern);
  visit("kernel", kernel);
  visit("variant", variant);
  visit("constants", constants);
  visit("source", source);
  visit("flags", flags);
  visit("target", target);
  visit("compiler", compiler);
  visit("driver", driver);
  visit("runtime", runtime);
  visit("env", env);
}

// SHA-256 over names and bytes of all sources, in their order.
[[nodiscard]] std::string source_hash(const std::vector<SourceFile>& sources);
// "math=precise;optimisation=3;..." and "HEAD=int:128;...", sorted.
[[nodiscard]] std::string canonical_text(const CompileOptions& options);
[[nodiscard]] std::string canonical_text(const std::vector<Constant>& constants);
// "gemv_q1_g128/b1_mma", with constants where there are any: for messages.
[[nodiscard]] std::string display_name(const KernelDescription& kernel);

// The translation unit `main` and every file of `table` that it includes by "name", directly or
// not, whatever the preprocessor would say: so that a change of any of them changes the key.
// Errors: kNotFound, naming the file and who includes it. Names in <> belong to the compiler.
[[nodiscard]] Result<std::vector<SourceFile>> gather_sources(std::string_view main,
                                                             const std::vector<SourceFile>& table);

}  // namespace tern::gpu
