#include "backend/cuda/vendor/cublaslt_vendor.h"

#include <array>

#include "backend/cuda/vendor/encode_context.h"

namespace tern::cuda {

Result<backend::AllocationRef> CudaEncodeContext::workspace(std::uint64_t bytes) {
  const std::uint64_t have = workspace_ ? workspace_->bytes() : 0;
  if (bytes > have)
    return fail(ErrorCode::kOutOfMemory,
                "[cuda] a vendor product needs a workspace of {} bytes, this stream has {}", bytes,
                have);
  return backend::AllocationRef(workspace_);
}

namespace {

using backend::Activation;
static_assert(static_cast<int>(Activation::kGeluTanh) == kTernGeluTanh &&
              static_cast<int>(Activation::kSilu) == kTernSilu);

constexpr std::array kTriples = {
    backend::DtypeTriple{Dtype::kF32, Dtype::kF32, Dtype::kF32},
    backend::DtypeTriple{Dtype::kF16, Dtype::kF16, Dtype::kF16},
    backend::DtypeTriple{Dtype::kF16, Dtype::kF16, Dtype::kF32},
    backend::DtypeTriple{Dtype::kBf16, Dtype::kBf16, Dtype::kBf16},
    backend::DtypeTriple{Dtype::kBf16, Dtype::kBf16, Dtype::kF32},
};

constexpr std::uint32_t bit(Activation activation) { return 1U << static_cast<int>(activation); }

// Small workspaces cost speed from Hopper on.
std::uint64_t workspace_for(int capability_major) {
  return std::uint64_t{capability_major >= 9 ? 32U : 4U} << 20;
}

int lt_type(Dtype dtype) {
  return dtype == Dtype::kF16 ? kLtF16 : dtype == Dtype::kBf16 ? kLtBf16 : kLtF32;
}

tern_u32 element_type(Dtype dtype) {
  return dtype == Dtype::kF16 ? kTernF16 : dtype == Dtype::kBf16 ? kTernBf16 : kTernF32;
}

int lt_epilogue(Activation activation, bool has_bias) {
  const int act = activation == Activation::kRelu       ? kLtEpilogueRelu
                  : activation == Activation::kGeluTanh ? kLtEpilogueGelu
                                                        : 0;
  const int both = act | (has_bias ? kLtEpilogueBias : 0);
  return both == 0 ? kLtEpilogueDefault : both;
}

Address address_of(const backend::AllocationRef& memory, std::uint64_t offset) {
  return static_cast<const DeviceMemory&>(*memory).address() + offset;
}
Address address_of(const backend::Operand& operand) {
  return address_of(operand.memory, operand.offset);
}

// The vendor's descriptors of one plan; whatever was made is given back.
struct LtPlan : gpu::VendorPlan {
  explicit LtPlan(const CublasLtApi& lt) : api(lt) {}
  ~LtPlan() override {
    for (LtLayout* layout : {a, b, c, d})
      if (layout != nullptr) (void)api.layout_destroy(layout);
    if (matmul != nullptr) (void)api.matmul_destroy(matmul);
  }
  LtPlan(const LtPlan&) = delete;
  LtPlan& operator=(const LtPlan&) = delete;

  const CublasLtApi& api;  // of the vendor, which outlives its plans
  gpu::PlanKey key;
  LtMatmul* matmul = nullptr;
  LtLayout* a = nullptr;  // names as the vendor sees them: its A is our B
  LtLayout* b = nullptr;
  LtLayout* c = nullptr;
  LtLayout* d = nullptr;
  LtAlgorithm algorithm;
};

// Sets an attribute by value.
template <class Set, class Object, class T>
int set(Set function, Object* object, int attribute, const T& value) {
  return function(object, attribute, &value, sizeof value);
}

// A matmul descriptor of a plan; bias_address 0: none is set.
int make_matmul(const CublasLtApi& api, const gpu::PlanKey& key, Address bias_address,
                LtMatmul** matmul) {
  int status = api.matmul_create(matmul, kLtCompute32F, kLtF32);
  if (status != 0) return status;
  const std::int32_t transpose_a = key.is_b_transposed ? kLtTranspose : kLtNone;
  const std::int32_t transpose_b = key.is_a_transposed ? kLtTranspose : kLtNone;
  const std::uint32_t epilogue =
      static_cast<std::uint32_t>(lt_epilogue(key.activation, key.has_bias));
  if ((status = set(api.matmul_set, *matmul, kLtTransposeA, transpose_a)) != 0) return status;
  if ((status = set(api.matmul_set, *matmul, kLtTransposeB, transpose_b)) != 0) return status;
  if ((status = set(api.matmul_set, *matmul, kLtEpilogue, epilogue)) != 0) return status;
  if (!key.has_bias) return 0;
  const std::int32_t bias_type = lt_type(key.bias);
  if ((status = set(api.matmul_set, *matmul, kLtBiasType, bias_type)) != 0) return status;
  return bias_address == 0 ? 0 : set(api.matmul_set, *matmul, kLtBiasPointer, bias_address);
}

int make_layout(const CublasLtApi& api, Dtype dtype, std::uint64_t rows, std::uint64_t cols,
                std::uint64_t stride, std::uint32_t batch, std::uint64_t batch_stride,
                LtLayout** layout) {
  int status =
      api.layout_create(layout, lt_type(dtype), rows, cols, static_cast<std::int64_t>(stride));
  if (status != 0 || batch == 1) return status;
  const auto count = static_cast<std::int32_t>(batch);
  const auto apart = static_cast<std::int64_t>(batch_stride);
  if ((status = set(api.layout_set, *layout, kLtBatchCount, count)) != 0) return status;
  return set(api.layout_set, *layout, kLtBatchStride, apart);
}

int make_layouts(LtPlan& plan) {
  const gpu::PlanKey& k = plan.key;
  const CublasLtApi& api = plan.api;
  int status =
      k.is_b_transposed
          ? make_layout(api, k.b, k.k, k.n, k.b_row_stride, k.batch, k.b_batch_stride, &plan.a)
          : make_layout(api, k.b, k.n, k.k, k.b_row_stride, k.batch, k.b_batch_stride, &plan.a);
  if (status != 0) return status;
  status =
      k.is_a_transposed
          ? make_layout(api, k.a, k.m, k.k, k.a_row_stride, k.batch, k.a_batch_stride, &plan.b)
          : make_layout(api, k.a, k.k, k.m, k.a_row_stride, k.batch, k.a_batch_stride, &plan.b);
  if (status != 0) return status;
  const std::uint64_t c_row = k.is_c_apart ? k.c_row_stride : k.d_row_stride;
  const std::uint64_t c_batch = k.is_c_apart ? k.c_batch_stride : k.d_batch_stride;
  status = make_layout(api, k.d, k.n, k.m, c_row, k.batch, c_batch, &plan.c);
  if (status != 0) return status;
  return make_layout(api, k.d, k.n, k.m, k.d_row_stride, k.batch, k.d_batch_stride, &plan.d);
}

// Asks for the best algorithm within the plan's limits.
int choose_algorithm(LtHandle* handle, LtPlan& plan) {
  const CublasLtApi& api = plan.api;
  LtPreference* preference = nullptr;
  int status = api.preference_create(&preference);
  if (status != 0) return status;
  // Parts of a split product meet in f32 (2), not in the result's type and not by chance.
  const std::uint32_t reduction = 2;
  const std::size_t workspace = plan.key.workspace_limit;
  const auto alignment = [](std::uint8_t log2) { return std::uint32_t{1} << log2; };
  status = set(api.preference_set, preference, kLtWorkspaceBytes, workspace);
  if (status == 0) status = set(api.preference_set, preference, kLtReductionSchemes, reduction);
  if (status == 0)
    status = set(api.preference_set, preference, kLtAlignmentA, alignment(plan.key.b_alignment));
  if (status == 0)
    status = set(api.preference_set, preference, kLtAlignmentB, alignment(plan.key.a_alignment));
  if (status == 0)
    status = set(api.preference_set, preference, kLtAlignmentC,
                 alignment(plan.key.is_c_apart ? plan.key.c_alignment : plan.key.d_alignment));
  if (status == 0)
    status = set(api.preference_set, preference, kLtAlignmentD, alignment(plan.key.d_alignment));
  LtHeuristic found;
  int count = 0;
  if (status == 0)
    status = api.heuristic(handle, plan.matmul, plan.a, plan.b, plan.c, plan.d, preference, 1,
                           &found, &count);
  (void)api.preference_destroy(preference);
  if (status != 0) return status;
  if (count == 0 || found.status != 0) return found.status != 0 ? found.status : 15;
  plan.algorithm = found.algorithm;
  plan.workspace_bytes = found.workspace_bytes;
  return 0;
}

}  // namespace

Result<std::shared_ptr<CublasLtVendor>> CublasLtVendor::make(const CublasLtApi& api,
                                                             std::shared_ptr<Context> context,
                                                             std::shared_ptr<Modules> modules) {
  TERN_TRY(context->make_current());
  TERN_ASSIGN(const int major, context->attribute(kCapabilityMajor));
  TERN_ASSIGN(const int cores, context->attribute(kMultiprocessors));
  LtHandle* handle = nullptr;
  if (const int status = api.create(&handle); status != 0)
    return fail(ErrorCode::kDevice, "[cuda] cublasLtCreate of {} failed with {} ({})", api.path,
                lt_status_name(status), status);
  return std::shared_ptr<CublasLtVendor>(new CublasLtVendor(
      api, std::move(context), std::move(modules), handle, cores, workspace_for(major)));
}

CublasLtVendor::CublasLtVendor(const CublasLtApi& api, std::shared_ptr<Context> context,
                               std::shared_ptr<Modules> modules, LtHandle* handle, int cores,
                               std::uint64_t workspace_limit)
    : api_(api),
      context_(std::move(context)),
      modules_(std::move(modules)),
      handle_(handle),
      cores_(cores),
      workspace_limit_(workspace_limit) {
  limits_.name = "cublaslt";
  limits_.triples = kTriples;
  limits_.conversion = backend::ConversionRule::kNarrow;
  limits_.has_bias_result = true;
  limits_.activations =
      bit(Activation::kNone) | bit(Activation::kRelu) | bit(Activation::kGeluTanh);
}

CublasLtVendor::~CublasLtVendor() {
  if (context_->make_current().ok()) (void)api_.destroy(handle_);
}

Result<void> CublasLtVendor::check(int status, const char* call) const {
  if (status == 0) return {};
  return fail(status == 15 ? ErrorCode::kUnsupported : ErrorCode::kDevice,
              "[cublaslt] {} failed with {} ({})", call, lt_status_name(status), status);
}

Result<std::unique_ptr<gpu::VendorPlan>> CublasLtVendor::make_plan(const gpu::PlanKey& key) {
  TERN_TRY(context_->make_current());
  auto plan = std::make_unique<LtPlan>(api_);
  plan->key = key;
  TERN_TRY(check(make_matmul(api_, key, 0, &plan->matmul), "making a product's descriptor"));
  TERN_TRY(check(make_layouts(*plan), "making a matrix layout"));
  TERN_TRY(check(choose_algorithm(handle_, *plan), "choosing an algorithm"));
  return std::unique_ptr<gpu::VendorPlan>(std::move(plan));
}

Result<void> CublasLtVendor::encode_product(const gpu::ProductCall& call,
                                            backend::EncodeContext& context) {
  TERN_TRY(context_->make_current());
  auto& cuda = static_cast<CudaEncodeContext&>(context);
  const auto& plan = static_cast<const LtPlan&>(*call.plan);
  // The bias is part of the descriptor, and the plan's is shared by threads: a bias gets its own.
  LtMatmul* own = nullptr;
  int status = 0;
  if (call.bias)
    status = make_matmul(api_, plan.key, address_of(call.bias->memory, call.bias->offset), &own);
  if (status == 0) {
    const Address d = address_of(call.d.operand);
    const Address c = plan.key.is_c_apart ? address_of(call.c.operand) : d;
    const Address workspace =
        call.workspace ? address_of(call.workspace, call.workspace_offset) : 0;
    status = api_.matmul(handle_, own != nullptr ? own : plan.matmul, &call.alpha,
                         address_of(call.b.operand), plan.a, address_of(call.a.operand), plan.b,
                         &call.beta, c, plan.c, d, plan.d, &plan.algorithm, workspace,
                         static_cast<std::size_t>(plan.workspace_bytes), cuda.stream().handle());
  }
  if (own != nullptr) (void)api_.matmul_destroy(own);
  if (status == 0) return {};
  return fail(ErrorCode::kDevice, "[cublaslt] the product of {} failed with {} ({})", call.op,
              lt_status_name(status), status);
}

Result<void> CublasLtVendor::encode_conversion(const gpu::ConversionCall& call,
                                               backend::EncodeContext& context) {
  TERN_TRY(context_->make_current());
  TernConvertParams p{};
  p.from = address_of(call.from);
  p.to = address_of(call.to);
  p.rows = call.from.rows;
  p.cols = call.from.cols;
  p.from_row_stride = call.from.row_stride;
  p.from_batch_stride = call.from.batch_stride;
  p.to_row_stride = call.to.row_stride;
  p.to_batch_stride = call.to.batch_stride;
  p.batch = call.batch;
  p.from_type = element_type(call.from.dtype);
  p.to_type = element_type(call.to.dtype);
  TERN_ASSIGN(FunctionHandle* const function, modules_->function(KernelId::kConvert));
  return launch(static_cast<CudaEncodeContext&>(context).stream(), function,
                convert_launch(p, cores_), {});
}

Result<void> CublasLtVendor::encode_epilogue(const gpu::EpilogueCall& call,
                                             backend::EncodeContext& context) {
  TERN_TRY(context_->make_current());
  TernEpilogueParams p{};
  if (call.source) {
    p.source = address_of(*call.source);
    p.source_row_stride = call.source->row_stride;
    p.source_batch_stride = call.source->batch_stride;
  }
  if (call.beta != 0.0F) {
    p.c = address_of(call.c);
    p.c_row_stride = call.c.row_stride;
    p.c_batch_stride = call.c.batch_stride;
    p.c_type = element_type(call.c.dtype);
  }
  if (call.bias) {
    p.bias = address_of(call.bias->memory, call.bias->offset);
    p.bias_type = element_type(call.bias->dtype);
  }
  p.d = address_of(call.d);
  p.d_row_stride = call.d.row_stride;
  p.d_batch_stride = call.d.batch_stride;
  p.d_type = element_type(call.d.dtype);
  p.rows = call.m;
  p.cols = call.n;
  p.batch = call.batch;
  p.beta = call.beta;
  p.activation = static_cast<tern_u32>(call.activation);
  TERN_ASSIGN(FunctionHandle* const function, modules_->function(KernelId::kGemmEpilogue));
  return launch(static_cast<CudaEncodeContext&>(context).stream(), function,
                epilogue_launch(p, cores_), {});
}

}  // namespace tern::cuda
