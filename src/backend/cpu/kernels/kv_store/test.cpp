// Every variant of kv_store: where values land, how they round, what is reported.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "backend/cpu/kernels/elementwise/test_rows.h"
#include "backend/cpu/kernels/kv_store/kv_store.h"
#include "base/half.h"

namespace tern::cpu {
namespace {

using testing::Rows;

class KvStore : public ::testing::TestWithParam<KvStoreVariant> {
 protected:
  void SetUp() override {
    if (!cpu_features().contains(GetParam().needs)) GTEST_SKIP() << "needs another CPU";
  }
};

constexpr std::byte kPoison{0xA5};

// A pool in which K and V of this layer lie inside of wider pages.
struct Pool {
  Pool(KvDtype k, KvDtype v, int kv_heads, int head_dim, int pages) {
    const std::uint64_t k_bytes = kv_page_bytes(k, kv_heads, head_dim);
    const std::uint64_t stride = 64 + k_bytes + kv_page_bytes(v, kv_heads, head_dim);
    memory.assign(static_cast<std::size_t>(stride) * static_cast<std::size_t>(pages), kPoison);
    view = {memory.data() + 64, memory.data() + 64 + k_bytes, stride, k, v, kv_heads, head_dim};
  }
  [[nodiscard]] static float at(const std::byte* base, KvDtype dtype, const KvView& kv,
                                std::uint32_t page, int slot, int head, int d) {
    const std::size_t i = static_cast<std::size_t>((head * 32 + slot) * kv.head_dim + d);
    const std::byte* from = base + page * kv.page_stride_bytes + i * kv_element_bytes(dtype);
    if (dtype == KvDtype::kF32) {
      float value = 0;
      std::memcpy(&value, from, 4);
      return value;
    }
    std::uint16_t half = 0;
    std::memcpy(&half, from, 2);
    return half_to_float(half);
  }
  [[nodiscard]] std::size_t changed_bytes() const {
    return memory.size() -
           static_cast<std::size_t>(std::count(memory.begin(), memory.end(), kPoison));
  }
  std::vector<std::byte> memory;
  KvView view;
};

TEST_P(KvStore, PutsRowsOfSeveralSequencesIntoTheirPages) {
  const int heads = 3;
  const int dim = 24;
  for (const KvDtype k_type : {KvDtype::kF32, KvDtype::kF16}) {
    for (const KvDtype v_type : {KvDtype::kF32, KvDtype::kF16}) {
      Pool pool(k_type, v_type, heads, dim, 5);
      const std::uint32_t first[] = {4, 1};
      const std::uint32_t second[] = {2, 0};
      const std::uint32_t* const pages[] = {first, first, second, second, second};
      const std::int32_t positions[] = {31, 32, 0, -1, 63};
      Rows k(5, heads * dim);
      Rows v(5, heads * dim, 1);
      k.fill_normal(31);
      v.fill_normal(32);
      const KvStoreArgs args{pool.view,  k.data(), k.stride(), v.data(),
                             v.stride(), pages,    positions};
      EXPECT_EQ(GetParam().run(args, 0, 2), 0U);
      EXPECT_EQ(GetParam().run(args, 2, 5), 0U);
      const std::uint32_t page_of[] = {4, 1, 2, 0, 0};
      const int slot_of[] = {31, 0, 0, -1, 31};
      for (int r = 0; r < 5; ++r) {
        if (slot_of[r] < 0) continue;
        for (int h = 0; h < heads; ++h) {
          for (int d = 0; d < dim; ++d) {
            const float key = k.row(r)[h * dim + d];
            const float value = v.row(r)[h * dim + d];
            const auto rounded = [](float x) { return half_to_float(float_to_half(x)); };
            ASSERT_EQ(Pool::at(pool.view.k_base, k_type, pool.view, page_of[r], slot_of[r], h, d),
                      k_type == KvDtype::kF16 ? rounded(key) : key);
            ASSERT_EQ(Pool::at(pool.view.v_base, v_type, pool.view, page_of[r], slot_of[r], h, d),
                      v_type == KvDtype::kF16 ? rounded(value) : value);
          }
        }
      }
      // Nothing else was touched: at most the four rows' bytes differ from the poison.
      const std::size_t row_bytes = static_cast<std::size_t>(heads * dim) *
                                    (kv_element_bytes(k_type) + kv_element_bytes(v_type));
      EXPECT_LE(pool.changed_bytes(), 4 * row_bytes);
      EXPECT_GE(pool.changed_bytes(), 4 * row_bytes * 9 / 10);
    }
  }
}

TEST_P(KvStore, RoundsToEvenAndReportsWhatDoesNotFit) {
  Pool pool(KvDtype::kF16, KvDtype::kF16, 1, 8, 1);
  const std::uint32_t page = 0;
  const std::uint32_t* const pages[] = {&page};
  const std::int32_t positions[] = {0};
  const float v[8] = {};
  const auto store = [&](std::vector<float> k) {
    return GetParam().run({pool.view, k.data(), 8, v, 8, pages, positions}, 0, 1);
  };
  const auto stored = [&](int d) {
    return Pool::at(pool.view.k_base, KvDtype::kF16, pool.view, 0, 0, 0, d);
  };
  EXPECT_EQ(store({2049, 2051, 65519, -65519, 0x1p-24F, 0x1p-25F, 0x1.8p-25F, -0.0F}), 0U);
  EXPECT_EQ(stored(0), 2048);  // ties to even
  EXPECT_EQ(stored(1), 2052);
  EXPECT_EQ(stored(2), 65504);
  EXPECT_EQ(stored(4), 0x1p-24F);
  EXPECT_EQ(stored(5), 0);
  EXPECT_EQ(stored(6), 0x1p-24F);
  EXPECT_TRUE(std::signbit(stored(7)));
  EXPECT_EQ(store({0, 0, 0, 0, 0, 0, 0, 65520}), kKvStoreOverflow);
  EXPECT_EQ(stored(7), std::numeric_limits<float>::infinity());
  EXPECT_EQ(store({0, -1e30F, 0, 0, 0, 0, 0, 0}), kKvStoreOverflow);
  EXPECT_EQ(store({std::nanf(""), 0, 0, 0, 0, 0, 0, 0}), kKvStoreNotFinite);
  EXPECT_TRUE(std::isnan(stored(0)));
  EXPECT_EQ(store({-HUGE_VALF, 0, 70000, 0, 0, 0, 0, 0}), kKvStoreNotFinite | kKvStoreOverflow);
}

TEST_P(KvStore, F32KeepsEveryBit) {
  Pool pool(KvDtype::kF32, KvDtype::kF32, 1, 8, 1);
  const std::uint32_t page = 0;
  const std::uint32_t* const pages[] = {&page};
  const std::int32_t positions[] = {5};
  const float k[8] = {1e30F, 0x1p-140F, -0.0F, 3, 4, 5, 6, 7};
  EXPECT_EQ(GetParam().run({pool.view, k, 8, k, 8, pages, positions}, 0, 1), 0U);
  EXPECT_EQ(std::memcmp(pool.view.k_base + 5 * 8 * 4, k, sizeof k), 0);
  EXPECT_EQ(std::memcmp(pool.view.v_base + 5 * 8 * 4, k, sizeof k), 0);
}

INSTANTIATE_TEST_SUITE_P(Variants, KvStore,
                         ::testing::ValuesIn(kv_store_variants().begin(),
                                             kv_store_variants().end()),
                         [](const auto& variant) { return std::string(variant.param.name); });

}  // namespace
}  // namespace tern::cpu
