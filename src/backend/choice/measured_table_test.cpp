// The measured table: what it holds, its text, and that a damaged, foreign or stale text is no
// table.
#include "backend/choice/measured_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace tern::backend {
namespace {

using ::testing::HasSubstr;

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

VariantTime time(std::string name, double us, double predicted_us) {
  VariantTime t;
  t.variant = std::move(name);
  t.median = microseconds(us);
  t.spread = microseconds(us / 50);
  t.predicted = microseconds(predicted_us);
  t.samples = 9;
  t.bandwidth = gigabytes_per_second(12.5);
  t.rate = gigaflop_per_second(88.25);
  return t;
}

TableRow row(std::int64_t m, std::int64_t n, std::vector<VariantTime> times) {
  TableRow r;
  r.problem = {.op = "dense_product",
               .dtypes = "f32 x f16 -> f32",
               .layout = "rows",
               .n = n,
               .k = 576,
               .m = m,
               .alignment = 64};
  r.times = std::move(times);
  r.before = {2.5e9, 51.5};
  r.after = {2.4e9, 52};
  r.date = "2026-11-30";
  r.revision = "0.1.0";
  return r;
}

MeasuredTable table() {
  DeviceRates rates;
  rates.launch = microseconds(1.7);
  rates.peak.fill(gigaflop_per_second(160));
  rates.bandwidth = gigabytes_per_second(21.25);
  rates.cores = 2;
  MeasuredTable t(rates);
  t.put(row(1, 960, {time("avx2", 31, 30), time("openblas", 70, 60)}));
  t.put(row(512, 960, {time("avx2", 9000, 8000), time("openblas", 4000, 4100)}));
  t.put(row(7, 49152, {time("avx2", 1234.5, 1000)}));
  return t;
}

TEST(MeasuredTable, ReadsWhatItWrote) {
  EXPECT_EQ(read_table(key(), write_table(key(), table())).value(), table());
  const MeasuredTable empty;
  EXPECT_EQ(read_table(key(), write_table(key(), empty)).value(), empty);
}

TEST(MeasuredTable, RowsAreFoundByBucket) {
  const MeasuredTable t = table();
  Problem p = row(5, 49152, {}).problem;
  ASSERT_NE(t.find(p), nullptr);
  EXPECT_EQ(t.find(p)->problem.m, 8);
  p.m = 4;
  EXPECT_EQ(t.find(p), nullptr);
  EXPECT_EQ(rows_bucket_name(1) + " " + rows_bucket_name(2) + " " + rows_bucket_name(3) + " " +
                rows_bucket_name(8) + " " + rows_bucket_name(512),
            "1 2 3-4 5-8 257-512");
}

TEST(MeasuredTable, AKeyOfAnotherMachineDriverLibraryOrBuildIsRefusedByName) {
  const std::string text = write_table(key(), table());
  int members = 0;
  visit_key_fields(key(), [&members](std::string_view, const std::string&) { ++members; });
  const auto refused = [&text](TableKey other, std::string_view name) {
    const auto read = read_table(other, text);
    ASSERT_FALSE(read.ok());
    EXPECT_EQ(read.error().code(), ErrorCode::kInvalidFile);
    EXPECT_THAT(read.error().message(), HasSubstr(name));
  };
  int tried = 0;
  const auto each = [&](std::string TableKey::*member, std::string_view name) {
    TableKey other = key();
    other.*member = "another";
    refused(other, name);
    ++tried;
  };
  each(&TableKey::backend, "backend 'cpu'");
  each(&TableKey::architecture, "architecture");
  each(&TableKey::device, "device");
  each(&TableKey::cores, "cores");
  each(&TableKey::memory_class, "memory_class");
  each(&TableKey::driver, "driver 'Linux 6', this is 'another'");
  each(&TableKey::vendor, "vendor");
  each(&TableKey::tern, "tern");
  each(&TableKey::op_set, "op_set");
  EXPECT_EQ(tried, members) << "a member of the key that no test changes";
}

TEST(MeasuredTable, EveryTruncationIsRefused) {
  const std::string text = write_table(key(), table());
  for (std::size_t length = 0; length < text.size(); ++length)
    ASSERT_FALSE(read_table(key(), text.substr(0, length)).ok()) << length;
  EXPECT_FALSE(read_table(key(), text + "x").ok());
  EXPECT_FALSE(read_table(key(), text + text).ok());
}

TEST(MeasuredTable, AChangedByteIsRefusedOrGivesNumbersWithinTheirBounds) {
  const std::string text = write_table(key(), table());
  std::mt19937 random(9);
  int refused = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    std::string damaged = text;
    damaged[at] = static_cast<char>(random());
    const auto read = read_table(key(), damaged);
    if (!read.ok()) {
      ++refused;
      continue;
    }
    for (const TableRow& r : read->rows())
      for (const VariantTime& t : r.times) {
        ASSERT_GT(t.median, Seconds());
        ASSERT_LE(t.median, Seconds(1e30));
        ASSERT_GT(t.samples, 0);
        ASSERT_NE(r.find(r.incumbent), nullptr);
      }
  }
  EXPECT_GT(refused, static_cast<int>(text.size()) / 3);
}

TEST(MeasuredTable, WildNumbersAreRefused) {
  const std::string text = write_table(key(), table());
  for (const char* wild : {"nan", "inf", "-1", "1e999", "0", "", "3.1e-05x"}) {
    std::string changed = text;
    const std::size_t at = changed.find("\t3.1e-05");
    ASSERT_NE(at, std::string::npos);
    changed.replace(at + 1, 7, wild);
    EXPECT_FALSE(read_table(key(), changed).ok()) << wild;
  }
}

TEST(MeasuredTable, TheSameBucketTwiceIsRefused) {
  std::string text = write_table(key(), table());
  const std::size_t first = text.find("row\t");
  const std::size_t second = text.find("row\t", first + 1);
  text.insert(second, text.substr(first, second - first));
  text.replace(text.find("end\t3"), 5, "end\t4");
  const auto read = read_table(key(), text);
  ASSERT_FALSE(read.ok());
  EXPECT_THAT(read.error().message(), HasSubstr("the same bucket twice"));
}

TEST(MeasuredTable, NamesWithTabsAndNewlinesDoNotBreakTheText) {
  TableKey k = key();
  k.device = "A\tProcessor\nrow\t";
  EXPECT_EQ(read_table(k, write_table(k, table())).value(), table());
}

TEST(MeasuredTable, TheFirstCalibrationTakesTheFastest) {
  MeasuredTable t;
  t.put(row(1, 64, {time("a", 100, 1), time("b", 99, 1)}));
  EXPECT_EQ(t.rows()[0].incumbent, "b");
}

TEST(MeasuredTable, AVariantThatIsGoneIsNoIncumbent) {
  MeasuredTable t;
  t.put(row(1, 64, {time("a", 50, 1), time("b", 100, 1)}));
  t.put(row(1, 64, {time("b", 100, 1), time("c", 99, 1)}));
  EXPECT_EQ(t.rows()[0].incumbent, "c");
  EXPECT_EQ(t.rows().size(), 1u);
}

TEST(MeasuredTable, NearNeighboursWeighMore) {
  MeasuredTable t;
  t.put(row(8, 960, {time("a", 20, 10)}));
  t.put(row(512, 960, {time("a", 80, 10)}));
  Problem p = row(16, 960, {}).problem;
  const double near = t.neighbour_ratio(p, "a").value();
  p.m = 256;
  const double far = t.neighbour_ratio(p, "a").value();
  EXPECT_GT(near, 2);
  EXPECT_LT(near, 4);
  EXPECT_GT(far, 4);
  EXPECT_LT(far, 8);
  EXPECT_FALSE(t.neighbour_ratio(p, "b").has_value());
}

}  // namespace
}  // namespace tern::backend
