// Every variant of attention against the f64 reference, and its two forms against each other.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "backend/cpu/kernels/attention/test_cache.h"
#include "backend/cpu/kernels/elementwise/test_rows.h"
#include "reference/attention.h"

namespace tern::cpu {
namespace {

using testing::AttentionRun;
using testing::Rows;
using testing::TestCache;

class Attention : public ::testing::TestWithParam<AttentionVariant> {
 protected:
  void SetUp() override {
    if (!cpu_features().contains(GetParam().needs)) GTEST_SKIP() << "needs another CPU";
  }
};

reference::KvPlane plane(const KvView& kv, bool is_key) {
  return {is_key ? kv.k_base : kv.v_base, kv.page_stride_bytes,
          (is_key ? kv.dtype_k : kv.dtype_v) == KvDtype::kF16, kv.kv_heads, kv.head_dim};
}

// Class S: 2e-5 times the largest |v|, which for these normal values is below 6. Halves in the
// cache are exact inputs of both sides, so the bound for f32 holds for them too.
constexpr double kBound = 2e-5 * 6;

void expect_reference(const AttentionRun& run, const Rows& out) {
  const AttentionArgs& a = run.args;
  std::vector<float> expected(static_cast<std::size_t>(a.kv.head_dim));
  for (int r = 0; r < out.rows(); ++r) {
    for (int h = 0; h < a.heads; ++h) {
      const int kv_head = h / (a.heads / a.kv.kv_heads);
      reference::attention(plane(a.kv, true), plane(a.kv, false), a.pages[r], kv_head,
                           a.positions[r] + 1, a.scale,
                           a.q + r * a.q_row_stride + h * a.kv.head_dim, expected.data());
      for (int d = 0; d < a.kv.head_dim; ++d) {
        ASSERT_NEAR(out.row(r)[h * a.kv.head_dim + d], expected[static_cast<std::size_t>(d)],
                    kBound)
            << "head_dim " << a.kv.head_dim << " row " << r << " head " << h << " d " << d;
      }
    }
  }
}

void attach(AttentionRun& run, const Rows& q, Rows& out) {
  run.args.q = q.data();
  run.args.q_row_stride = q.stride();
  run.args.out = out.data();
  run.args.out_row_stride = out.stride();
}

struct Shape {
  int kv_heads, ratio, head_dim, first, rows;
  KvDtype k = KvDtype::kF16;
  KvDtype v = KvDtype::kF16;
};

// Prefill against the reference, then decode (groups of up to 8 rows) against prefill.
void check_shape(const AttentionVariant& variant, const Shape& s) {
  const TestCache cache(s.k, s.v, s.kv_heads, s.head_dim, s.first + s.rows, 41);
  const int heads = s.kv_heads * s.ratio;
  AttentionRun run(cache, heads, s.first, s.rows);
  Rows q(s.rows, heads * s.head_dim);
  q.fill_normal(42);
  Rows out(s.rows, heads * s.head_dim, 3);
  attach(run, q, out);
  run.prefill(variant, 0, s.rows);
  expect_reference(run, out);
  EXPECT_TRUE(out.guards_are_intact());
  Rows decoded(s.rows, heads * s.head_dim, 3);
  attach(run, q, decoded);
  for (int r = 0; r < s.rows; r += kAttentionDecodeRows) {
    run.decode(variant, r, std::min(s.rows, r + kAttentionDecodeRows));
  }
  for (int r = 0; r < s.rows; ++r) {
    ASSERT_TRUE(testing::same_bits(decoded.row(r), out.row(r), heads * s.head_dim)) << "row " << r;
  }
  EXPECT_TRUE(decoded.guards_are_intact());
}

TEST_P(Attention, IsCloseToTheReferenceForAllHeadWidths) {
  for (const int head_dim : {8, 32, 40, 64, 96, 128, 256}) {
    check_shape(GetParam(), {2, 2, head_dim, 0, 19});
    check_shape(GetParam(), {1, 1, head_dim, 253, 5, KvDtype::kF32, KvDtype::kF32});
  }
}

TEST_P(Attention, SharesKeyHeadsInAnyRatio) {
  for (const int ratio : {1, 2, 3, 4, 6}) check_shape(GetParam(), {2, ratio, 32, 30, 5});
  check_shape(GetParam(), {1, 50, 8, 3, 2});  // more heads than a tile has queries
}

TEST_P(Attention, TakesEveryMixOfDtypes) {
  for (const KvDtype k : {KvDtype::kF32, KvDtype::kF16}) {
    for (const KvDtype v : {KvDtype::kF32, KvDtype::kF16}) {
      check_shape(GetParam(), {1, 2, 64, 255, 3, k, v});
    }
  }
}

TEST_P(Attention, CrossesPagesAndSplits) {
  for (const int keys : {1, 2, 31, 32, 33, 255, 256, 257, 511, 512, 513, 1000}) {
    check_shape(GetParam(), {1, 2, 32, keys - 1, 1});
  }
}

TEST_P(Attention, ChunkedPrefillGivesTheBitsOfOneShot) {
  const int rows = 266;
  const TestCache cache(KvDtype::kF16, KvDtype::kF16, 1, 16, rows, 43);
  Rows q(rows, 2 * 16);
  q.fill_normal(44);
  Rows whole(rows, 2 * 16);
  AttentionRun run(cache, 2, 0, rows);
  attach(run, q, whole);
  run.prefill(GetParam(), 0, rows);
  for (const int chunk : {1, 7, 64, 257}) {
    Rows parts(rows, 2 * 16);
    attach(run, q, parts);
    for (int r = 0; r < rows; r += chunk) {
      run.prefill(GetParam(), r, std::min(rows, r + chunk));
    }
    for (int r = 0; r < rows; ++r) {
      ASSERT_TRUE(testing::same_bits(parts.row(r), whole.row(r), 2 * 16)) << chunk << " " << r;
    }
  }
}

TEST_P(Attention, WorksInPlaceAndRepeats) {
  const TestCache cache(KvDtype::kF16, KvDtype::kF16, 2, 64, 70, 45);
  Rows q(70, 4 * 64);
  q.fill_normal(46);
  Rows out(70, 4 * 64);
  AttentionRun run(cache, 4, 0, 70);
  attach(run, q, out);
  run.prefill(GetParam(), 0, 70);
  Rows again = q;
  attach(run, again, again);
  run.prefill(GetParam(), 0, 70);
  for (int r = 0; r < 70; ++r) ASSERT_TRUE(testing::same_bits(again.row(r), out.row(r), 4 * 64));
  again = q;
  attach(run, again, again);
  run.decode(GetParam(), 64, 70);
  for (int r = 64; r < 70; ++r) ASSERT_TRUE(testing::same_bits(again.row(r), out.row(r), 4 * 64));
  EXPECT_TRUE(testing::same_bits(again.row(63), q.row(63), 4 * 64));
}

TEST_P(Attention, LongSequencesStayClose) { check_shape(GetParam(), {1, 2, 32, 16383, 2}); }

TEST_P(Attention, RowWithoutKeysGivesZeros) {
  const TestCache cache(KvDtype::kF16, KvDtype::kF16, 1, 32, 5, 47);
  Rows q(3, 2 * 32);
  q.fill_normal(48);
  AttentionRun run(cache, 2, 2, 3);
  run.positions[1] = -1;
  for (const bool is_decode : {false, true}) {
    Rows out(3, 2 * 32);
    attach(run, q, out);
    if (is_decode) {
      run.decode(GetParam(), 0, 3);
    } else {
      run.prefill(GetParam(), 0, 3);
    }
    for (int i = 0; i < 64; ++i) {
      EXPECT_EQ(out.row(1)[i], 0);
      EXPECT_TRUE(std::isfinite(out.row(0)[i]));
      EXPECT_NE(out.row(2)[i], 0);
    }
  }
}

class AttentionSpecial : public Attention {
 protected:
  // q is (1, 0, 0, ...), so that a key's first value is its score.
  std::vector<float> attend(const TestCache& cache) const {
    AttentionRun run(cache, 1, cache.positions() - 1, 1);
    run.args.scale = 1;
    Rows q(1, 8);
    for (int d = 0; d < 8; ++d) q.row(0)[d] = d == 0 ? 1.0F : 0.0F;
    Rows out(1, 8);
    attach(run, q, out);
    run.decode(GetParam(), 0, 1);
    return {out.row(0), out.row(0) + 8};
  }
  static void set_all(TestCache& cache, bool is_key, float value) {
    for (int t = 0; t < cache.positions(); ++t) {
      for (int d = 0; d < 8; ++d) cache.set(is_key, t, 0, d, value);
    }
  }
};

TEST_P(AttentionSpecial, EqualKeysGiveTheMeanOfTheValues) {
  TestCache cache(KvDtype::kF32, KvDtype::kF32, 1, 8, 300, 51);
  set_all(cache, true, 2);
  for (int t = 0; t < 300; ++t) cache.set(false, t, 0, 3, static_cast<float>(t));
  EXPECT_NEAR(attend(cache)[3], 149.5, 2e-5 * 299);
}

TEST_P(AttentionSpecial, MinusInfinityWeighsNothing) {
  TestCache cache(KvDtype::kF32, KvDtype::kF32, 1, 8, 300, 52);
  set_all(cache, true, 0);
  for (int t = 0; t < 300; ++t) cache.set(true, t, 0, 0, -HUGE_VALF);
  for (int d = 0; d < 8; ++d) cache.set(true, 0, 0, d, 0);
  EXPECT_EQ(attend(cache).size(), 8U);
  for (int t = 0; t < 300; ++t) cache.set(true, t, 0, 0, -HUGE_VALF);
  for (const float v : attend(cache)) EXPECT_EQ(v, 0);  // nothing but -Inf, in two splits
  cache.set(true, 299, 0, 0, -80);                      // one finite score, in the second split
  for (int d = 0; d < 8; ++d) cache.set(false, 299, 0, d, 7);
  for (const float v : attend(cache)) EXPECT_EQ(v, 7);
}

TEST_P(AttentionSpecial, NanAndPlusInfinityShow) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), HUGE_VALF}) {
    for (const int at : {0, 270, 299}) {
      TestCache cache(KvDtype::kF32, KvDtype::kF32, 1, 8, 300, 53);
      set_all(cache, true, 1);
      cache.set(true, at, 0, 0, bad);
      EXPECT_TRUE(std::isnan(attend(cache)[0])) << bad << " at " << at;
    }
  }
}

TEST_P(AttentionSpecial, OneHugeKeyTakesAll) {
  TestCache cache(KvDtype::kF32, KvDtype::kF32, 1, 8, 300, 54);
  set_all(cache, true, -1e30F);
  cache.set(true, 100, 0, 0, 1e30F);
  cache.set(false, 100, 0, 5, 12);
  EXPECT_EQ(attend(cache)[5], 12);
}

const auto kName = [](const auto& variant) { return std::string(variant.param.name); };
INSTANTIATE_TEST_SUITE_P(Variants, Attention,
                         ::testing::ValuesIn(attention_variants().begin(),
                                             attention_variants().end()),
                         kName);
INSTANTIATE_TEST_SUITE_P(Variants, AttentionSpecial,
                         ::testing::ValuesIn(attention_variants().begin(),
                                             attention_variants().end()),
                         kName);

TEST(AttentionSizes, CountSplitsAndRecords) {
  EXPECT_EQ(attention_splits(0), 0);
  EXPECT_EQ(attention_splits(256), 1);
  EXPECT_EQ(attention_splits(257), 2);
  EXPECT_EQ(attention_partial_floats(2, 4, 64, 3), 2U * 4 * 3 * 72);
  EXPECT_EQ(attention_prefill_rows(16, 8), 24);
  EXPECT_EQ(attention_prefill_rows(64, 1), 1);
}

}  // namespace
}  // namespace tern::cpu
