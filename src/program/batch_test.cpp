// Tests of the batch block.
#include "program/batch.h"

#include <gtest/gtest.h>

namespace tern::program {
namespace {

TEST(BatchBlock, PutsTwoPromptsOfDifferentLengthIntoOneStep) {
  BatchBlock b;
  const std::int32_t first[] = {7, 8, 9};
  const std::int32_t second[] = {5};
  const std::uint32_t pages_a[] = {4};
  const std::uint32_t pages_b[] = {2, 0};
  b.add_sequence({.row_count = 3, .kv_length = 0, .page_count = 1}, first, pages_a);
  b.add_sequence({.row_count = 1, .kv_length = 40, .page_count = 2}, second, pages_b);
  EXPECT_EQ(b.rows(), 4);
  EXPECT_EQ(b.position, (std::vector<std::int32_t>{0, 1, 2, 40}));
  EXPECT_EQ(b.sequence, (std::vector<std::uint32_t>{0, 0, 0, 1}));
  EXPECT_EQ(b.sequences[1].first_row, 3U);
  EXPECT_EQ(b.sequences[1].page_begin, 1U);
  EXPECT_EQ(b.pages, (std::vector<std::uint32_t>{4, 2, 0}));
}

TEST(BatchBlock, KeepsItsMemoryWhenCleared) {
  BatchBlock b;
  b.reserve({8, 2, 1, 4});
  const auto* where = b.ids.data();
  const std::int32_t id = 3;
  const std::uint32_t page = 0;
  for (int i = 0; i < 3; ++i) {
    b.clear();
    b.add_sequence({.row_count = 1, .page_count = 1}, &id, &page);
    EXPECT_EQ(b.ids.data(), where);
  }
}

TEST(BatchLayout, DependsOnTheLimitsAlone) {
  const BatchLimits limits{512, 4, 8, 128};
  const BatchLayout a = batch_layout(limits);
  EXPECT_EQ(a.ids, 256U);
  EXPECT_EQ(a.sequence, 256U + 2048U);
  EXPECT_GE(a.bytes, a.output_rows + 32);
  EXPECT_EQ(a.bytes % 256, 0U);
  EXPECT_EQ(batch_layout(limits).pages, a.pages);
}

}  // namespace
}  // namespace tern::program
