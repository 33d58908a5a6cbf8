// A table on the real cache in a folder of its own: kept, found again, and ignored with one message
// wherever it is damaged, foreign or stale.
#include "backend/choice/table_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace tern::backend {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

TableKey key() {
  return {"cpu",
          "x86-64 AVX2",
          "A Processor",
          "2",
          "16 GiB",
          "Linux 6",
          "OpenBLAS 0.3.21 Haswell",
          "0.1.0",
          "1"};
}

MeasuredTable table(double us = 31) {
  TableRow row;
  row.problem = {
      .op = "dense_product", .dtypes = "f32", .layout = "rows", .n = 64, .k = 64, .m = 1};
  VariantTime t;
  t.variant = "avx2";
  t.median = t.predicted = microseconds(us);
  t.samples = 5;
  row.times = {t};
  MeasuredTable made;
  made.put(row);
  return made;
}

class TableStore : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::temp_directory_path() /
              (std::string("tern-table-") + info->name() + "-" + std::to_string(::getpid()));
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::shared_ptr<cache::Cache> open(cache::Mode mode = cache::Mode::kOn) {
    cache::Options options;
    options.base = cache::Base{folder_.string(), true, {}};
    options.mode = mode;
    options.tern = "0.1.0";
    return cache::Cache::open(options).value();
  }
  std::string saved() { return save_table(*open(), key(), table()).value(); }

  std::filesystem::path folder_;
};

TEST_F(TableStore, WhatWasSavedIsFoundByAnotherProcess) {
  saved();
  const LoadedTable loaded = load_table(*open(cache::Mode::kReadOnly), key());
  ASSERT_TRUE(loaded.table);
  EXPECT_EQ(*loaded.table, table());
  EXPECT_THAT(loaded.message, IsEmpty());
  save_table(*open(), key(), table(17)).value();
  EXPECT_EQ(*load_table(*open(), key()).table, table(17)) << "a new calibration replaces the old";
}

TEST_F(TableStore, NoTableIsNothingToSpeakOf) {
  const LoadedTable loaded = load_table(*open(cache::Mode::kReadOnly), key());
  EXPECT_FALSE(loaded.table);
  EXPECT_THAT(loaded.message, IsEmpty());
}

TEST_F(TableStore, StaleTablesAreNamedOnce) {
  saved();
  TableKey newer = key();
  newer.driver = "Linux 7";
  const LoadedTable loaded = load_table(*open(cache::Mode::kReadOnly), newer);
  EXPECT_FALSE(loaded.table);
  EXPECT_EQ(loaded.message,
            "the calibration of this device is ignored: it was measured under other conditions "
            "(driver was 'Linux 6' and is 'Linux 7'); 'tern calibrate' makes it anew");
}

TEST_F(TableStore, TheNearestOfSeveralStaleTablesIsNamed) {
  TableKey far = key();
  far.tern = "0.0.1";
  far.driver = "Linux 5";
  save_table(*open(), far, table()).value();
  saved();
  TableKey now = key();
  now.vendor = "none";
  EXPECT_THAT(load_table(*open(), now).message, HasSubstr("(vendor was 'OpenBLAS 0.3.21 Haswell'"));
}

TEST_F(TableStore, TablesOfOtherDevicesAreTheirOwnAffair) {
  saved();
  TableKey processor = key();
  processor.device = "Another Processor";
  TableKey threads = key();
  threads.cores = "1";
  for (const TableKey& other : {processor, threads}) {
    const LoadedTable loaded = load_table(*open(), other);
    EXPECT_FALSE(loaded.table);
    EXPECT_THAT(loaded.message, IsEmpty());
  }
}

// Truncated, overwritten and foreign files under the entry's own name.
TEST_F(TableStore, DamagedEntriesAreIgnoredWithOneMessage) {
  const std::string path = saved();
  std::ifstream in(path, std::ios::binary);
  const std::string good((std::istreambuf_iterator<char>(in)), {});
  ASSERT_GT(good.size(), 200u);
  const auto check = [&](const std::string& bytes, const std::string& what) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
    const LoadedTable loaded = load_table(*open(cache::Mode::kReadOnly), key());
    EXPECT_FALSE(loaded.table) << what;
    EXPECT_THAT(loaded.message, HasSubstr("the calibration of this device is ignored")) << what;
  };
  for (const std::size_t length :
       {std::size_t{0}, std::size_t{50}, good.size() / 2, good.size() - 1})
    check(good.substr(0, length), "truncated");
  for (std::size_t at = 0; at < good.size(); at += 37) {
    std::string flipped = good;
    flipped[at] = static_cast<char>(flipped[at] ^ 1);
    check(flipped, "flipped at " + std::to_string(at));
  }
  check("tern choice table 1\n", "foreign");
  check(good + good, "twice");
}

// A whole and verified entry whose payload is the table of another key, as a copied file would be.
TEST_F(TableStore, AVerifiedEntryWithAnotherKeyInsideIsIgnored) {
  TableKey other = key();
  other.cores = "64";
  const std::string text = write_table(other, table());
  const auto cache = open();
  const cache::Key name = cache::make_key("choice", "cpu", key()).value();
  ASSERT_TRUE(cache->put(name, cache::PayloadKind::kTuningTable, {}, std::as_bytes(std::span(text)))
                  .stored);
  const LoadedTable loaded = load_table(*cache, key());
  EXPECT_FALSE(loaded.table);
  EXPECT_THAT(loaded.message, HasSubstr("cores '64', this is '2'"));
}

TEST_F(TableStore, AFolderThatCannotBeWrittenIsAnErrorOfSavingAlone) {
  const auto cache = open(cache::Mode::kReadOnly);
  const auto outcome = save_table(*cache, key(), table());
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.error().code(), ErrorCode::kIo);
  EXPECT_FALSE(load_table(*cache, key()).table);
}

}  // namespace
}  // namespace tern::backend
