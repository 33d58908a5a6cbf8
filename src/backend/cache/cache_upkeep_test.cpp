// Size bound, eviction order, listing, clear.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>

#include "backend/cache/cache.h"
#include "backend/cache/faults_test.h"

namespace tern::cache {
namespace {

namespace fs = std::filesystem;

void set_age(const std::string& path, int hours) {
  fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::hours(hours));
}

std::uint64_t bytes_below(const OpenedCache& cache) {
  std::uint64_t bytes = 0;
  for (const ListedEntry& entry : cache->list()) bytes += entry.bytes;
  return bytes;
}

TEST(EntryCache, EvictsTheLongestUnusedFirst) {
  const TemporaryFolder folder;
  const std::uint64_t one = [&] {
    const TemporaryFolder probe;
    const OpenedCache cache = open_cache(probe.path());
    cache.put(key_of("00"));
    return bytes_below(cache);
  }();
  Options options = options_for(folder.path());
  options.size_limit = 10 * one + one / 2;
  const OpenedCache cache = open_cache(options);
  std::vector<Key> keys;
  for (int i = 10; i < 20; ++i) {
    keys.push_back(key_of(std::to_string(i)));
    ASSERT_TRUE(cache.put(keys.back()).stored);
    set_age(cache->path_of(keys.back()), 40 - i);
  }
  EXPECT_EQ(cache->list().size(), 10u);
  EXPECT_EQ(cache.get(keys.front()), 1);  // its use is recorded now
  const Key last = key_of("20");
  ASSERT_TRUE(cache.put(last).stored);
  EXPECT_LE(bytes_below(cache), options.size_limit);
  EXPECT_EQ(cache.get(keys[0]), 1);
  EXPECT_EQ(cache.get(keys[1]), 0);
  EXPECT_EQ(cache.get(keys[9]), 1);
  EXPECT_EQ(cache.get(last), 1);
}

TEST(EntryCache, OtherFormatsAndOtherBuildsGoFirst) {
  const TemporaryFolder folder;
  Options options = options_for(folder.path());
  options.size_limit = 100000;
  const Key own = key_of("own");
  const Key generated = *Key::from_lines("cuda", "sm_90a", {{"tern", "1.0 generator"}});
  const Key other = key_of("other", "sm_90a", "0.9");
  const std::string old_format =
      folder.path() + "/tern/kernels/v7/x/y/" + std::string(40, 'b') + ".tkc";
  {
    const OpenedCache cache = open_cache(options);
    ASSERT_TRUE(cache.put(own).stored);
    ASSERT_TRUE(cache.put(generated).stored);
    ASSERT_TRUE(cache.put(other).stored);
    fs::create_directories(fs::path(old_format).parent_path());
    write_file(old_format, std::string(500, 'x'));
    set_age(cache->path_of(own), 1000);
    set_age(cache->path_of(generated), 1000);
  }
  const auto limit_to = [&](std::uint64_t bytes) {
    options.size_limit = bytes;
    open_cache(options)->evict();
  };
  const OpenedCache cache = open_cache(options);
  std::uint64_t total = bytes_below(cache);
  limit_to(total - 1);
  EXPECT_FALSE(fs::exists(old_format));
  EXPECT_TRUE(fs::exists(cache->path_of(other)));
  total = bytes_below(cache);
  limit_to(total - 1);
  EXPECT_FALSE(fs::exists(cache->path_of(other)));
  EXPECT_TRUE(fs::exists(cache->path_of(own)));
  EXPECT_TRUE(fs::exists(cache->path_of(generated)));
}

TEST(EntryCache, WhatIsLargerThanTheBoundIsNotKept) {
  const TemporaryFolder folder;
  Options options = options_for(folder.path());
  options.size_limit = 1000;
  const OpenedCache cache = open_cache(options);
  const Key key = key_of("k");
  EXPECT_FALSE(cache->put(key, PayloadKind::kCubin, {}, bytes_of(std::string(2000, 'x'))).stored);
  EXPECT_TRUE(cache->list().empty());
}

// Many entries: a fan of folders, a cap, and a listing that stays fast.
void expect_many_entries_to_be_fast(int count) {
  const TemporaryFolder folder;
  Options options = options_for(folder.path());
  options.entries_limit = static_cast<std::uint64_t>(count) / 2;
  const OpenedCache cache = open_cache(options);
  const Key first = key_of("first");
  ASSERT_TRUE(cache.put(first).stored);
  const std::string root = fs::path(cache->path_of(first)).parent_path().parent_path();
  set_age(cache->path_of(first), 1);
  for (int i = 0; i < count; ++i) {
    const std::string fan = fmt::format("{:02x}", i % 256);
    if (i < 256) {
      fs::create_directories(root + "/" + fan);
      ::chmod((root + "/" + fan).c_str(), 0700);
    }
    write_file(fmt::format("{}/{}/{}{:038x}.tkc", root, fan, fan, i), "not even an entry");
  }
  const double start = processor_ms();
  EXPECT_EQ(cache->list().size(), static_cast<std::size_t>(count) + 1);
  const double listed = processor_ms();
  EXPECT_GT(cache->evict(), 0u);
  const double evicted = processor_ms();
  EXPECT_LE(cache->list().size(), options.entries_limit);
  EXPECT_EQ(cache.get(first), 1);  // older, but the only one of this build
  // 20 us to list one, 100 us to judge and remove one; sanitizers take several times that.
  EXPECT_LT(listed - start, 0.1 * count + 100);
  EXPECT_LT(evicted - listed, 0.5 * count + 100);
}

TEST(EntryCache, Ps21_ManyEntries) { expect_many_entries_to_be_fast(5000); }
// tools/soak.sh runs what is disabled here.
TEST(EntryCache, DISABLED_Ps21_HundredThousandEntries) { expect_many_entries_to_be_fast(100000); }

// A put does not list the tree each time.
TEST(EntryCache, PutsListTheTreeRarely) {
  const TemporaryFolder folder;
  auto files = std::make_shared<FaultyFileSystem>();
  const OpenedCache cache = open_cache(folder.path(), System{files, system_clock()});
  ASSERT_TRUE(cache.put(key_of("k")).stored);
  const int before = files->calls(Call::kStatusOf) + files->calls(Call::kList);
  for (int i = 0; i < 200; ++i) ASSERT_TRUE(cache.put(key_of(std::to_string(i))).stored);
  const int after = files->calls(Call::kStatusOf) + files->calls(Call::kList);
  EXPECT_LT(after - before, 200 * 6);
}

TEST(EntryCache, ClearRemovesWhatIsOursAndSaysSo) {
  const TemporaryFolder folder;
  const OpenedCache cache = open_cache(folder.path());
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(cache.put(key_of(std::to_string(i))).stored);
    EXPECT_TRUE(cache->lock(key_of(std::to_string(i))).is_held());
  }
  const std::string other_format = cache->root() + "/v9/a/b/" + std::string(40, 'c') + ".tkc";
  fs::create_directories(fs::path(other_format).parent_path());
  write_file(other_format, "x");
  set_age(cache->path_of(key_of("0")), 24 * 40);

  ClearReport report = cache->clear({30, false});
  EXPECT_EQ(report.entries, 1u);
  EXPECT_EQ(cache.get(key_of("0")), 0);
  EXPECT_EQ(cache.get(key_of("1")), 1);

  const KeyLock held = open_cache(folder.path())->lock(key_of("1"));
  report = cache->clear({});
  EXPECT_EQ(report.entries, 4u);
  EXPECT_GT(report.bytes, 1000u);
  EXPECT_EQ(report.locks, 4u);  // the held one stays
  EXPECT_TRUE(fs::exists(other_format));
  report = cache->clear({std::nullopt, true});
  EXPECT_FALSE(fs::exists(other_format));
  // The tree can be used on.
  EXPECT_TRUE(cache.put(key_of("1")).stored);
  EXPECT_EQ(cache.get(key_of("1")), 1);
}

TEST(EntryCache, OnlyTheExaminedFileIsRemoved) {
  const TemporaryFolder folder;
  const OpenedCache cache = open_cache(folder.path());
  const Key key = key_of("k");
  ASSERT_TRUE(cache.put(key).stored);
  const FileMark mark = cache->get(key, PayloadKind::kCubin).entry->mark();
  ASSERT_TRUE(cache.put(key).stored);  // somebody else's repair
  cache->remove(mark);
  EXPECT_EQ(cache.get(key), 1);
  cache->remove(cache->get(key, PayloadKind::kCubin).entry->mark());
  EXPECT_EQ(cache.get(key), 0);
}

}  // namespace
}  // namespace tern::cache
