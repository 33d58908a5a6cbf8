// The vendor bridge: matrix products of a vendor's library (cuBLASLt, MPS, OpenBLAS) on memory that
// is already on the device.
//
//   D = activation(alpha * op(A) * op(B) + beta * C + bias)      [m,k] * [k,n] -> [m,n]
//
// Row-major everywhere; op is "as stored" or "transposed", folded into the call and never a copy.
// Sums are f32. beta = 0: C is not read. alpha = 0 or k = 0: A and B are not read. m = 0, n = 0 or
// batch = 0: nothing is done and nothing is encoded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backend/vendor_gemm_memory.h"
#include "tensor/dtype.h"
#include "tern/error.h"

namespace tern::backend {

// A batch of matrices in device memory. rows and cols are those of the matrix as it is stored;
// `transposed` says that the product uses its transpose. Strides are in elements and may be larger
// than the width (a slice of a fused result); a batch stride of 0 repeats one matrix.
struct Operand {
  AllocationRef memory = nullptr;
  std::uint64_t offset = 0;  // bytes from the start of the allocation, a multiple of the element
  std::uint64_t rows = 0;
  std::uint64_t cols = 0;
  std::uint64_t row_stride = 0;    // elements, >= cols
  std::uint64_t batch_stride = 0;  // elements; not used when batch is 1
  Dtype dtype = Dtype::kF32;
  bool transposed = false;  // for A and B only
  // The offset changes from step to step (a row of a cache, an expert's slice): its view is made
  // for one encode and never fills the cache.
  bool is_transient = false;
};

// n values that are added to every row.
struct Bias {
  AllocationRef memory = nullptr;
  std::uint64_t offset = 0;   // bytes
  Dtype dtype = Dtype::kF32;  // f32 or the dtype of D
};

// Two gelus that differ by up to 5e-4: gelu_erf is x * Phi(x), gelu_tanh its approximation
// 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))). silu is x / (1 + exp(-x)).
enum class Activation : std::uint8_t { kNone, kRelu, kSilu, kGeluErf, kGeluTanh };
inline constexpr int kActivations = 5;
[[nodiscard]] std::string_view to_string(Activation activation);  // "gelu_erf"

// What follows the sum, in f32, before the one rounding to D's dtype.
struct Epilogue {
  std::optional<Bias> bias = std::nullopt;
  Activation activation = Activation::kNone;
};

// Numeric contract of the program. kExact asks for the canonical order of sums, which no vendor
// promises, so no vendor is eligible under it.
enum class Contract : std::uint8_t { kExact, kTolerant };

struct GemmProblem {
  std::string op{};  // for messages and explain: "linear in layer 3"
  Operand a{};       // op(A): [m, k]
  Operand b{};       // op(B): [k, n]; a weight stored [n, k] is B transposed
  Operand c{};       // [m, n]; looked at only when beta != 0; D itself, or apart from D
  Operand d{};       // [m, n]
  std::uint32_t batch = 1;
  float alpha = 1.0f;
  float beta = 0.0f;
  Epilogue epilogue{};
  Contract contract = Contract::kTolerant;

  [[nodiscard]] std::uint64_t m() const { return a.transposed ? a.cols : a.rows; }
  [[nodiscard]] std::uint64_t n() const { return b.transposed ? b.rows : b.cols; }
  [[nodiscard]] std::uint64_t k() const { return a.transposed ? a.rows : a.cols; }
  [[nodiscard]] bool is_empty() const { return m() == 0 || n() == 0 || batch == 0; }
  // Whether A and B take part at all.
  [[nodiscard]] bool has_product() const { return k() != 0 && alpha != 0.0f; }
};

// Which operand a message, a conversion or a predicate speaks of.
enum class OperandName : std::uint8_t { kA, kB, kC, kD, kBias };
[[nodiscard]] std::string_view to_string(OperandName name);  // "A", "bias"

// Bytes that the operand touches beyond its offset: 0 when it has no element. Errors:
// kInvalidArgument, naming op, operand and numbers, when that does not fit 64 bits.
[[nodiscard]] Result<std::uint64_t> span_bytes(const GemmProblem& problem, const Operand& operand,
                                               OperandName name);

// The same elements in the same bytes: C and D of a product in place.
[[nodiscard]] bool is_same_place(const Operand& x, const Operand& y, std::uint32_t batch);

// Everything that is wrong with a problem whatever vendor runs it: shapes that do not fit each
// other, strides below the width, a result whose own elements overlap, ranges outside of their
// allocation, D over A, B or bias, C over D without being D, integer dtypes, missing memory. All
// arithmetic is overflow-checked. Errors: kInvalidArgument, or kUnsupported for a dtype; the
// message names op, operand and numbers.
[[nodiscard]] Result<void> check_problem(const GemmProblem& problem);

// "m 16, n 2304, k 768, f32 x f16 -> f32, batch 1": for messages and explain.
[[nodiscard]] std::string describe(const GemmProblem& problem);

// An operand that is converted to another dtype in the workspace before the vendor reads it.
struct Conversion {
  OperandName operand = OperandName::kA;
  Dtype from = Dtype::kF16;
  Dtype to = Dtype::kF32;
  std::uint64_t elements = 0;  // of all the matrices that are converted
  friend bool operator==(const Conversion&, const Conversion&) = default;
};

// Dtypes of A, B and D that one vendor call takes as they are.
struct DtypeTriple {
  Dtype a, b, d;
};

// What the bridge does to run a problem: which dtypes the vendor call sees, what is converted,
// which epilogue is whose.
struct VendorCall {
  DtypeTriple dtypes{};  // as the vendor sees them; d is f32 before an own epilogue
  bool converts_a = false;
  bool converts_b = false;
  bool has_vendor_c = false;           // the vendor adds beta * C
  bool has_vendor_bias = false;        // the vendor adds the bias
  bool has_vendor_activation = false;  // the vendor applies the activation (or there is none)
  bool has_own_epilogue = false;       // one kernel of ours does whatever the vendor does not
  bool has_staged_result = false;      // the vendor writes f32 to the workspace, not to D
  bool is_loop = false;                // a vendor call per matrix of the batch
  bool has_product = false;            // false (k = 0, alpha = 0): our kernel does all there is
};

// A problem that was checked and accepted, with what its encoding does. A value: it holds the
// allocations of its operands and no object of the vendor, so it stays good after reset() and may
// be used from any thread.
struct GemmPlan {
  GemmProblem problem;
  std::string_view vendor;              // "openblas", "cublaslt", "mps", "plain"
  std::vector<Conversion> conversions;  // extra launches, in this order, before the product
  VendorCall call;
  std::uint32_t vendor_calls = 0;     // 1, or `batch` where the vendor has no batches
  std::uint64_t workspace_bytes = 0;  // what EncodeContext::workspace must offer
  std::string reason;                 // one line for explain
  // Launches in all: what the cost model multiplies its launch time by.
  [[nodiscard]] std::uint32_t launches() const {
    return vendor_calls + static_cast<std::uint32_t>(conversions.size()) +
           (call.has_own_epilogue ? 1u : 0u);
  }
};

// Where the commands of one submission go. A backend derives its own (a stream; a command buffer;
// nothing on a CPU). One thread at a time encodes into a context.
class EncodeContext {
 public:
  virtual ~EncodeContext() = default;

  // Device memory of this context that no other command in flight uses, at least `bytes` long,
  // aligned to 256. One per stream, sized when the executable is loaded from the plans'
  // workspace_bytes, so that this allocates nothing. Errors: kOutOfMemory with need and have.
  virtual Result<AllocationRef> workspace(std::uint64_t bytes) = 0;

  // Keeps `object` alive until the commands that were encoded so far have completed, which is
  // known from the command buffer or an event and never from "encode returned".
  virtual void retain(std::shared_ptr<const void> object) = 0;

  // Called before every vendor call: an encoder of ours that is open is ended here.
  virtual Result<void> before_vendor_call() = 0;
};

// A vendor's matrix product for one executable: it owns the cached vendor objects and dies with the
// executable. plan, encode and reset may be called from any thread, and they overlap freely.
class VendorGemm {
 public:
  // Waits for encodes that run on other threads, unless the calling thread is inside an encode or a
  // completion handler itself; what such encodes hold then dies with the last of them.
  virtual ~VendorGemm() = default;
  [[nodiscard]] virtual std::string_view name() const = 0;

  // Checks, eligibility, and the objects that an encode will need. Errors: those of check_problem;
  // kUnsupported with the predicate's reason when the vendor cannot run it; kDevice when an object
  // cannot be made, after which nothing is cached and a later call may work.
  [[nodiscard]] virtual Result<GemmPlan> plan(const GemmProblem& problem) = 0;

  // Appends the plan's commands. Objects that the caches have dropped since are made again. On the
  // GPU nothing is read or written before the submission runs; a CPU computes at once. Errors:
  // kDevice, naming op and call; commands of an encode that failed must not be submitted.
  [[nodiscard]] virtual Result<void> encode(const GemmPlan& plan, EncodeContext& context) = 0;

  // Drops every cached object of this executable. Old entries are not handed out from here on, and
  // it returns when no encode holds one any more. Frees memory; no result depends on it.
  virtual void reset() = 0;
};

}  // namespace tern::backend
