// Eligibility for a vendor's matrix product: one pure function over the vendor's row of limits.
#include "backend/vendor_gemm_limits.h"

#include <fmt/format.h>

#include <array>
#include <utility>

namespace tern::backend {

const Operand& operand(const GemmProblem& problem, OperandName name) {
  switch (name) {
    case OperandName::kA:
      return problem.a;
    case OperandName::kB:
      return problem.b;
    case OperandName::kC:
      return problem.c;
    default:
      return problem.d;
  }
}

namespace {

bool has_triple(const VendorLimits& limits, Dtype a, Dtype b, Dtype d) {
  for (const DtypeTriple& row : limits.triples) {
    if (row.a == a && row.b == b && row.d == d) return true;
  }
  return false;
}

std::string name_triples(const VendorLimits& limits) {
  std::string text;
  for (const DtypeTriple& row : limits.triples) {
    text += fmt::format("{}{} x {} -> {}", text.empty() ? "" : ", ", to_string(row.a),
                        to_string(row.b), to_string(row.d));
  }
  return text;
}

// The vendor's share of what follows the sum, when it writes D itself.
void share_epilogue(const GemmProblem& problem, const VendorLimits& limits, VendorCall& call) {
  const bool reads_c = problem.beta != 0.0f;
  call.has_vendor_c =
      reads_c && (limits.has_separate_c || is_same_place(problem.c, problem.d, problem.batch));
  bool has_bias = true;
  if (problem.epilogue.bias) {
    const Bias& bias = *problem.epilogue.bias;
    const bool is_result_type = bias.dtype == problem.d.dtype;
    has_bias = ((bias.dtype == Dtype::kF32 && limits.has_bias_f32) ||
                (is_result_type && limits.has_bias_result)) &&
               bias.offset < limits.unproven_bytes;
  }
  const auto bit = std::uint32_t{1} << static_cast<unsigned>(problem.epilogue.activation);
  const bool has_activation = (limits.activations & bit) != 0;
  call.has_own_epilogue = (reads_c && !call.has_vendor_c) || !has_bias || !has_activation;
  call.has_vendor_bias = problem.epilogue.bias && !call.has_own_epilogue;
  call.has_vendor_activation = !call.has_own_epilogue;
}

// The vendor writes f32 sums to the workspace, and our kernel does everything that follows with one
// rounding.
void stage_result(VendorCall& call) {
  call.has_staged_result = true;
  call.has_own_epilogue = true;
  call.has_vendor_c = call.has_vendor_bias = call.has_vendor_activation = false;
}

// Picks the dtypes of the call: as they are, else converted; D as it is, else staged in f32.
bool choose_dtypes(const GemmProblem& problem, const VendorLimits& limits, VendorCall& call) {
  const Dtype a = problem.a.dtype;
  const Dtype b = problem.b.dtype;
  const Dtype d = problem.d.dtype;
  std::array<std::pair<Dtype, Dtype>, 3> pairs{std::pair{a, b}, std::pair{a, b}, std::pair{a, b}};
  if (limits.conversion == ConversionRule::kNarrow && a != b) {
    if (a == Dtype::kF32) pairs[1] = {b, b};
    if (b == Dtype::kF32) pairs[1] = {a, a};
  }
  if (limits.conversion != ConversionRule::kNone) pairs[2] = {Dtype::kF32, Dtype::kF32};
  for (const auto& [to_a, to_b] : pairs) {
    const bool needs_f32 = call.has_own_epilogue && d != Dtype::kF32;
    const bool has_direct = !needs_f32 && has_triple(limits, to_a, to_b, d);
    if (!has_direct && !has_triple(limits, to_a, to_b, Dtype::kF32)) continue;
    call.dtypes = {to_a, to_b, has_direct ? d : Dtype::kF32};
    call.converts_a = to_a != a;
    call.converts_b = to_b != b;
    if (!has_direct) stage_result(call);
    return true;
  }
  return false;
}

// The operands as the vendor call itself reads or writes them, in place.
std::vector<OperandName> vendor_operands(const VendorCall& call) {
  std::vector<OperandName> names;
  if (!call.has_product) return names;
  if (!call.converts_a) names.push_back(OperandName::kA);
  if (!call.converts_b) names.push_back(OperandName::kB);
  if (call.has_vendor_c) names.push_back(OperandName::kC);
  if (!call.has_staged_result) names.push_back(OperandName::kD);
  return names;
}

bool needs_loop(const GemmProblem& problem, const VendorLimits& limits, const VendorCall& call) {
  if (problem.batch == 1) return false;
  if (!limits.has_batches || problem.batch > limits.max_batch) return true;
  for (const OperandName name : {OperandName::kA, OperandName::kB, OperandName::kC}) {
    if (name == OperandName::kC && !call.has_vendor_c) continue;
    if (operand(problem, name).batch_stride == 0 && !limits.has_broadcast_batches) return true;
  }
  if (limits.has_interleaved_batches) return false;
  for (const OperandName name : vendor_operands(call)) {
    const Operand& o = operand(problem, name);
    if (o.batch_stride != 0 && o.batch_stride < (o.rows - 1) * o.row_stride + o.cols) return true;
  }
  return false;
}

Verdict check_layout(const GemmProblem& problem, const VendorLimits& limits, const VendorCall& call,
                     OperandName name) {
  const Operand& o = operand(problem, name);
  const std::uint64_t element = size_of(o.dtype);
  if (o.row_stride > limits.max_dimension) {
    return {fmt::format("{}: row stride {} is above {}'s {} elements", to_string(name),
                        o.row_stride, limits.name, limits.max_dimension)};
  }
  if (o.offset % limits.offset_alignment != 0) {
    return {fmt::format("{}: byte offset {} is no multiple of {}'s {}", to_string(name), o.offset,
                        limits.name, limits.offset_alignment)};
  }
  // The row stride fits 64 bits in bytes: it is at most max_dimension elements.
  if (o.row_stride * element % limits.row_alignment != 0) {
    return {fmt::format("{}: row stride {} of {} is {} bytes, no multiple of {}'s {}",
                        to_string(name), o.row_stride, to_string(o.dtype), o.row_stride * element,
                        limits.name, limits.row_alignment)};
  }
  if (problem.batch == 1) return {};
  if (!call.is_loop && o.batch_stride > limits.max_batch_stride) {
    return {fmt::format("{}: batch stride {} is above {}'s {} elements", to_string(name),
                        o.batch_stride, limits.name, limits.max_batch_stride)};
  }
  const std::uint64_t alignment = call.is_loop ? limits.offset_alignment : limits.batch_alignment;
  if (o.batch_stride * element % alignment != 0) {
    return {fmt::format("{}: batch stride {} of {} is no multiple of {}'s {} bytes",
                        to_string(name), o.batch_stride, to_string(o.dtype), limits.name,
                        alignment)};
  }
  return {};
}

bool is_beyond(const GemmProblem& problem, const VendorLimits& limits, OperandName name) {
  const Operand& o = operand(problem, name);
  const Result<std::uint64_t> bytes = span_bytes(problem, o, name);
  return !bytes.ok() || o.offset + *bytes > limits.unproven_bytes;
}

Verdict check_sizes(const GemmProblem& problem, const VendorLimits& limits) {
  const std::array sizes = {std::pair{"m", problem.m()}, std::pair{"n", problem.n()},
                            std::pair{"k", problem.k()}};
  for (const auto& [letter, size] : sizes) {
    if (size > limits.max_dimension) {
      return {
          fmt::format("{} = {} is above {}'s {}", letter, size, limits.name, limits.max_dimension)};
    }
  }
  return {};
}

VendorCall shape_call(const GemmProblem& problem, const VendorLimits& limits, bool& has_dtypes) {
  VendorCall call;
  has_dtypes = true;
  call.has_product = problem.has_product();
  if (!call.has_product) {
    call.dtypes = {problem.a.dtype, problem.b.dtype, problem.d.dtype};
    call.has_own_epilogue = true;
    return call;
  }
  share_epilogue(problem, limits, call);
  has_dtypes = choose_dtypes(problem, limits, call);
  call.is_loop = needs_loop(problem, limits, call);
  return call;
}

}  // namespace

std::vector<OperandName> unproven_operands(const GemmProblem& problem, const VendorLimits& limits) {
  std::vector<OperandName> names;
  if (problem.is_empty()) return names;
  bool has_dtypes = false;
  const VendorCall call = shape_call(problem, limits, has_dtypes);
  for (const OperandName name : vendor_operands(call)) {
    if (is_beyond(problem, limits, name)) names.push_back(name);
  }
  return names;
}

Eligibility eligibility(const GemmProblem& problem, const VendorLimits& limits,
                        const OffsetProven& is_proven) {
  if (problem.contract == Contract::kExact) {
    return {{fmt::format("the program is exact and {} promises no order of sums", limits.name)},
            {}};
  }
  if (problem.is_empty()) return {};
  bool has_dtypes = false;
  const VendorCall call = shape_call(problem, limits, has_dtypes);
  if (!call.has_product) return {{}, call};
  if (!has_dtypes) {
    return {{fmt::format("{} x {} -> {} is none of {}'s: {}", to_string(problem.a.dtype),
                         to_string(problem.b.dtype), to_string(problem.d.dtype), limits.name,
                         name_triples(limits))},
            call};
  }
  if (Verdict verdict = check_sizes(problem, limits); !verdict) return {std::move(verdict), call};
  for (const OperandName name : vendor_operands(call)) {
    if (Verdict verdict = check_layout(problem, limits, call, name); !verdict)
      return {std::move(verdict), call};
  }
  for (const OperandName name : unproven_operands(problem, limits)) {
    const Operand& o = operand(problem, name);
    if (is_proven && is_proven(o, name)) continue;
    return {{fmt::format("{}: byte offset {} reaches beyond byte {}, up to which {} is trusted, "
                         "and no known-answer probe at that offset has passed",
                         to_string(name), o.offset, limits.unproven_bytes, limits.name)},
            call};
  }
  return {{}, call};
}

}  // namespace tern::backend
