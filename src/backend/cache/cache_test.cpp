#include "backend/cache/cache.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <thread>

#include "backend/cache/faults_test.h"
#include "backend/cache/single_flight.h"

namespace tern::cache {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kHour = std::int64_t{3600} * 1'000'000'000;

TEST(EntryCache, StoresAndFindsEveryKind) {
  const TemporaryFolder folder;
  const OpenedCache cache = open_cache(folder.path(), System{});  // the real one, to the disk
  for (std::uint32_t number = 1; number <= 5; ++number) {
    const auto kind = static_cast<PayloadKind>(number);
    const Key key = key_of("k" + std::to_string(number));
    EXPECT_FALSE(cache->get(key, kind).entry);
    EXPECT_EQ(cache->get(key, kind).why, "no entry");
    ASSERT_TRUE(cache->put(key, kind, {}, bytes_of(payload_of(key))).stored);
    const Lookup hit = cache->get(key, kind);
    ASSERT_TRUE(hit.entry);
    EXPECT_EQ(text_of(hit.entry->payload()), payload_of(key));
    EXPECT_EQ(hit.entry->kind(), kind);
  }
  EXPECT_TRUE(cache.warnings->empty());
}

TEST(EntryCache, FilesAndFoldersArePrivateAndWhereTheFormatSays) {
  const TemporaryFolder folder;
  const OpenedCache cache = open_cache(folder.path());
  const Key key = key_of("k");
  ASSERT_TRUE(cache.put(key).stored);
  const std::string path = folder.path() + "/tern/kernels/v1/cuda/sm_90a/" + key.fan() + "/" +
                           key.hash().substr(0, 40) + ".tkc";
  EXPECT_EQ(cache->path_of(key), path);
  struct stat status = {};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777u, 0600u);
  for (fs::path up = fs::path(path).parent_path(); up != folder.path(); up = up.parent_path()) {
    ASSERT_EQ(::stat(up.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 07777u, 0700u) << up;
  }
  EXPECT_TRUE(parse_entry(bytes_of(read_file(path))).ok());
}

TEST(EntryCache, AnotherKindOrAnotherKeyIsAMiss) {
  const TemporaryFolder folder;
  const OpenedCache cache = open_cache(folder.path());
  const Key key = key_of("k");
  const Key other = key_of("other");
  ASSERT_TRUE(cache.put(key).stored);
  // As if the hashes of two keys were equal.
  fs::create_directories(fs::path(cache->path_of(other)).parent_path());
  fs::copy_file(cache->path_of(key), cache->path_of(other));
  const Lookup lookup = cache->get(other, PayloadKind::kCubin);
  EXPECT_FALSE(lookup.entry);
  EXPECT_EQ(lookup.why, "the entry has another key");
  ASSERT_TRUE(cache.put(other).stored);
  EXPECT_EQ(cache.get(other), 1);
  EXPECT_FALSE(cache->get(key, PayloadKind::kTuningTable).entry);
}

TEST(EntryCache, ReadOnlyNeverChangesAnything) {
  const TemporaryFolder folder;
  const Key key = key_of("k");
  const Key bad = key_of("bad");
  {
    const OpenedCache writer = open_cache(folder.path());
    ASSERT_TRUE(writer.put(key).stored);
    ASSERT_TRUE(writer.put(bad).stored);
    write_file(writer->path_of(bad), "damaged");
  }
  const std::vector<std::string> before = files_below(folder.path());
  auto files = std::make_shared<FaultyFileSystem>();
  Options options = options_for(folder.path());
  options.mode = Mode::kReadOnly;
  auto clock = std::make_shared<HandClock>();
  clock->offset_ns = 48 * kHour;
  const OpenedCache cache = open_cache(options, System{files, clock});
  EXPECT_EQ(cache.get(key), 1);
  EXPECT_EQ(cache.get(bad), 0);
  EXPECT_FALSE(cache.put(key_of("new")).stored);
  EXPECT_EQ(cache->lock(key).state(), KeyLock::State::kNone);
  EXPECT_EQ(cache->evict(), 0u);
  EXPECT_EQ(cache->clear({}).entries, 0u);
  EXPECT_EQ(files_below(folder.path()), before);
  for (const Call call : {Call::kCreateNew, Call::kOpenLock, Call::kWrite, Call::kTouch,
                          Call::kRename, Call::kRemove, Call::kMakeDirectory}) {
    EXPECT_EQ(files->calls(call), 0);
  }
}

// A damaged entry is a miss and is replaced: every flipped byte, every length.
TEST(EntryCache, Ps03_DamageIsAMissAndIsRepaired) {
  const TemporaryFolder folder;
  const OpenedCache cache = open_cache(folder.path());
  const Key key = key_of("k");
  ASSERT_TRUE(cache.put(key).stored);
  const std::string path = cache->path_of(key);
  const std::string good = read_file(path);
  for (std::size_t i = 0; i < 2 * good.size(); ++i) {
    std::string bad = good;
    if (i < good.size()) {
      bad[i] = static_cast<char>(bad[i] ^ 0x20);
    } else {
      bad.resize(i - good.size());
    }
    write_file(path, bad);
    const Lookup lookup = cache->get(key, PayloadKind::kCubin);
    ASSERT_FALSE(lookup.entry) << i;
    ASSERT_TRUE(lookup.was_bad);
    ASSERT_FALSE(fs::exists(path));
  }
  ASSERT_TRUE(cache.put(key).stored);
  EXPECT_EQ(cache.get(key), 1);
  EXPECT_TRUE(cache.warnings->empty());
}

// A rename that is refused (a file in use by another process) is a put that failed, no more.
TEST(EntryCache, Ps05_SharingViolationIsAFailedPut) {
  const TemporaryFolder folder;
  auto files = std::make_shared<FaultyFileSystem>();
  for (const int error : {-EACCES, -EBUSY, -EPERM}) {
    files->faults = {{Call::kRename, 0, error, false}};
    const OpenedCache cache = open_cache(folder.path(), System{files, system_clock()});
    EXPECT_FALSE(cache.put(key_of("k")).stored);
    EXPECT_FALSE(cache.put(key_of("l")).stored);
    EXPECT_EQ(cache.warnings->size(), 1u);
    EXPECT_TRUE(strays_below(folder.path()).empty());
    files->faults.clear();
    EXPECT_TRUE(cache.put(key_of("k")).stored);
  }
}

// File times decide nothing about validity.
TEST(EntryCache, Ps11_TimesDoNotMatter) {
  const TemporaryFolder folder;
  const OpenedCache cache = open_cache(folder.path());
  const Key key = key_of("k");
  ASSERT_TRUE(cache.put(key).stored);
  for (const int hours : {-24 * 365 * 20, -1, 1, 24 * 365 * 20}) {
    fs::last_write_time(cache->path_of(key),
                        fs::file_time_type::clock::now() + std::chrono::hours(hours));
    EXPECT_EQ(cache.get(key), 1) << hours;
  }
  EXPECT_TRUE(cache.warnings->empty());
}

TEST(EntryCache, UseIsRecordedAtMostOnceAnHour) {
  const TemporaryFolder folder;
  auto files = std::make_shared<FaultyFileSystem>();
  auto clock = std::make_shared<HandClock>();
  const OpenedCache cache = open_cache(folder.path(), System{files, clock});
  const Key key = key_of("k");
  ASSERT_TRUE(cache.put(key).stored);
  EXPECT_EQ(cache.get(key), 1);
  EXPECT_EQ(files->calls(Call::kTouch), 0);
  clock->offset_ns = 2 * kHour;
  EXPECT_EQ(cache.get(key), 1);
  EXPECT_EQ(cache.get(key), 1);
  EXPECT_EQ(files->calls(Call::kTouch), 1);
}

// The file system gives one byte at a time, and takes three.
TEST(EntryCache, Ps45_ShortReadsAndWritesAreContinued) {
  const TemporaryFolder folder;
  auto files = std::make_shared<FaultyFileSystem>();
  files->most_read = 1;
  files->most_written = 3;
  const OpenedCache cache = open_cache(folder.path(), System{files, system_clock()});
  const Key key = key_of("k");
  ASSERT_TRUE(cache.put(key).stored);
  EXPECT_EQ(cache.get(key), 1);
  EXPECT_GT(files->calls(Call::kRead), 400);
  EXPECT_GT(files->calls(Call::kWrite), 100);
}

// Every call of a put fails once, each with several errors: never a wrong byte, nothing left.
TEST(EntryCache, EveryFailingCallOfAPutIsOneWarning) {
  const Key key = key_of("k");
  for (const Call call : {Call::kCreateNew, Call::kWrite, Call::kFlush, Call::kStatus, Call::kClose,
                          Call::kRename, Call::kTryLock, Call::kOpenDirectory, Call::kList}) {
    for (const int error : {-ENOSPC, -EIO, -EDQUOT, -EROFS, -ENOTSUP}) {
      const TemporaryFolder folder;
      auto files = std::make_shared<FaultyFileSystem>();
      const OpenedCache cache = open_cache(folder.path(), System{files, system_clock()});
      files->faults = {{call, 0, error, false}};
      const PutOutcome outcome = cache.put(key);
      EXPECT_EQ(outcome.stored, outcome.why.empty());
      EXPECT_LE(cache.warnings->size(), 1u);
      files->faults.clear();
      EXPECT_EQ(cache.get(key), outcome.stored ? 1 : 0);
      EXPECT_TRUE(strays_below(folder.path()).empty()) << static_cast<int>(call);
      EXPECT_TRUE(cache.put(key).stored);
      EXPECT_EQ(cache.get(key), 1);
    }
  }
}

TEST(EntryCache, EveryFailingCallOfAGetIsAMiss) {
  const Key key = key_of("k");
  for (const Call call :
       {Call::kOpenRead, Call::kStatus, Call::kRead, Call::kStatusOf, Call::kRemove}) {
    for (const int error : {-EIO, -EACCES, -ESTALE, -ENOENT}) {
      const TemporaryFolder folder;
      ASSERT_TRUE(open_cache(folder.path()).put(key).stored);
      auto files = std::make_shared<FaultyFileSystem>();
      const OpenedCache cache = open_cache(folder.path(), System{files, system_clock()});
      files->faults = {{call, 0, error, false}};
      EXPECT_GE(cache.get(key), 0);
      files->faults.clear();
      EXPECT_GE(cache.get(key), 0);
    }
  }
}

// Entries of a build that was, and of the one that is, live side by side.
TEST(EntryCache, Ps32_TwoBuildsShareAFolder) {
  const TemporaryFolder folder;
  Options old_options = options_for(folder.path());
  old_options.tern = "0.9";
  const Key old_key = key_of("k", "sm_90a", "0.9");
  const Key new_key = key_of("k", "sm_90a", "1.0");
  for (int round = 0; round < 4; ++round) {
    const OpenedCache old_cache = open_cache(old_options);
    const OpenedCache new_cache = open_cache(folder.path());
    EXPECT_EQ(old_cache.get(old_key), round == 0 ? 0 : 1);
    EXPECT_EQ(new_cache.get(new_key), round == 0 ? 0 : 1);
    EXPECT_TRUE(old_cache.put(old_key).stored);
    EXPECT_TRUE(new_cache.put(new_key).stored);
  }
}

// A moved or copied folder hits: nothing in it names its place.
TEST(EntryCache, Ps25_AFolderCanBeCopiedElsewhere) {
  const TemporaryFolder here;
  const TemporaryFolder there;
  {
    const OpenedCache cache = open_cache(here.path());
    for (int i = 0; i < 20; ++i) ASSERT_TRUE(cache.put(key_of(std::to_string(i))).stored);
  }
  fs::copy(here.path() + "/tern", there.path() + "/tern", fs::copy_options::recursive);
  const OpenedCache copy = open_cache(there.path());
  for (int i = 0; i < 20; ++i) EXPECT_EQ(copy.get(key_of(std::to_string(i))), 1);
}

TEST(EntryCache, OneComputationPerKeyAndErrorsAreKept) {
  SingleFlight<int> flights;
  std::atomic<int> computed = 0;
  std::vector<std::thread> threads;
  std::atomic<int> sum = 0;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      sum += *flights.run("key", [&] {
        ++computed;
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        return std::pair(7, true);
      });
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(computed, 1);
  EXPECT_EQ(sum, 56);
  flights.forget("key");
  EXPECT_EQ(*flights.run("key", [] { return std::pair(8, false); }), 8);
  EXPECT_EQ(*flights.run("key", [] { return std::pair(9, false); }), 9);
  EXPECT_THROW(flights.run("key", []() -> std::pair<int, bool> { throw 1; }), int);
  EXPECT_EQ(*flights.run("key", [] { return std::pair(10, true); }), 10);
}

}  // namespace
}  // namespace tern::cache
