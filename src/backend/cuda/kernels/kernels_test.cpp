// The table of kernels, their launches and layouts, and the matrix instruction's arithmetic on the
// host.
#include "backend/cuda/kernels/kernels.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <set>

#include "backend/cuda/embed/embedded.h"
#include "backend/gpu/math/packed.h"
#include "backend/gpu/math/quantize.h"
#include "base/half.h"
#include "reference/quantize_i12.h"

namespace tern::cuda {
namespace {

TEST(CudaKernels, TheTableIsInTheOrderOfItsIdsAndNamesAreUnique) {
  std::set<std::string_view> entries;
  for (std::size_t i = 0; i < kKernels.size(); ++i) {
    EXPECT_EQ(static_cast<std::size_t>(kKernels[i].id), i);
    EXPECT_TRUE(entries.insert(kKernels[i].entry).second);
    EXPECT_LE(kKernels[i].params_bytes, Launch::kParamsBytes);
  }
}

TEST(CudaKernels, EveryKernelHasASourceAndEverySourceIncludesOnlyWhatIsEmbedded) {
  std::set<std::string_view> names;
  for (const EmbeddedSource& s : embedded_sources()) names.insert(s.name);
  for (const KernelInfo& kernel : kKernels) {
    bool has_entry = false;
    for (const EmbeddedSource& s : embedded_sources())
      has_entry =
          has_entry || s.text.find(std::string(kernel.entry) + "(") != std::string_view::npos;
    EXPECT_TRUE(has_entry) << kernel.entry;
  }
  int includes = 0;
  for (const EmbeddedSource& s : embedded_sources())
    for (std::size_t at = s.text.find("#include"); at != std::string_view::npos;
         at = s.text.find("#include", at + 1)) {
      const std::size_t begin = s.text.find('"', at);
      const std::string_view name =
          s.text.substr(begin + 1, s.text.find('"', begin + 1) - begin - 1);
      EXPECT_TRUE(names.contains(name)) << s.name << " includes " << name;
      ++includes;
    }
  EXPECT_GT(includes, 10);
}

TEST(CudaKernels, ParameterBlocksHaveNo32BitOffset) {
  for (const EmbeddedSource& s : embedded_sources()) {
    if (!s.name.starts_with("backend/gpu/params/")) continue;
    for (const char* word : {"u32 x;", "u32 y;", "u32 weights;", "u32 records;", "_offset;"}) {
      const std::size_t at = s.text.find(word);
      if (at == std::string_view::npos) continue;
      const std::size_t line = s.text.rfind('\n', at);
      EXPECT_NE(s.text.substr(line, at - line).find("u64"), std::string_view::npos)
          << s.name << ": " << s.text.substr(line + 1, at - line + 10);
    }
  }
}

TEST(GemvGeometry, CoversEveryTileWithinTheLimitsOfABlock) {
  for (const KernelId kernel : {KernelId::kGemvQ1G128, KernelId::kGemvQ1G128Deep})
    for (const std::int64_t outputs : {1, 16, 17, 48, 2048, 4096, 24576, 151669, 248320})
      for (const std::int64_t inputs : {128, 640, 2048, 4096, 12288, 17408, 65536})
        for (const int cores : {1, 8, 132})
          for (const int warps : {0, 1, 8, 16, 24}) {
            const GemvGeometry g = gemv_geometry(kernel, outputs, inputs, cores, warps);
            EXPECT_GE(g.threads, 32U);
            EXPECT_LE(g.threads, static_cast<unsigned>(info(kernel).max_threads));
            EXPECT_EQ(g.threads % 32, 0U);
            EXPECT_GE(g.blocks, 1U);
            const std::int64_t tiles = (outputs + 15) / 16;
            const std::int64_t chunks = (inputs + 511) / 512;
            const std::int64_t per_block = (tiles + g.blocks - 1) / g.blocks;
            EXPECT_EQ(g.shared_bytes, per_block * chunks * 64);
            EXPECT_LE(g.shared_bytes, 48U * 1024U);
          }
}

TEST(GemvGeometry, RowsOfModelsTakeOnePassWithTheVariantThatIsMeantForThem) {
  EXPECT_EQ(gemv_variant(4096), KernelId::kGemvQ1G128);
  EXPECT_EQ(gemv_variant(8192), KernelId::kGemvQ1G128);
  EXPECT_EQ(gemv_variant(12288), KernelId::kGemvQ1G128Deep);
  EXPECT_EQ(gemv_geometry(KernelId::kGemvQ1G128, 4096, 4096, 132).threads, 512U);
  EXPECT_EQ(gemv_geometry(KernelId::kGemvQ1G128, 4096, 4096, 132).blocks, 128U);
  EXPECT_EQ(gemv_geometry(KernelId::kGemvQ1G128Deep, 4096, 12288, 132).threads, 768U);
}

TEST(RecordLayout, HoldsPlanesAndScalesOfWholeChunks) {
  EXPECT_EQ(record_layout(128).scales_offset, 768U);
  EXPECT_EQ(record_layout(128).record_bytes, 1024U);
  EXPECT_EQ(record_layout(4096).scales_offset, 8U * 768U);
  EXPECT_EQ(record_layout(4096).record_bytes, 6400U);
  EXPECT_EQ(record_layout(4097).scales_offset, 9U * 768U);
}

TEST(Tiles16, ReportsTheFirstScaleThatIsNotFinite) {
  std::vector<std::byte> blocks(40 * 2 * 18);
  std::vector<std::byte> tiles(tiles16_bytes(40, 256));
  EXPECT_EQ(repack_tiles16(blocks.data(), 256, 40, tiles.data()), -1);
  const std::uint16_t inf = 0x7C00;
  std::memcpy(&blocks[(21 * 2 + 1) * 18], &inf, 2);
  std::memcpy(&blocks[(33 * 2 + 0) * 18], &inf, 2);
  EXPECT_EQ(repack_tiles16(blocks.data(), 256, 40, tiles.data()), 43);
}

TEST(SharedMath, Binary12BitRuleEqualsTheReference) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<float> x(128);
    const float scale = std::exp2(static_cast<float>(static_cast<int>(random() % 240) - 130));
    for (float& v : x) v = normal(random) * scale;
    std::vector<std::int16_t> q(128);
    std::vector<float> a(1);
    reference::quantize_i12(x, q, a);
    float amax = 0;
    for (const float v : x) amax = std::max(amax, std::fabs(v));
    if (amax < gpu::i12_smallest()) {
      EXPECT_EQ(a[0], 0.0F);
      continue;
    }
    ASSERT_EQ(gpu::i12_scale(amax), a[0]);
    for (std::size_t k = 0; k < x.size(); ++k)
      ASSERT_EQ(gpu::i12_value(x[k], gpu::i12_reciprocal(amax)), q[k]);
  }
  EXPECT_EQ(gpu::i12_smallest(), std::exp2(-100.0F));
  EXPECT_EQ(gpu::i12_value(0.5F, 1.0F), 0);
  EXPECT_EQ(gpu::i12_value(1.5F, 1.0F), 2);
  EXPECT_EQ(gpu::i12_value(-2.5F, 1.0F), -2);
}

// What the four lanes of a quad do with a group, on the host: the instruction's fragments as they
// are documented, the planes where the record has them, the weights where the tile has them.
TEST(SharedMath, FragmentsOfTileAndRecordGiveTheGroupsInteger) {
  std::mt19937 random(4);
  std::vector<std::byte> blocks(16 * 18);
  for (std::byte& b : blocks) b = static_cast<std::byte>(random());
  for (int r = 0; r < 16; ++r) std::memset(&blocks[static_cast<std::size_t>(r) * 18], 0, 2);
  std::vector<std::byte> tile(288);
  ASSERT_EQ(repack_tiles16(blocks.data(), 128, 16, tile.data()), -1);
  std::vector<int> q(128);
  for (int& v : q) v = static_cast<int>(random() % 4095) - 2047;
  const auto plane = [&](int p, int t) {
    std::uint32_t word = 0;
    for (int k = 0; k < 32; ++k)
      word |= static_cast<std::uint32_t>(q[static_cast<std::size_t>(32 * t + k)] >> p & 1) << k;
    return word;
  };
  int sum = 0;
  for (const int v : q) sum += v;
  for (int row = 0; row < 16; ++row) {
    int expected = 0;
    for (int k = 0; k < 128; ++k) {
      const auto byte =
          static_cast<unsigned>(blocks[static_cast<std::size_t>(row * 18 + 2 + k / 8)]);
      expected += (byte >> (k % 8) & 1U) != 0 ? q[static_cast<std::size_t>(k)]
                                              : -q[static_cast<std::size_t>(k)];
    }
    int twice = 0;
    for (int p = 0; p < 12; ++p) {
      int count = 0;
      for (int t = 0; t < 4; ++t) {
        std::uint32_t word = 0;
        std::memcpy(&word, &tile[static_cast<std::size_t>((4 * (row % 8) + t) * 8 + row / 8 * 4)],
                    4);
        count += std::popcount(word & plane(p, t));
      }
      twice += count * 2 * gpu::plane_weight(p);
    }
    EXPECT_EQ(gpu::binary_integer(twice, sum), expected);
  }
}

}  // namespace
}  // namespace tern::cuda
