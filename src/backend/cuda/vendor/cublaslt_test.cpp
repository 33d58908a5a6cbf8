// cuBLASLt behind the bridge on a fake that really multiplies, column by column as the library
// does: swapped operands, strides, batches, epilogues, failures.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <random>

#include "backend/cuda/fake/fake_driver_test.h"
#include "backend/cuda/vendor/cublaslt_vendor.h"
#include "backend/cuda/vendor/encode_context.h"
#include "backend/gpu/vendor/bridge.h"

namespace tern::cuda {
namespace {

struct FakeMatmul {
  std::map<int, std::uint64_t> attributes;
};
struct FakeLayout {
  std::uint64_t rows = 0, cols = 0;
  std::int64_t stride = 0;
  std::map<int, std::uint64_t> attributes;
};

// f32 only. Counts what lives, and fails the nth call of a function.
struct FakeLt {
  int live = 0;
  int matmuls = 0;
  int heuristics = 0;
  std::map<int, std::uint64_t> preference;
  std::string failing;
  int fail_status = 0;
} fake_lt;

int answer(const char* name) { return fake_lt.failing == name ? fake_lt.fail_status : 0; }

std::uint64_t value_of(const void* value, std::size_t bytes) {
  std::uint64_t result = 0;
  std::memcpy(&result, value, bytes);
  return result;
}

std::uint64_t attribute(const std::map<int, std::uint64_t>& attributes, int which,
                        std::uint64_t otherwise) {
  const auto found = attributes.find(which);
  return found == attributes.end() ? otherwise : found->second;
}

// D = act(alpha op(A) op(B) + beta C + bias), everything column-major.
int multiply(LtMatmul* matmul, float alpha, Address a, LtLayout* la, Address b, LtLayout* lb,
             float beta, Address c, LtLayout* lc, Address d, LtLayout* ld) {
  const auto& m = *reinterpret_cast<FakeMatmul*>(matmul);
  const auto& A = *reinterpret_cast<FakeLayout*>(la);
  const auto& B = *reinterpret_cast<FakeLayout*>(lb);
  const auto& C = *reinterpret_cast<FakeLayout*>(lc);
  const auto& D = *reinterpret_cast<FakeLayout*>(ld);
  const bool ta = attribute(m.attributes, kLtTransposeA, 0) == kLtTranspose;
  const bool tb = attribute(m.attributes, kLtTransposeB, 0) == kLtTranspose;
  const std::uint64_t k = ta ? A.rows : A.cols;
  if ((ta ? A.cols : A.rows) != D.rows || (tb ? B.rows : B.cols) != D.cols ||
      k != (tb ? B.cols : B.rows) || C.rows != D.rows || C.cols != D.cols)
    return 7;
  const std::uint64_t batch = attribute(D.attributes, kLtBatchCount, 1);
  const auto element = [](Address base, const FakeLayout& l, std::uint64_t i, std::uint64_t row,
                          std::uint64_t col) {
    const std::uint64_t apart = attribute(l.attributes, kLtBatchStride, 0);
    return reinterpret_cast<float*>(base) + i * apart + col * static_cast<std::uint64_t>(l.stride) +
           row;
  };
  const auto epilogue = static_cast<int>(attribute(m.attributes, kLtEpilogue, kLtEpilogueDefault));
  const auto* bias = reinterpret_cast<const float*>(attribute(m.attributes, kLtBiasPointer, 0));
  for (std::uint64_t i = 0; i < batch; ++i)
    for (std::uint64_t r = 0; r < D.rows; ++r)
      for (std::uint64_t n = 0; n < D.cols; ++n) {
        float sum = 0;
        for (std::uint64_t j = 0; j < k; ++j)
          sum += *(ta ? element(a, A, i, j, r) : element(a, A, i, r, j)) *
                 *(tb ? element(b, B, i, n, j) : element(b, B, i, j, n));
        float y = alpha * sum;
        if (beta != 0) y += beta * *element(c, C, i, r, n);
        if ((epilogue & kLtEpilogueBias) != 0) y += bias[r];
        if ((epilogue & kLtEpilogueRelu) != 0 && y < 0) y = 0;
        *element(d, D, i, r, n) = y;
      }
  return 0;
}

template <class T>
T* fresh(auto* object) {
  ++fake_lt.live;
  return reinterpret_cast<T*>(object);
}
template <class F>
int dropped(F* object) {
  delete object;
  --fake_lt.live;
  return 0;
}

CublasLtApi fake_api() {
  CublasLtApi api;
  api.path = "fake";
  api.version = [] { return std::size_t{130000}; };
  api.create = [](LtHandle** handle) {
    *handle = fresh<LtHandle>(new FakeMatmul());
    return answer("create");
  };
  api.destroy = [](LtHandle* handle) { return dropped(reinterpret_cast<FakeMatmul*>(handle)); };
  api.matmul_create = [](LtMatmul** matmul, int compute, int scale) {
    if (answer("matmul_create") != 0) return answer("matmul_create");
    EXPECT_EQ(compute, kLtCompute32F);
    EXPECT_EQ(scale, kLtF32);
    *matmul = fresh<LtMatmul>(new FakeMatmul());
    return 0;
  };
  api.matmul_destroy = [](LtMatmul* matmul) {
    return dropped(reinterpret_cast<FakeMatmul*>(matmul));
  };
  api.matmul_set = [](LtMatmul* matmul, int which, const void* value, std::size_t bytes) {
    reinterpret_cast<FakeMatmul*>(matmul)->attributes[which] = value_of(value, bytes);
    return answer("matmul_set");
  };
  api.layout_create = [](LtLayout** layout, int, std::uint64_t rows, std::uint64_t cols,
                         std::int64_t stride) {
    if (answer("layout_create") != 0) return answer("layout_create");
    EXPECT_GE(stride, static_cast<std::int64_t>(rows)) << "column-major";
    *layout = fresh<LtLayout>(new FakeLayout{rows, cols, stride, {}});
    return 0;
  };
  api.layout_destroy = [](LtLayout* layout) {
    return dropped(reinterpret_cast<FakeLayout*>(layout));
  };
  api.layout_set = [](LtLayout* layout, int which, const void* value, std::size_t bytes) {
    reinterpret_cast<FakeLayout*>(layout)->attributes[which] = value_of(value, bytes);
    return answer("layout_set");
  };
  api.preference_create = [](LtPreference** preference) {
    *preference = fresh<LtPreference>(new FakeMatmul());
    return 0;
  };
  api.preference_destroy = [](LtPreference* preference) {
    return dropped(reinterpret_cast<FakeMatmul*>(preference));
  };
  api.preference_set = [](LtPreference*, int which, const void* value, std::size_t bytes) {
    fake_lt.preference[which] = value_of(value, bytes);
    return 0;
  };
  api.heuristic = [](LtHandle*, LtMatmul*, LtLayout*, LtLayout*, LtLayout*, LtLayout*,
                     LtPreference*, int, LtHeuristic* result, int* found) {
    ++fake_lt.heuristics;
    *result = {};
    result->workspace_bytes = 1024;
    *found = answer("none") == 0 ? 1 : 0;
    return answer("heuristic");
  };
  api.matmul = [](LtHandle*, LtMatmul* matmul, const void* alpha, Address a, LtLayout* la,
                  Address b, LtLayout* lb, const void* beta, Address c, LtLayout* lc, Address d,
                  LtLayout* ld, const LtAlgorithm*, Address workspace, std::size_t bytes,
                  StreamHandle*) {
    if (answer("matmul") != 0) return answer("matmul");
    EXPECT_EQ(bytes, 1024U);
    EXPECT_NE(workspace, 0U);
    ++fake_lt.matmuls;
    return multiply(matmul, *static_cast<const float*>(alpha), a, la, b, lb,
                    *static_cast<const float*>(beta), c, lc, d, ld);
  };
  return api;
}

class CublasLtTest : public testing::Test {
 protected:
  CublasLtTest() {
    fake_lt = {};
    context_ = Context::open(fake_.api(), 0).value();
    stream_ = std::make_unique<Stream>(Stream::make(context_).value());
    modules_ = std::make_shared<Modules>(context_, "sm_90");
    workspace_ = context_->allocate(1 << 20, "a workspace").value();
    make_bridge();
  }
  void make_bridge() {
    bridge_ = gpu::make_vendor_bridge(CublasLtVendor::make(fake_api(), context_, modules_).value(),
                                      std::make_shared<gpu::ActiveThreads>());
  }

  struct Matrix {
    std::shared_ptr<const DeviceMemory> memory;
    backend::Operand operand;
    [[nodiscard]] float* data() const { return reinterpret_cast<float*>(memory->address()); }
    [[nodiscard]] float at(std::uint64_t i, std::uint64_t r, std::uint64_t n) const {
      return data()[i * operand.batch_stride + r * operand.row_stride + n];
    }
  };
  Matrix matrix(std::uint64_t rows, std::uint64_t cols, std::uint64_t padding,
                std::uint32_t batch) {
    Matrix m;
    m.operand.rows = rows;
    m.operand.cols = cols;
    m.operand.row_stride = cols + padding;
    m.operand.batch_stride = batch > 1 ? rows * m.operand.row_stride : 0;
    const std::uint64_t count = rows * m.operand.row_stride * batch;
    m.memory = context_->allocate(count * 4, "a matrix").value();
    m.operand.memory = m.memory;
    for (std::uint64_t i = 0; i < count; ++i)
      m.data()[i] = static_cast<float>(static_cast<int>(random_() % 17) - 8);
    return m;
  }

  struct Case {
    bool ta = false, tb = false;
    std::uint32_t batch = 1;
    float alpha = 1, beta = 0;
    bool has_bias = false;
    bool has_relu = false;
    bool has_shared_b = false;
    bool is_in_place = false;
  };
  // Small integers, so that every order of sums gives the same floats.
  void expect_product(const Case& t) {
    constexpr std::uint64_t m = 5, n = 7, k = 9;
    const Matrix a = matrix(t.ta ? k : m, t.ta ? m : k, 2, t.batch);
    const Matrix b = matrix(t.tb ? n : k, t.tb ? k : n, 1, t.has_shared_b ? 1 : t.batch);
    const Matrix c = matrix(m, n, 4, t.batch);
    const Matrix d = matrix(m, n, 3, t.batch);
    const Matrix bias = matrix(1, n, 0, 1);
    std::vector<float> before(d.data(), d.data() + d.memory->bytes() / 4);
    backend::GemmProblem p;
    p.op = "test";
    p.a = a.operand;
    p.a.transposed = t.ta;
    p.b = b.operand;
    p.b.transposed = t.tb;
    p.c = t.is_in_place ? d.operand : c.operand;
    p.d = d.operand;
    p.batch = t.batch;
    p.alpha = t.alpha;
    p.beta = t.beta;
    if (t.has_bias) p.epilogue.bias = backend::Bias{bias.memory, 0, Dtype::kF32};
    if (t.has_relu) p.epilogue.activation = backend::Activation::kRelu;
    const backend::GemmPlan plan = bridge_->plan(p).value();
    EXPECT_EQ(plan.vendor, "cublaslt");
    EXPECT_FALSE(plan.call.has_own_epilogue) << "one call does it all";
    CudaEncodeContext context(*stream_, workspace_);
    bridge_->encode(plan, context).value();
    for (std::uint64_t i = 0; i < t.batch; ++i)
      for (std::uint64_t r = 0; r < m; ++r)
        for (std::uint64_t j = 0; j < d.operand.row_stride; ++j) {
          const std::uint64_t at = i * d.operand.batch_stride + r * d.operand.row_stride + j;
          if (j >= n) {
            ASSERT_EQ(d.data()[at], before[at]) << "what lies beside a row stays";
            continue;
          }
          float sum = 0;
          for (std::uint64_t x = 0; x < k; ++x)
            sum += (t.ta ? a.at(i, x, r) : a.at(i, r, x)) *
                   (t.tb ? b.at(t.has_shared_b ? 0 : i, j, x) : b.at(t.has_shared_b ? 0 : i, x, j));
          float y = t.alpha * sum;
          if (t.beta != 0) y += t.beta * (t.is_in_place ? before[at] : c.at(i, r, j));
          if (t.has_bias) y += bias.at(0, 0, j);
          if (t.has_relu && y < 0) y = 0;
          ASSERT_EQ(d.data()[at], y) << "batch " << i << " row " << r << " column " << j;
        }
  }

  FakeDriver fake_;
  std::shared_ptr<Context> context_;
  std::unique_ptr<Stream> stream_;
  std::shared_ptr<Modules> modules_;
  std::shared_ptr<const DeviceMemory> workspace_;
  std::unique_ptr<gpu::VendorBridge> bridge_;
  std::mt19937 random_{5};
};

TEST_F(CublasLtTest, RowMajorProductsAreSwappedColumnMajorOnes) {
  for (const bool ta : {false, true})
    for (const bool tb : {false, true}) {
      expect_product({.ta = ta, .tb = tb});
      expect_product({.ta = ta, .tb = tb, .batch = 3});
      expect_product({.ta = ta, .tb = tb, .batch = 3, .has_shared_b = true});
    }
}

TEST_F(CublasLtTest, EpiloguesBelongToTheCall) {
  expect_product({.tb = true, .has_bias = true});
  expect_product({.tb = true, .has_bias = true, .has_relu = true});
  expect_product({.tb = true, .alpha = -2, .beta = 0.5F, .has_bias = true});
  expect_product({.tb = true, .alpha = 2, .beta = 1, .is_in_place = true});
}

TEST_F(CublasLtTest, W26_TheAlgorithmIsChosenOncePerPlanWithTheWorkspaceOfTheDevice) {
  for (int i = 0; i < 5; ++i) expect_product({.tb = true});
  EXPECT_EQ(fake_lt.heuristics, 1);
  EXPECT_EQ(fake_lt.matmuls, 5);
  EXPECT_EQ(fake_lt.preference[kLtWorkspaceBytes], std::uint64_t{32} << 20) << "Hopper";
  EXPECT_EQ(fake_lt.preference[kLtReductionSchemes], 2U) << "split products meet in f32";
  EXPECT_EQ(fake_lt.preference[kLtAlignmentA], 256U);
}

TEST_F(CublasLtTest, B27_AFailedCreationIsAnErrorAndTheNextCallWorks) {
  for (const char* call : {"matmul_create", "matmul_set", "layout_create", "heuristic", "none"}) {
    make_bridge();
    fake_lt.failing = call;
    fake_lt.fail_status = 15;
    const int live = fake_lt.live;
    const Matrix a = matrix(4, 4, 0, 1);
    const Matrix b = matrix(4, 4, 0, 1);
    const Matrix d = matrix(4, 4, 0, 1);
    backend::GemmProblem p;
    p.op = "failing";
    p.a = a.operand;
    p.b = b.operand;
    p.d = d.operand;
    const auto plan = bridge_->plan(p);
    EXPECT_FALSE(plan.ok()) << call;
    EXPECT_EQ(fake_lt.live, live) << call << ": nothing is left behind";
    fake_lt.failing.clear();
    EXPECT_TRUE(bridge_->plan(p).ok()) << call;
  }
  bridge_.reset();
  EXPECT_EQ(fake_lt.live, 0);
}

TEST_F(CublasLtTest, Br05_AFailedCallNamesTheOpAndLaterOnesWork) {
  fake_lt.failing = "matmul";
  fake_lt.fail_status = 13;
  const Matrix a = matrix(4, 4, 0, 1);
  const Matrix b = matrix(4, 4, 0, 1);
  const Matrix d = matrix(4, 4, 0, 1);
  backend::GemmProblem p;
  p.op = "linear in layer 3";
  p.a = a.operand;
  p.b = b.operand;
  p.d = d.operand;
  const auto plan = bridge_->plan(p).value();
  CudaEncodeContext context(*stream_, workspace_);
  const auto result = bridge_->encode(plan, context);
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.error().message().find("linear in layer 3"), std::string::npos);
  EXPECT_NE(result.error().message().find("EXECUTION_FAILED"), std::string::npos);
  fake_lt.failing.clear();
  EXPECT_TRUE(bridge_->encode(plan, context).ok());
}

TEST_F(CublasLtTest, AWorkspaceThatIsTooSmallIsAnErrorWithNeedAndHave) {
  CudaEncodeContext context(*stream_, workspace_);
  const auto result = context.workspace(2 << 20);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code(), ErrorCode::kOutOfMemory);
  EXPECT_NE(result.error().message().find("2097152"), std::string::npos);
  EXPECT_NE(result.error().message().find("1048576"), std::string::npos);
}

}  // namespace
}  // namespace tern::cuda
