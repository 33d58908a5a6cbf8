// What a vendor's matrix product can run, as data: the only thing that decides whether it may.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "backend/vendor_gemm.h"

namespace tern::backend {

// Yes, or the reason why not ("B: row stride 4,099 elements of f16 is no multiple of 16 bytes").
struct Verdict {
  std::string reason;  // empty: yes
  explicit operator bool() const { return reason.empty(); }
};

// How a vendor treats operands whose pair of dtypes it has not.
enum class ConversionRule : std::uint8_t {
  kNone,    // refuse
  kWiden,   // to the wider type: exact
  kNarrow,  // f32 beside f16 or bf16 becomes that type: rounds, as a product in that type would
};

// One row per vendor; a device may lower numbers that it has probed. Bytes and elements as named.
struct VendorLimits {
  std::string_view name;  // "mps"
  std::span<const DtypeTriple> triples;
  ConversionRule conversion = ConversionRule::kWiden;
  std::uint64_t max_dimension = 0x7fffffff;  // of m, n, k and of every row stride, in elements
  std::uint64_t max_batch = 0x7fffffff;
  std::uint64_t max_batch_stride = ~std::uint64_t{0};  // elements
  std::uint64_t offset_alignment = 1;                  // bytes, of an operand's start
  std::uint64_t row_alignment = 1;                     // bytes, of a row stride
  std::uint64_t batch_alignment = 1;                   // bytes, of a batch stride
  // An operand that reaches beyond this many bytes of its allocation needs a known-answer probe at
  // its offset (is_proven below).
  std::uint64_t unproven_bytes = ~std::uint64_t{0};
  bool has_batches = true;              // one call for the batch; otherwise a loop of calls
  bool has_broadcast_batches = true;    // batch stride 0 within such a call
  bool has_interleaved_batches = true;  // a batch stride below the size of a matrix
  bool has_separate_c = true;           // C may be another matrix than D
  bool has_bias_f32 = false;            // epilogues of the vendor itself
  bool has_bias_result = false;         // bias in D's dtype
  std::uint32_t activations = 1;        // bit (1 << Activation) for those of the vendor itself
};

// True when a one-tile product at that offset gave the known answer in this process.
using OffsetProven = std::function<bool(const Operand& operand, OperandName name)>;

// How `problem` would run, or why not. Pure. `problem` has passed check_problem. This alone decides
// eligibility: no pin, table or model overrides it.
struct Eligibility {
  Verdict verdict;
  VendorCall call;
};
[[nodiscard]] Eligibility eligibility(const GemmProblem& problem, const VendorLimits& limits,
                                      const OffsetProven& is_proven = {});

// The predicate alone: yes, or the reason.
[[nodiscard]] inline Verdict can_run(const GemmProblem& problem, const VendorLimits& limits,
                                     const OffsetProven& is_proven = {}) {
  return eligibility(problem, limits, is_proven).verdict;
}

// Operands whose last byte lies beyond limits.unproven_bytes: those that a probe is needed for.
[[nodiscard]] std::vector<OperandName> unproven_operands(const GemmProblem& problem,
                                                         const VendorLimits& limits);

[[nodiscard]] const Operand& operand(const GemmProblem& problem, OperandName name);

}  // namespace tern::backend
