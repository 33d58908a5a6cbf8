#include "backend/cuda/plan/cuda_plan.h"

#include "backend/choice/choose.h"
#include "base/checked.h"

namespace tern::cuda {
namespace {

using program::Element;
using program::ValueId;

constexpr std::uint64_t kAlignment = 256;

// Floats from one row to the next: whole 128-byte lines.
std::int64_t row_stride_of(const program::RowsType& type) { return round_up(type.width, 32); }

std::uint64_t bytes_of(const CudaPlan& plan, ValueId v) {
  const program::Value& value = plan.program.at(v);
  if (value.element == Element::kF32)
    return static_cast<std::uint64_t>(row_stride_of(value.rows) * plan.rows_of(value.rows.axis)) *
           4;
  if (value.element == Element::kQuant)
    return record_layout(value.quant.width).record_bytes *
           static_cast<std::uint64_t>(plan.rows_of(value.quant.axis));
  return 0;
}

void place_values(CudaPlan& plan) {
  const program::Program& p = plan.program;
  plan.views = program::resolve_views(p);
  const program::ArenaPlan arena = program::place(
      p, [&plan](ValueId v) { return bytes_of(plan, v); }, kAlignment);
  plan.placements.assign(p.values.size(), {});
  for (ValueId v = 0; v < p.values.size(); ++v) {
    if (p.at(v).kind != program::ValueKind::kActivation) continue;
    const program::ViewOf view = plan.views[v];
    backend::Placement& place = plan.placements[v];
    place.offset = arena.offsets[view.root] + static_cast<std::uint64_t>(view.column) * 4;
    place.bytes = view.root == v ? bytes_of(plan, v) : 0;
    place.row_stride =
        p.at(v).element == Element::kF32
            ? row_stride_of(p.at(view.root).rows)
            : static_cast<std::int64_t>(record_layout(p.at(v).quant.width).record_bytes);
  }
  plan.status_offset = arena.bytes;
  plan.arena_bytes = arena.bytes + kAlignment;
  plan.block = program::batch_layout(plan.limits);
  for (const program::Output& output : p.outputs)
    plan.output_bytes += bytes_of(plan, plan.views[output.value].root);
}

// Which kernels answer to an op, as the names that a pin uses, fastest first; none: why.
struct Answer {
  std::string_view op;
  std::vector<std::string_view> variants;
  int oldest = 0;      // architecture
  std::string reason;  // why there is none
};

Answer none(std::string reason) { return {{}, {}, 0, std::move(reason)}; }

Answer answer_to_linear(const program::Program& p, const program::Linear& linear) {
  const program::WeightType& w = p.at(linear.weight).weight;
  if (p.at(linear.x).element != Element::kQuant)
    return none("products of float rows have no kernel");
  if (w.format != quant::Format::kQ1G128)
    return none("only weights of format q1_g128 have a kernel");
  Answer answer{"gemv_q1_g128", {}, 80, {}};
  const KernelId first = gemv_variant(w.inputs);
  answer.variants.push_back(info(first).variant);
  for (const KernelInfo& kernel : kKernels)
    if (kernel.name == answer.op && kernel.id != first) answer.variants.push_back(kernel.variant);
  return answer;
}

Answer answer_to(const program::Program& p, const program::Op& op) {
  if (const auto* embed = std::get_if<program::Embed>(&op.kind)) {
    if (p.at(embed->table).weight.format == quant::Format::kQ1G128)
      return {"embed", {"q1_g128"}, 75, {}};
    return none("only tables of format q1_g128 have a kernel");
  }
  if (std::holds_alternative<program::RmsNorm>(op.kind)) return {"rms_norm", {"block"}, 75, {}};
  if (std::holds_alternative<program::GatherRows>(op.kind))
    return {"gather_rows", {"copy"}, 75, {}};
  if (std::holds_alternative<program::Slice>(op.kind)) return {"view", {}, 0, {}};
  if (const auto* quantize = std::get_if<program::Quantize>(&op.kind)) {
    if (quantize->bits == 12 && quantize->group == 128) return {"quantize", {"planes"}, 75, {}};
    return none("only 12 bits per 128 inputs have a kernel");
  }
  if (const auto* linear = std::get_if<program::Linear>(&op.kind))
    return answer_to_linear(p, *linear);
  return none("it has no kernel");
}

std::string place_text(const program::Program& p, const program::Op& op) {
  const program::Region& region = p.regions[op.region];
  return region.index >= 0 ? fmt::format("{} {}", region.name, region.index) : region.name;
}

Error refuse(const program::Program& p, std::size_t index, const std::string& why) {
  const program::Op& op = p.ops[index];
  std::string shapes;
  program::for_each_operand(op, [&](ValueId v, program::Access) {
    shapes += fmt::format("{}{}", shapes.empty() ? "" : ", ", program::shape_text(p, v));
  });
  return fail(ErrorCode::kUnsupported,
              "[cuda] op {} ({} in {}) of {}{} cannot run: {}; run it with --device cpu", index,
              program::name_of(op), place_text(p, op), shapes,
              op.result == program::kNoValue
                  ? std::string()
                  : fmt::format(" -> {}", program::shape_text(p, op.result)),
              why);
}

}  // namespace

int architecture_number(std::string_view architecture) {
  if (!architecture.starts_with("sm_")) return 0;
  int number = 0;
  for (const char c : architecture.substr(3)) {
    if (c < '0' || c > '9' || number > 999) break;
    number = number * 10 + (c - '0');
  }
  return number;
}

Result<std::shared_ptr<const backend::Plan>> make_cuda_plan(const program::Program& program,
                                                            const backend::DeviceProfile& profile,
                                                            const backend::PlanOptions& options) {
  auto plan = std::make_shared<CudaPlan>();
  plan->program = program;
  plan->limits = options.limits;
  plan->profile = profile;
  TERN_ASSIGN(const std::vector<backend::Pin> pins, backend::parse_pins(options.pins));
  TERN_TRY(backend::check_pins(pins, backend::pinnables_of(kKernels)));
  const int architecture = architecture_number(profile.architecture);
  plan->variants.assign(program.ops.size(), KernelId::kGemvQ1G128);
  for (std::size_t i = 0; i < program.ops.size(); ++i) {
    const Answer answer = answer_to(program, program.ops[i]);
    if (!answer.reason.empty()) return refuse(program, i, answer.reason);
    if (answer.op == "view") {
      plan->steps.push_back({static_cast<std::uint32_t>(i), 1, "view", "nothing moves"});
      continue;
    }
    std::vector<backend::Candidate> candidates;
    for (const std::string_view variant : answer.variants)
      candidates.push_back({variant, architecture < answer.oldest
                                         ? fmt::format("needs sm_{} (this is {})", answer.oldest,
                                                       profile.architecture)
                                         : std::string()});
    Result<backend::Choice> choice = backend::choose(answer.op, candidates, pins, plan->warnings);
    if (!choice.ok() && choice.error().code() == ErrorCode::kUnsupported)
      return refuse(program, i, choice.error().message());
    TERN_TRY(choice);
    const std::string_view variant = answer.variants[choice->index];
    for (const KernelInfo& kernel : kKernels)
      if (kernel.name == answer.op && kernel.variant == variant) plan->variants[i] = kernel.id;
    plan->steps.push_back({static_cast<std::uint32_t>(i), 1,
                           fmt::format("{}:{}", answer.op, variant), choice->reason});
  }
  place_values(*plan);
  return std::shared_ptr<const backend::Plan>(std::move(plan));
}

}  // namespace tern::cuda
