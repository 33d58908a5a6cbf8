#include "backend/cpu/cpu_plan.h"

#include <algorithm>

#include "backend/cpu/cache_lines.h"
#include "backend/cpu/run_context.h"
#include "backend/cpu/steps.h"
#include "backend/cpu/vendor_products.h"
#include "base/checked.h"

namespace tern::cpu {
namespace {

using program::Element;
using program::ValueId;

// Which forms the readers of each quantised value want.
void find_quant_forms(CpuPlan& plan) {
  const program::Program& p = plan.program;
  plan.quant_forms.assign(p.values.size(), {});
  std::vector<ActivationNeeds> needed(p.values.size());
  for (const program::Op& op : p.ops) {
    const auto* linear = std::get_if<program::Linear>(&op.kind);
    if (!linear || p.at(linear->x).element != Element::kQuant) continue;
    const program::WeightType& w = p.at(linear->weight).weight;
    QuantForms& forms = plan.quant_forms[linear->x];
    if (quant::is_packed(w.format)) {
      forms.has_packed = true;
      ActivationNeeds& n = needed[linear->x];
      // A 2-bit format may turn out to use code 3: room for both kinds of tables.
      n = n | needs(packed_layout(w.format, w.rows, w.inputs, false, plan.tiling)) |
          needs(packed_layout(w.format, w.rows, w.inputs, true, plan.tiling));
    } else {
      forms.has_block = true;
    }
  }
  for (ValueId v = 0; v < p.values.size(); ++v) {
    if (p.at(v).element != Element::kQuant) continue;
    QuantForms& forms = plan.quant_forms[v];
    const program::QuantRowsType& type = p.at(v).quant;
    const auto rows = static_cast<std::uint64_t>(plan.rows_of(type.axis));
    if (forms.has_packed)
      forms.packed_row_bytes = static_cast<std::uint64_t>(
          activation_layout(type.width, plan.tiling, needed[v]).record_bytes);
    if (forms.has_block) forms.block_row_bytes = block_activation_row_bytes(type.width);
    forms.block_offset = whole_lines(forms.packed_row_bytes * rows);
  }
}

// Floats from one row to the next: whole cache lines.
std::int64_t row_stride_of(const program::RowsType& type) { return round_up(type.width, 16); }

std::uint64_t bytes_of(const CpuPlan& plan, ValueId v) {
  const program::Value& value = plan.program.at(v);
  if (value.element == Element::kF32)
    return static_cast<std::uint64_t>(row_stride_of(value.rows) * plan.rows_of(value.rows.axis)) *
           4;
  if (value.element == Element::kQuant) {
    const QuantForms& forms = plan.quant_forms[v];
    return forms.block_offset +
           forms.block_row_bytes * static_cast<std::uint64_t>(plan.rows_of(value.quant.axis));
  }
  return 0;
}

void place_values(CpuPlan& plan) {
  const program::Program& p = plan.program;
  plan.views = program::resolve_views(p);
  const program::ArenaPlan arena = program::place(
      p, [&plan](ValueId v) { return bytes_of(plan, v); }, kCacheLine);
  plan.placements.assign(p.values.size(), {});
  for (ValueId v = 0; v < p.values.size(); ++v) {
    if (p.at(v).kind != program::ValueKind::kActivation) continue;
    const program::ViewOf view = plan.views[v];
    backend::Placement& place = plan.placements[v];
    if (p.at(v).element == Element::kF32) {
      place.row_stride = row_stride_of(p.at(view.root).rows);
      place.offset = arena.offsets[view.root] + static_cast<std::uint64_t>(view.column) * 4;
      place.bytes = view.root == v ? bytes_of(plan, v) : 0;
    } else if (p.at(v).element == Element::kQuant) {
      place.offset = arena.offsets[v];
      place.bytes = bytes_of(plan, v);
    }
  }
  plan.arena_bytes = arena.bytes;
  for (const program::RopeTable& table : p.rope_tables) {
    plan.rope_offsets.push_back(plan.arena_bytes);
    plan.arena_bytes +=
        whole_lines(static_cast<std::uint64_t>(p.bucket.rows) * 2 * 4 * table.frequency.size());
  }
  for (const program::Output& output : p.outputs)
    plan.output_bytes += bytes_of(plan, plan.views[output.value].root);
}

// Most rows that the vendor's product runs; 0: it runs none.
std::int64_t vendor_rows(const CpuPlan& plan, std::size_t op, program::RowAxis axis) {
  std::int64_t rows = 0;
  for (const ProductKernel& kernel : plan.products[op])
    if (kernel.variant.is_vendor) rows = kernel.most_rows;
  return std::min(rows, plan.rows_of(axis));
}

ProductShape shape_of_linear(const program::Program& p, const program::Linear& op) {
  const program::WeightType& w = p.at(op.weight).weight;
  return {w.format, w.rows, w.inputs, p.at(op.x).element == Element::kF32};
}

// By the products that were chosen, so that what needs no workspace has none.
Result<void> plan_vendor_workspace(CpuPlan& plan) {
  struct Known {
    ProductShape shape;
    std::int64_t rows;
    bool has_bias, has_residual;
    bool operator==(const Known&) const = default;
  };
  std::vector<Known> known;
  const program::Program& p = plan.program;
  for (std::size_t i = 0; i < p.ops.size(); ++i) {
    const auto* linear = std::get_if<program::Linear>(&p.ops[i].kind);
    if (!linear) continue;
    const std::int64_t rows = vendor_rows(plan, i, p.at(p.ops[i].result).rows.axis);
    if (rows == 0) continue;
    const Known next{shape_of_linear(p, *linear), rows, linear->bias != program::kNoValue,
                     linear->residual != program::kNoValue};
    if (std::find(known.begin(), known.end(), next) != known.end()) continue;
    known.push_back(next);
    TERN_ASSIGN(const std::uint64_t bytes,
                vendor_workspace(next.shape, rows, next.has_bias, next.has_residual,
                                 std::max(plan.profile.cores, 1)));
    plan.vendor_bytes = std::max(plan.vendor_bytes, bytes);
  }
  return {};
}

Result<void> plan_scratch(CpuPlan& plan) {
  if (plan.has_packed()) plan.worker_scratch_bytes = kPackedScratchBytes;
  const auto context =
      static_cast<std::int64_t>(plan.limits.pages_per_sequence) * program::kPagePositions;
  const int splits = attention_splits(context);
  for (const program::Op& op : plan.program.ops) {
    const auto* attention = std::get_if<program::Attention>(&op.kind);
    if (!attention) continue;
    const program::StateDecl& kv = plan.program.states[plan.program.at(attention->state).index];
    const auto head_dim = static_cast<int>(kv.head_dim);
    plan.worker_scratch_bytes =
        std::max<std::uint64_t>(plan.worker_scratch_bytes, attention_scratch_bytes(head_dim));
    plan.attention_partial_floats = std::max<std::uint64_t>(
        plan.attention_partial_floats,
        attention_partial_floats(attention_decode_rows(plan.program.bucket.rows, splits),
                                 static_cast<int>(attention->heads), head_dim, splits));
  }
  plan.worker_scratch_bytes = whole_lines(plan.worker_scratch_bytes);
  plan.partials_offset =
      plan.worker_scratch_bytes * static_cast<std::uint64_t>(std::max(plan.profile.cores, 1));
  TERN_TRY(plan_vendor_workspace(plan));
  plan.vendor_offset = plan.partials_offset + whole_lines(plan.attention_partial_floats * 4);
  plan.scratch_bytes = plan.vendor_offset + whole_lines(plan.vendor_bytes);
  return {};
}

// Chooses for every product, once per shape.
class ProductChooser {
 public:
  ProductChooser(CpuPlan& plan, const backend::PlanOptions& options,
                 const backend::ChoiceContext& context)
      : plan_(plan), context_(context) {
    rules_.have = plan.profile.cpu;
    rules_.vendor = plan.profile.vendor;
    rules_.tiling = plan.tiling;
    rules_.writes_tables = plan.kernels.packed.variant->needs != CpuFeatures{};
    rules_.is_exact = options.exact;
  }

  Result<void> choose_all() {
    const program::Program& p = plan_.program;
    plan_.products.resize(p.ops.size());
    for (std::size_t i = 0; i < p.ops.size(); ++i) {
      const auto* linear = std::get_if<program::Linear>(&p.ops[i].kind);
      if (!linear) continue;
      TERN_TRY(
          choose(i, {shape_of_linear(p, *linear), plan_.rows_of(p.at(p.ops[i].result).rows.axis)}));
    }
    return {};
  }

 private:
  struct Known {
    ProductShape shape;
    std::int64_t rows = 0;
    bool operator==(const Known&) const = default;
  };

  Result<void> choose(std::size_t op, const Known& wanted) {
    const auto same = std::find(known_.begin(), known_.end(), wanted);
    if (same != known_.end()) {
      plan_.products[op] = plan_.products[ops_[static_cast<std::size_t>(same - known_.begin())]];
      return {};
    }
    TERN_ASSIGN(plan_.products[op],
                choose_product(wanted.shape, wanted.rows, rules_, context_, plan_.warnings));
    known_.push_back(wanted);
    ops_.push_back(op);
    for (std::int64_t rows = 1; rows <= backend::rows_bucket_of(wanted.rows); rows *= 2)
      plan_.problems.push_back(problem_of(wanted.shape, rows, rules_.tiling));
    return {};
  }

  CpuPlan& plan_;
  const backend::ChoiceContext& context_;
  ProductRules rules_;
  std::vector<Known> known_;
  std::vector<std::size_t> ops_;  // the first op of each
};

struct KernelText {
  std::string kernel;
  std::string reason;
};

template <class Variant>
KernelText text_of(std::string_view op, const Chosen<Variant>& chosen) {
  return {fmt::format("{}:{}", op, chosen.name()), chosen.reason};
}

// What a step says for each number of rows.
void describe_product(const CpuPlan& plan, std::size_t index, const program::Linear& op,
                      backend::PlanStep& step) {
  const quant::Format format = plan.program.at(op.weight).weight.format;
  const bool is_float = plan.program.at(op.x).element == Element::kF32;
  for (const ProductKernel& k : plan.products[index]) {
    backend::KernelForRows text{k.most_rows,
                                fmt::format("{}:{}", product_op(format), k.variant.name), k.reason};
    // What --exact asks for (make_cpu_plan says why).
    if (quant::is_packed(format) && !is_float) text.reason += "; exact at every number of rows";
    if (quant::info(format).kind != quant::FormatClass::kDense)
      text.kernel += is_float ? " f32" : " i12";
    step.by_rows.push_back(std::move(text));
  }
  step.kernel = step.by_rows.front().kernel;
  step.reason = step.by_rows.front().reason;
}

KernelText describe(const CpuPlan& plan, const program::Op& op) {
  const KernelSet& k = plan.kernels;
  if (std::holds_alternative<program::RmsNorm>(op.kind)) return text_of("rms_norm", k.rms_norm);
  if (std::holds_alternative<program::Rope>(op.kind)) return text_of("rope", k.rope);
  if (std::holds_alternative<program::KvStore>(op.kind)) return text_of("kv_store", k.kv_store);
  if (std::holds_alternative<program::Attention>(op.kind)) return text_of("attention", k.attention);
  if (std::holds_alternative<program::Swiglu>(op.kind)) return text_of("swiglu", k.swiglu);
  if (std::holds_alternative<program::Add>(op.kind)) return text_of("elementwise", k.elementwise);
  if (std::holds_alternative<program::Quantize>(op.kind)) {
    const QuantForms& forms = plan.quant_forms[op.result];
    KernelText text =
        forms.has_packed ? text_of("packed_product", k.packed) : text_of("block_product", k.block);
    text.reason = "written in the form that the products read";
    return text;
  }
  if (std::holds_alternative<program::Slice>(op.kind)) return {"view", "nothing moves"};
  return {"copy", "the only variant"};
}

// Kernels keep a head in buffers of a fixed size.
Result<void> check_heads(const program::Program& p) {
  for (const program::Op& op : p.ops) {
    const auto* attention = std::get_if<program::Attention>(&op.kind);
    if (!attention) continue;
    const program::StateDecl& kv = p.states[p.at(attention->state).index];
    if (kv.head_dim > kAttentionMaxHeadDim)
      return fail(ErrorCode::kUnsupported,
                  "attention with {} heads of {} values over {} key heads is not supported: this "
                  "build has kernels for heads of at most {}",
                  attention->heads, kv.head_dim, kv.kv_heads, kAttentionMaxHeadDim);
  }
  return {};
}

}  // namespace

std::vector<std::string> slow_paths(const backend::DeviceProfile& profile) {
  constexpr CpuFeatures kFast{CpuFeature::kAvx2, CpuFeature::kFma, CpuFeature::kF16c};
  if (profile.architecture != "x86-64" || profile.cpu.contains(kFast)) return {};
  return {fmt::format("{} not used or not there: portable kernels run, many times slower",
                      to_string(kFast.without(profile.cpu)))};
}

Result<std::shared_ptr<const backend::Plan>> make_cpu_plan(const program::Program& program,
                                                           const backend::DeviceProfile& profile,
                                                           const backend::PlanOptions& options) {
  TERN_TRY(check_heads(program));
  auto plan = std::make_shared<CpuPlan>();
  plan->program = program;
  plan->limits = options.limits;
  plan->profile = profile;
  TERN_ASSIGN(const std::vector<backend::Pin> pins, backend::parse_pins(options.pins));
  TERN_TRY(backend::check_pins(pins, pinnable_kernels()));
  const backend::MeasuredTable* table = profile.measured.get();
  const backend::ChoiceContext context{table ? table->rates() : rates_of(profile), table, pins};
  TERN_ASSIGN(plan->kernels, choose_kernels(profile.cpu, context, plan->warnings));
  plan->tiling = packed_tiling(profile.cpu, options.pins);
  TERN_TRY(ProductChooser(*plan, options, context).choose_all());
  find_quant_forms(*plan);
  place_values(*plan);
  TERN_TRY(plan_scratch(*plan));
  for (std::string& line : slow_paths(profile)) plan->warnings.push_back(std::move(line));
  for (std::size_t i = 0; i < program.ops.size(); ++i) {
    backend::PlanStep step;
    step.first_op = static_cast<std::uint32_t>(i);
    if (const auto* linear = std::get_if<program::Linear>(&program.ops[i].kind)) {
      describe_product(*plan, i, *linear, step);
    } else {
      KernelText text = describe(*plan, program.ops[i]);
      step.kernel = std::move(text.kernel);
      step.reason = std::move(text.reason);
    }
    plan->steps.push_back(std::move(step));
  }
  return std::shared_ptr<const backend::Plan>(std::move(plan));
}

}  // namespace tern::cpu
