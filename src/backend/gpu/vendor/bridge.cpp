// Plans, encodes and invalidations of one executable's vendor products.
#include "backend/gpu/vendor/bridge.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "backend/gpu/vendor/encode_gate.h"
#include "backend/gpu/vendor/lowering.h"
#include "backend/gpu/vendor/object_cache.h"
#include "backend/gpu/vendor/vendor_call.h"
#include "base/error.h"

namespace tern::gpu {

namespace {

using backend::Conversion;
using backend::EncodeContext;
using backend::GemmPlan;
using backend::GemmProblem;
using backend::Operand;
using backend::OperandName;

// Offsets at which a known-answer product was tried.
struct ProbeKey {
  std::uint64_t device = 0;
  std::uint64_t offset = 0;
  Dtype dtype = Dtype::kF32;
  friend bool operator==(const ProbeKey&, const ProbeKey&) = default;
};
std::uint64_t hash_of(const ProbeKey& key) { return key.offset * 0x9e3779b97f4a7c15u; }

struct ProbeResult {
  bool has_passed = false;
};

// All that the bridge holds. Shared with the encodes that run, so that a drop which must not wait
// leaves them what they stand on.
class State {
 public:
  State(std::shared_ptr<VendorApi> api, std::shared_ptr<ActiveThreads> threads,
        const BridgeBounds& bounds)
      : api_(std::move(api)),
        threads_(std::move(threads)),
        plans_(bounds.plans, bounds.hash_mask),
        kernels_(bounds.kernels, bounds.hash_mask),
        views_(bounds.views, bounds.hash_mask),
        descriptors_(bounds.descriptors, bounds.hash_mask),
        probes_(bounds.probes, bounds.hash_mask) {}

  Result<GemmPlan> plan(const GemmProblem& problem);
  Result<void> encode(const GemmPlan& plan, EncodeContext& context);
  void invalidate_all();
  void invalidate(AllocationId id);
  [[nodiscard]] BridgeCounts counts() const;
  [[nodiscard]] std::string_view name() const { return api_->limits().name; }

 private:
  using PlanRef = ObjectCache<PlanKey, VendorPlan>::Ref;
  using Kernels = ObjectPool<KernelKey, VendorKernel>;

  Result<void> check_devices(const GemmProblem& problem) const;
  Result<std::vector<OperandName>> proven_operands(const GemmProblem& problem,
                                                   std::uint64_t generation);
  Result<PlanRef> plan_object(std::string_view op, const PlanKey& key, std::uint64_t generation);
  Result<Kernels::Lease> kernel_object(std::string_view op, const KernelKey& key);
  Result<MatrixRef> matrix(std::string_view op, const Operand& operand, std::uint32_t batch,
                           bool is_cached, std::uint64_t generation, EncodeContext& context);
  Result<void> encode_conversions(const GemmPlan& plan, const Lowered& lowered,
                                  EncodeContext& context);
  Result<void> encode_product(const GemmPlan& plan, const Lowered& lowered, ProductCall& call,
                              std::uint64_t generation, EncodeContext& context);
  Result<void> encode_one(const GemmPlan& plan, const Lowered& lowered, std::uint32_t index,
                          ProductCall& call, std::uint64_t generation, EncodeContext& context);
  Result<void> encode_epilogue(const GemmPlan& plan, const Lowered& lowered,
                               EncodeContext& context);
  void wait_for_older(std::uint64_t generation);

  const std::shared_ptr<VendorApi> api_;
  const std::shared_ptr<ActiveThreads> threads_;
  EncodeGate gate_;
  ObjectCache<PlanKey, VendorPlan> plans_;
  Kernels kernels_;
  ObjectCache<ViewKey, VendorView> views_;
  ObjectCache<DescriptorKey, VendorDescriptor> descriptors_;
  ObjectCache<ProbeKey, ProbeResult> probes_;
};

Result<void> State::check_devices(const GemmProblem& problem) const {
  const auto check = [&](const AllocationRef& memory, OperandName name) -> Result<void> {
    if (!memory || memory->device() == api_->device()) return {};
    return fail(ErrorCode::kInvalidArgument,
                "{}: {} lies on device {}, this executable runs on device {}", problem.op,
                to_string(name), memory->device(), api_->device());
  };
  TERN_TRY(check(problem.a.memory, OperandName::kA));
  TERN_TRY(check(problem.b.memory, OperandName::kB));
  TERN_TRY(check(problem.d.memory, OperandName::kD));
  if (problem.beta != 0.0f) TERN_TRY(check(problem.c.memory, OperandName::kC));
  if (problem.epilogue.bias) TERN_TRY(check(problem.epilogue.bias->memory, OperandName::kBias));
  return {};
}

// Tries every offset beyond the trusted bytes once. A probe that fails to run is not remembered.
Result<std::vector<OperandName>> State::proven_operands(const GemmProblem& problem,
                                                        std::uint64_t generation) {
  std::vector<OperandName> proven;
  for (const OperandName which : backend::unproven_operands(problem, api_->limits())) {
    const Operand& o = operand(problem, which);
    const auto make = [&]() -> Result<std::unique_ptr<ProbeResult>> {
      TERN_ASSIGN(const bool has_passed,
                  guarded<bool>(problem.op, name(), "probe an offset beyond 4 GiB",
                                [&] { return api_->probe(o); }));
      return std::make_unique<ProbeResult>(ProbeResult{has_passed});
    };
    TERN_ASSIGN(const auto probed,
                probes_.get(ProbeKey{api_->device(), o.offset, o.dtype}, generation, make));
    if (probed->has_passed) proven.push_back(which);
  }
  return proven;
}

Result<State::PlanRef> State::plan_object(std::string_view op, const PlanKey& key,
                                          std::uint64_t generation) {
  return plans_.get(key, generation, [&] {
    return made<VendorPlan>(op, name(), "make a plan", [&] { return api_->make_plan(key); });
  });
}

Result<State::Kernels::Lease> State::kernel_object(std::string_view op, const KernelKey& key) {
  return kernels_.take(key, [&] {
    return made<VendorKernel>(op, name(), "make a kernel object",
                              [&] { return api_->make_kernel(key); });
  });
}

Result<GemmPlan> State::plan(const GemmProblem& problem) {
  TERN_TRY(check_problem(problem));
  TERN_TRY(check_devices(problem));
  const ActiveThreads::Scope active(*threads_);
  const EncodeGate::Ticket ticket(gate_);
  TERN_ASSIGN(const std::vector<OperandName> proven, proven_operands(problem, ticket.generation()));
  const backend::Eligibility eligible =
      eligibility(problem, api_->limits(), [&](const Operand&, OperandName which) {
        return std::find(proven.begin(), proven.end(), which) != proven.end();
      });
  if (!eligible.verdict) {
    return fail(ErrorCode::kUnsupported, "{}: {} cannot run it: {} ({})", problem.op, name(),
                eligible.verdict.reason, describe(problem));
  }
  GemmPlan plan;
  plan.problem = problem;
  plan.vendor = name();
  plan.call = eligible.call;
  if (problem.is_empty()) {
    plan.reason = "nothing to do";
    return plan;
  }
  TERN_ASSIGN(const Lowered lowered, lower(problem, plan.call, api_->limits()));
  plan.workspace_bytes = lowered.bytes;
  const auto convert = [&](OperandName which, Dtype from, const Operand& to) {
    const std::uint64_t matrices = to.batch_stride == 0 ? 1 : problem.batch;
    plan.conversions.push_back({which, from, to.dtype, to.rows * to.cols * matrices});
  };
  if (plan.call.converts_a) convert(OperandName::kA, problem.a.dtype, lowered.a);
  if (plan.call.converts_b) convert(OperandName::kB, problem.b.dtype, lowered.b);
  if (plan.call.has_product) {
    plan.vendor_calls = plan.call.is_loop ? problem.batch : 1;
    if (api_->objects().has_plans) {
      TERN_ASSIGN(const PlanRef object,
                  plan_object(problem.op, plan_key(problem, plan.call, lowered, *api_),
                              ticket.generation()));
      plan.workspace_bytes += object->workspace_bytes;
    }
  }
  plan.reason = fmt::format("{} vendor call{}, {} conversion{}, {}", plan.vendor_calls,
                            plan.vendor_calls == 1 ? "" : "s (a loop over the batch)",
                            plan.conversions.size(), plan.conversions.size() == 1 ? "" : "s",
                            plan.call.has_own_epilogue ? "own epilogue" : "vendor's epilogue");
  return plan;
}

Result<MatrixRef> State::matrix(std::string_view op, const Operand& operand, std::uint32_t batch,
                                bool is_cached, std::uint64_t generation, EncodeContext& context) {
  MatrixRef result{.operand = operand, .descriptor = nullptr, .view = nullptr};
  const DescriptorKey shape = descriptor_key(operand, batch, api_->device());
  if (api_->objects().has_descriptors) {
    TERN_ASSIGN(result.descriptor, descriptors_.get(shape, generation, [&] {
      return made<VendorDescriptor>(op, name(), "make a descriptor",
                                    [&] { return api_->make_descriptor(shape); });
    }));
    context.retain(result.descriptor);
  }
  if (api_->objects().has_views) {
    const ViewKey key{operand.memory->id(), operand.offset, shape};
    const auto make = [&] {
      return made<VendorView>(op, name(), "make a view", [&] {
        return api_->make_view(key, operand.memory, result.descriptor.get());
      });
    };
    if (is_cached && !operand.is_transient) {
      TERN_ASSIGN(result.view, views_.get(key, generation, make));
    } else {
      TERN_ASSIGN(result.view, make());
    }
    context.retain(result.view);
  }
  return result;
}

Result<void> State::encode_conversions(const GemmPlan& plan, const Lowered& lowered,
                                       EncodeContext& context) {
  for (const Conversion& conversion : plan.conversions) {
    const bool is_a = conversion.operand == OperandName::kA;
    ConversionCall call{.op = plan.problem.op,
                        .from = is_a ? plan.problem.a : plan.problem.b,
                        .to = is_a ? lowered.a : lowered.b};
    call.batch = call.to.batch_stride == 0 ? 1 : plan.problem.batch;
    TERN_TRY(guarded<void>(plan.problem.op, name(), "convert an operand",
                           [&] { return api_->encode_conversion(call, context); }));
  }
  return {};
}

// Vendor call `index` of a loop, or the one call of the batch.
Result<void> State::encode_one(const GemmPlan& plan, const Lowered& lowered, std::uint32_t index,
                               ProductCall& call, std::uint64_t generation,
                               EncodeContext& context) {
  const std::string_view op = plan.problem.op;
  const bool is_loop = plan.call.is_loop;
  const auto pick = [&](const Operand& operand) {
    return is_loop ? matrix_of(operand, index) : operand;
  };
  // A loop's views differ in their offset alone; caching them would push out all others.
  const auto refer = [&](const Operand& operand) {
    return matrix(op, pick(operand), lowered.batch, !is_loop, generation, context);
  };
  TERN_ASSIGN(call.a, refer(lowered.a));
  TERN_ASSIGN(call.b, refer(lowered.b));
  TERN_ASSIGN(call.d, refer(lowered.d));
  if (lowered.is_c_in_place) {
    call.c = call.d;
  } else if (plan.call.has_vendor_c) {
    TERN_ASSIGN(call.c, refer(lowered.c));
  }
  TERN_TRY(context.before_vendor_call());
  return guarded<void>(op, name(), "encode a product",
                       [&] { return api_->encode_product(call, context); });
}

Result<void> State::encode_product(const GemmPlan& plan, const Lowered& lowered, ProductCall& call,
                                   std::uint64_t generation, EncodeContext& context) {
  const GemmProblem& problem = plan.problem;
  call.op = problem.op;
  call.m = problem.m();
  call.n = problem.n();
  call.k = problem.k();
  call.batch = lowered.batch;
  call.alpha = problem.alpha;
  call.beta = plan.call.has_vendor_c ? problem.beta : 0.0f;
  if (plan.call.has_vendor_bias) call.bias = problem.epilogue.bias;
  if (plan.call.has_vendor_activation) call.activation = problem.epilogue.activation;
  if (!api_->objects().has_kernels) {
    for (std::uint32_t i = 0; i < plan.vendor_calls; ++i)
      TERN_TRY(encode_one(plan, lowered, i, call, generation, context));
    return {};
  }
  TERN_ASSIGN(auto lease,
              kernel_object(problem.op, kernel_key(problem, plan.call, api_->device())));
  call.kernel = lease.object().get();
  context.retain(lease.object());
  for (std::uint32_t i = 0; i < plan.vendor_calls; ++i)
    TERN_TRY(encode_one(plan, lowered, i, call, generation, context));
  lease.give_back(generation);
  return {};
}

Result<void> State::encode_epilogue(const GemmPlan& plan, const Lowered& lowered,
                                    EncodeContext& context) {
  const GemmProblem& problem = plan.problem;
  EpilogueCall call{.op = problem.op,
                    .m = problem.m(),
                    .n = problem.n(),
                    .batch = problem.batch,
                    .source = std::nullopt,
                    .beta = plan.call.has_vendor_c ? 0.0f : problem.beta,
                    .c = problem.c,
                    .d = problem.d,
                    .bias = problem.epilogue.bias,
                    .activation = problem.epilogue.activation};
  if (plan.call.has_product) call.source = lowered.d;
  return guarded<void>(problem.op, name(), "encode the epilogue",
                       [&] { return api_->encode_epilogue(call, context); });
}

Result<void> State::encode(const GemmPlan& plan, EncodeContext& context) {
  const GemmProblem& problem = plan.problem;
  if (problem.is_empty()) return {};
  const ActiveThreads::Scope active(*threads_);
  const EncodeGate::Ticket ticket(gate_);
  for (const AllocationRef* memory : {&problem.a.memory, &problem.b.memory, &problem.d.memory})
    if (*memory) context.retain(*memory);
  if (problem.beta != 0.0f) context.retain(problem.c.memory);
  if (problem.epilogue.bias) context.retain(problem.epilogue.bias->memory);

  TERN_ASSIGN(Lowered lowered, lower(problem, plan.call, api_->limits()));
  ProductCall call;
  std::uint64_t workspace_bytes = lowered.bytes;
  if (plan.call.has_product && api_->objects().has_plans) {
    TERN_ASSIGN(
        const PlanRef object,
        plan_object(problem.op, plan_key(problem, plan.call, lowered, *api_), ticket.generation()));
    call.plan = object.get();
    context.retain(object);
    workspace_bytes += object->workspace_bytes;
  }
  if (workspace_bytes != 0) {
    TERN_ASSIGN(call.workspace, context.workspace(workspace_bytes));
    context.retain(call.workspace);
    call.workspace_offset = lowered.bytes;
    if (plan.call.converts_a) lowered.a.memory = call.workspace;
    if (plan.call.converts_b) lowered.b.memory = call.workspace;
    if (plan.call.has_staged_result) lowered.d.memory = call.workspace;
  }
  TERN_TRY(encode_conversions(plan, lowered, context));
  if (plan.call.has_product)
    TERN_TRY(encode_product(plan, lowered, call, ticket.generation(), context));
  return plan.call.has_own_epilogue ? encode_epilogue(plan, lowered, context) : Result<void>();
}

void State::wait_for_older(std::uint64_t generation) {
  if (threads_->contains_this_thread()) return;
  gate_.wait_for_older(generation);
}

// Caches first, the gate last: whoever may have found an old entry entered before the gate moved
// on, and is waited for. The lists die before the wait and outside of every lock.
void State::invalidate_all() {
  const std::uint64_t generation = gate_.next_generation();
  {
    const auto all = [](const auto&) { return true; };
    const auto plans = plans_.invalidate(generation, all);
    const auto kernels = kernels_.invalidate(generation);
    const auto views = views_.invalidate(generation, all);
    const auto descriptors = descriptors_.invalidate(generation, all);
    const auto probes = probes_.invalidate(generation, all);
  }
  gate_.advance(generation);
  wait_for_older(generation);
}

void State::invalidate(AllocationId id) {
  const std::uint64_t generation = gate_.next_generation();
  {
    const auto views =
        views_.invalidate(generation, [id](const ViewKey& key) { return key.allocation == id; });
  }
  gate_.advance(generation);
  wait_for_older(generation);
}

BridgeCounts State::counts() const {
  return {.plans = plans_.size(),
          .kernels = kernels_.size(),
          .views = views_.size(),
          .descriptors = descriptors_.size(),
          .kernels_in_use = kernels_.in_use(),
          .encodes = gate_.running(),
          .generation = gate_.generation()};
}

// The executable's handle on the state.
class Bridge final : public VendorBridge {
 public:
  explicit Bridge(std::shared_ptr<State> state) : state_(std::move(state)) {}
  ~Bridge() override { state_->invalidate_all(); }
  Bridge(const Bridge&) = delete;
  Bridge& operator=(const Bridge&) = delete;

  [[nodiscard]] std::string_view name() const override { return state_->name(); }
  // Both work on a reference of their own: a drop that does not wait may end this object.
  [[nodiscard]] Result<GemmPlan> plan(const GemmProblem& problem) override {
    const std::shared_ptr<State> state = state_;
    return state->plan(problem);
  }
  [[nodiscard]] Result<void> encode(const GemmPlan& plan, EncodeContext& context) override {
    const std::shared_ptr<State> state = state_;
    return state->encode(plan, context);
  }
  void reset() override { state_->invalidate_all(); }
  void drop_allocation(AllocationId id) override { state_->invalidate(id); }
  [[nodiscard]] BridgeCounts counts() const override { return state_->counts(); }

 private:
  const std::shared_ptr<State> state_;
};

}  // namespace

std::unique_ptr<VendorBridge> make_vendor_bridge(std::shared_ptr<VendorApi> api,
                                                 std::shared_ptr<ActiveThreads> threads,
                                                 const BridgeBounds& bounds) {
  return std::make_unique<Bridge>(
      std::make_shared<State>(std::move(api), std::move(threads), bounds));
}

}  // namespace tern::gpu
