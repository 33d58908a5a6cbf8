// The fake vendor: what it records, how it fails, and its products in double.
#include "backend/gpu/vendor/fake_vendor_test.h"

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "backend/vendor_gemm_test_problem.h"
#include "base/error.h"

namespace tern::gpu::test {

namespace {

using backend::Operand;
using backend::test::activate;
using backend::test::data_of;
using backend::test::load;
using backend::test::position;
using backend::test::store;
using Counter = std::shared_ptr<std::atomic<int>>;

// Counts itself among the live objects of its kind.
class Counted {
 public:
  explicit Counted(Counter counter) : counter_(std::move(counter)) { ++*counter_; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
  ~Counted() { --*counter_; }

 private:
  const Counter counter_;
};

struct FakePlan final : VendorPlan {
  FakePlan(Counter counter, const PlanKey& k) : counted(std::move(counter)), key(k) {}
  Counted counted;
  PlanKey key;
};
struct FakeKernel final : VendorKernel {
  FakeKernel(Counter counter, const KernelKey& k) : counted(std::move(counter)), key(k) {}
  Counted counted;
  KernelKey key;
  std::atomic<int> users{0};
};
struct FakeDescriptor final : VendorDescriptor {
  FakeDescriptor(Counter counter, const DescriptorKey& k) : counted(std::move(counter)), key(k) {}
  Counted counted;
  DescriptorKey key;
};
// What the product reads and writes: the view's own idea of memory and shape, so that a wrong view
// gives wrong numbers.
struct FakeView final : VendorView {
  FakeView(Counter counter, const ViewKey& k, AllocationRef m)
      : counted(std::move(counter)), key(k), memory(std::move(m)) {}
  Counted counted;
  ViewKey key;
  AllocationRef memory;
};

Operand from_view(const MatrixRef& matrix) {
  Operand operand = matrix.operand;
  if (!matrix.view) return operand;
  const auto& view = static_cast<const FakeView&>(*matrix.view);
  const DescriptorKey& shape = view.key.matrix;
  operand.memory = view.memory;
  operand.offset = view.key.offset;
  operand.rows = shape.rows;
  operand.cols = shape.cols;
  operand.row_stride = shape.row_stride;
  operand.batch_stride = shape.batch_stride;
  operand.dtype = shape.dtype;
  return operand;
}

double element(const Operand& o, std::uint64_t b, std::uint64_t r, std::uint64_t c) {
  return load(o.dtype, data_of(o) + position(o, b, r, c));
}

double bias_at(const backend::Bias& bias, std::uint64_t column) {
  const auto* data = static_cast<const backend::HostAllocation&>(*bias.memory).data();
  return load(bias.dtype, data + bias.offset + column * size_of(bias.dtype));
}

// Like a command buffer, a command holds no memory alive: what it needs was retained, or is gone.
class Needs {
 public:
  explicit Needs(Counter violations) : violations_(std::move(violations)) {}
  void borrow(AllocationRef& memory) {
    if (!memory) return;
    memory_.emplace_back(memory);
    memory = AllocationRef(AllocationRef(), memory.get());
  }
  [[nodiscard]] bool are_alive() const {
    for (const auto& memory : memory_) {
      if (!memory.expired()) continue;
      ++*violations_;
      return false;
    }
    return true;
  }

 private:
  Counter violations_;
  std::vector<std::weak_ptr<const backend::Allocation>> memory_;
};

struct Product {
  std::uint64_t m, n, k;
  std::uint32_t batch;
  double alpha, beta;
  Operand a, b, c, d;
  bool is_a_transposed, is_b_transposed;
  std::optional<backend::Bias> bias;
  backend::Activation activation;

  void run() const {
    for (std::uint64_t i = 0; i < batch; ++i) {
      for (std::uint64_t r = 0; r < m; ++r) {
        for (std::uint64_t col = 0; col < n; ++col) one(i, r, col);
      }
    }
  }
  void one(std::uint64_t i, std::uint64_t r, std::uint64_t col) const {
    double sum = 0;
    for (std::uint64_t j = 0; j < k; ++j) {
      sum += (is_a_transposed ? element(a, i, j, r) : element(a, i, r, j)) *
             (is_b_transposed ? element(b, i, col, j) : element(b, i, j, col));
    }
    double x = alpha * sum;
    if (beta != 0) x += beta * element(c, i, r, col);
    if (bias) x += bias_at(*bias, col);
    store(d.dtype, data_of(d) + position(d, i, r, col), activate(activation, x));
  }
};

}  // namespace

FakeContext::FakeContext(std::uint64_t device, std::uint64_t workspace_bytes)
    : device_(device), workspace_bytes_(workspace_bytes) {
  retained_.reserve(64);
  if (workspace_bytes != 0) workspace_ = backend::test::poisoned(device, workspace_bytes);
}

Result<AllocationRef> FakeContext::workspace(std::uint64_t bytes) {
  if (bytes > workspace_bytes_) {
    return fail(ErrorCode::kOutOfMemory, "the workspace of device {} has {} bytes, {} are needed",
                device_, workspace_bytes_, bytes);
  }
  return workspace_;
}

Result<void> FakeContext::before_vendor_call() {
  is_encoder_open_ = false;
  return {};
}

void FakeContext::own_command(std::function<void()> command) {
  is_encoder_open_ = true;
  order_ += 'o';
  commands_.push_back(std::move(command));
}

void FakeContext::vendor_command(std::function<void()> command) {
  if (is_encoder_open_) ++overlaps_;
  order_ += 'v';
  commands_.push_back(std::move(command));
}

Result<void> FakeContext::complete(Result<void> status) {
  if (status.ok()) {
    for (const auto& command : commands_) command();
  }
  commands_.clear();
  order_.clear();
  // What is let go may be the last reference to anything, this context's user included.
  const auto retained = std::move(retained_);
  retained_ = {};
  return status;
}

FakeVendor::FakeVendor(std::uint64_t device) : device_(device) {
  using D = Dtype;
  static constexpr std::array kAll = {backend::DtypeTriple{D::kF32, D::kF32, D::kF32},
                                      backend::DtypeTriple{D::kF16, D::kF16, D::kF16},
                                      backend::DtypeTriple{D::kF16, D::kF16, D::kF32},
                                      backend::DtypeTriple{D::kBf16, D::kBf16, D::kBf16},
                                      backend::DtypeTriple{D::kBf16, D::kBf16, D::kF32}};
  row.name = "fake";
  row.triples = kAll;
  for (Counter& counter : live_) counter = std::make_shared<std::atomic<int>>(0);
}

void FakeVendor::fail_nth(Step step, int nth, Failure how) {
  const std::lock_guard lock(mutex_);
  armed_[static_cast<std::size_t>(step)] = nth;
  how_[static_cast<std::size_t>(step)] = how;
}

int FakeVendor::live() const {
  int sum = 0;
  for (const Counter& counter : live_) sum += *counter;
  return sum;
}

FakeVendor::Outcome FakeVendor::enter(Step step) {
  const auto index = static_cast<std::size_t>(step);
  ++calls_[index];
  Failure how{};
  {
    const std::lock_guard lock(mutex_);
    if (armed_[index] == 0 || --armed_[index] != 0) return Outcome::kWorks;
    how = how_[index];
  }
  if (how == Failure::kThrow) throw std::runtime_error("injected exception");
  if (how == Failure::kThrowOddly) throw 42;
  return how == Failure::kNull ? Outcome::kNull : Outcome::kError;
}

template <class Object, class Made>
Result<std::unique_ptr<Object>> FakeVendor::make(Step step, Made&& made) {
  const Outcome outcome = enter(step);
  if (outcome == Outcome::kError) return fail(ErrorCode::kDevice, "injected error");
  if (outcome == Outcome::kNull) return std::unique_ptr<Object>();
  return std::unique_ptr<Object>(made(live_[static_cast<std::size_t>(step)]));
}

Result<std::unique_ptr<VendorPlan>> FakeVendor::make_plan(const PlanKey& key) {
  return make<VendorPlan>(Step::kPlan, [&](Counter counter) {
    auto plan = std::make_unique<FakePlan>(std::move(counter), key);
    plan->workspace_bytes = plan_workspace;
    return plan;
  });
}

Result<std::unique_ptr<VendorKernel>> FakeVendor::make_kernel(const KernelKey& key) {
  return make<VendorKernel>(Step::kKernel, [&](Counter counter) {
    return std::make_unique<FakeKernel>(std::move(counter), key);
  });
}

Result<std::unique_ptr<VendorDescriptor>> FakeVendor::make_descriptor(const DescriptorKey& key) {
  return make<VendorDescriptor>(Step::kDescriptor, [&](Counter counter) {
    return std::make_unique<FakeDescriptor>(std::move(counter), key);
  });
}

Result<std::unique_ptr<VendorView>> FakeVendor::make_view(const ViewKey& key,
                                                          const AllocationRef& memory,
                                                          const VendorDescriptor*) {
  return make<VendorView>(Step::kView, [&](Counter counter) {
    return std::make_unique<FakeView>(std::move(counter), key, memory);
  });
}

Result<bool> FakeVendor::probe(const Operand&) {
  if (enter(Step::kProbe) != Outcome::kWorks) return fail(ErrorCode::kDevice, "injected error");
  return probe_answer.load();
}

// Everything that the objects say against what the call says.
void FakeVendor::check_call(const ProductCall& call) {
  bool is_right = true;
  for (const MatrixRef* matrix : {&call.a, &call.b, &call.d}) {
    const auto shape_is_right = [&](const DescriptorKey& key) {
      return key.device == device_ && key.rows == matrix->operand.rows &&
             key.cols == matrix->operand.cols && key.row_stride == matrix->operand.row_stride &&
             key.dtype == matrix->operand.dtype && key.batch == call.batch;
    };
    if (matrix->descriptor) {
      const auto& key = static_cast<const FakeDescriptor&>(*matrix->descriptor).key;
      is_right = is_right && shape_is_right(key);
    }
    if (matrix->view) {
      const auto& view = static_cast<const FakeView&>(*matrix->view);
      is_right =
          is_right && shape_is_right(view.key.matrix) && view.memory == matrix->operand.memory &&
          view.key.allocation == view.memory->id() && view.key.offset == matrix->operand.offset;
    }
  }
  if (call.plan != nullptr) {
    const auto& key = static_cast<const FakePlan&>(*call.plan).key;
    is_right = is_right && key.device == device_ && key.m == call.m && key.n == call.n &&
               key.k == call.k && key.a == call.a.operand.dtype && key.d == call.d.operand.dtype &&
               key.accumulation == Dtype::kF32;
  }
  if (!is_right) ++*violations_;
}

Result<void> FakeVendor::encode_product(const ProductCall& call, backend::EncodeContext& context) {
  auto* kernel = static_cast<FakeKernel*>(call.kernel);
  if (kernel != nullptr && kernel->users.fetch_add(1) != 0) ++*violations_;
  struct Leave {
    FakeKernel* kernel;
    ~Leave() {
      if (kernel != nullptr) --kernel->users;
    }
  } leave{kernel};
  if (on_product) on_product(call);
  check_call(call);
  if (enter(Step::kProduct) != Outcome::kWorks) return fail(ErrorCode::kDevice, "injected error");
  const bool has_kernel = kernel != nullptr;
  Product product{
      .m = has_kernel ? kernel->key.m : call.m,
      .n = has_kernel ? kernel->key.n : call.n,
      .k = has_kernel ? kernel->key.k : call.k,
      .batch = call.batch,
      .alpha = static_cast<double>(has_kernel ? kernel->key.alpha() : call.alpha),
      .beta = static_cast<double>(has_kernel ? kernel->key.beta() : call.beta),
      .a = from_view(call.a),
      .b = from_view(call.b),
      .c = from_view(call.c),
      .d = from_view(call.d),
      .is_a_transposed = has_kernel ? kernel->key.is_a_transposed : call.a.operand.transposed,
      .is_b_transposed = has_kernel ? kernel->key.is_b_transposed : call.b.operand.transposed,
      .bias = call.bias,
      .activation = call.activation};
  Needs needs(violations_);
  for (Operand* operand : {&product.a, &product.b, &product.c, &product.d})
    needs.borrow(operand->memory);
  if (product.bias) needs.borrow(product.bias->memory);
  static_cast<FakeContext&>(context).vendor_command(
      [product = std::move(product), needs = std::move(needs)] {
        if (needs.are_alive()) product.run();
      });
  return {};
}

Result<void> FakeVendor::encode_conversion(const ConversionCall& call,
                                           backend::EncodeContext& context) {
  if (enter(Step::kConversion) != Outcome::kWorks)
    return fail(ErrorCode::kDevice, "injected error");
  ConversionCall mine = call;
  Needs needs(violations_);
  needs.borrow(mine.from.memory);
  needs.borrow(mine.to.memory);
  static_cast<FakeContext&>(context).own_command([call = mine, needs = std::move(needs)] {
    if (!needs.are_alive()) return;
    for (std::uint64_t b = 0; b < call.batch; ++b) {
      for (std::uint64_t r = 0; r < call.from.rows; ++r) {
        for (std::uint64_t c = 0; c < call.from.cols; ++c) {
          store(call.to.dtype, data_of(call.to) + position(call.to, b, r, c),
                element(call.from, b, r, c));
        }
      }
    }
  });
  return {};
}

Result<void> FakeVendor::encode_epilogue(const EpilogueCall& call,
                                         backend::EncodeContext& context) {
  if (enter(Step::kEpilogue) != Outcome::kWorks) return fail(ErrorCode::kDevice, "injected error");
  EpilogueCall mine = call;
  Needs needs(violations_);
  if (mine.source) needs.borrow(mine.source->memory);
  if (mine.bias) needs.borrow(mine.bias->memory);
  needs.borrow(mine.c.memory);
  needs.borrow(mine.d.memory);
  static_cast<FakeContext&>(context).own_command([call = mine, needs = std::move(needs)] {
    if (!needs.are_alive()) return;
    for (std::uint64_t b = 0; b < call.batch; ++b) {
      for (std::uint64_t r = 0; r < call.m; ++r) {
        for (std::uint64_t c = 0; c < call.n; ++c) {
          double x = call.source ? element(*call.source, b, r, c) : 0.0;
          if (call.beta != 0.0f) x += static_cast<double>(call.beta) * element(call.c, b, r, c);
          if (call.bias) x += bias_at(*call.bias, c);
          store(call.d.dtype, data_of(call.d) + position(call.d, b, r, c),
                activate(call.activation, x));
        }
      }
    }
  });
  return {};
}

}  // namespace tern::gpu::test
