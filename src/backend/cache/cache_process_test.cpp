// Several processes on one folder: crashes at every call, locks, random interleavings.
#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <random>
#include <thread>

#include "backend/cache/cache.h"
#include "backend/cache/faults_test.h"

namespace tern::cache {
namespace {

namespace fs = std::filesystem;

constexpr int kWrongKernel = 77;

// What "right and clean" means after a crash: a fresh process stores and reads every key, and
// leaves neither temporary files nor scratch folders.
void expect_right_and_clean(const std::string& folder, const Key& key, const std::string& where) {
  const OpenedCache fresh = open_cache(folder);
  EXPECT_GE(fresh.get(key), 0) << where;
  EXPECT_TRUE(fresh.put(key).stored) << where;
  EXPECT_TRUE(fresh->make_scratch(key).ok()) << where;
  EXPECT_EQ(fresh.get(key), 1) << where;
  EXPECT_TRUE(fresh.warnings->empty()) << where;
  EXPECT_TRUE(strays_below(folder).empty()) << where;
}

int store_one(const std::string& folder, const std::shared_ptr<FaultyFileSystem>& files,
              const Key& key) {
  const OpenedCache cache = open_cache(folder, System{files, system_clock()});
  const KeyLock lock = cache->lock(key);
  const Result<ScratchFolder> scratch = cache->make_scratch(key);
  if (scratch.ok()) write_file(scratch->path() + "/source.cu", "source");
  if (cache.get(key) < 0) return kWrongKernel;
  cache.put(key);
  return cache.get(key) < 0 ? kWrongKernel : 0;
}

// The process is killed before and after each system call of a start, lock, scratch, put and get.
TEST(EntryCache, Ps24_KilledAtEachSystemCall) {
  const Key key = key_of("k");
  int calls = 0;
  {
    const TemporaryFolder folder;
    auto files = std::make_shared<FaultyFileSystem>();
    ASSERT_EQ(store_one(folder.path(), files, key), 0);
    calls = files->calls();
  }
  ASSERT_GT(calls, 40);
  for (const bool is_after : {false, true}) {
    for (const bool had_entry : {false, true}) {
      for (int nth = 1; nth <= calls; ++nth) {
        const TemporaryFolder folder;
        if (had_entry) {
          ASSERT_TRUE(open_cache(folder.path()).put(key).stored);
        }
        const int ended = in_child([&] {
          auto files = std::make_shared<FaultyFileSystem>();
          files->faults = {{std::nullopt, nth, 0, is_after}};
          return store_one(folder.path(), files, key);
        });
        ASSERT_TRUE(ended == -SIGKILL || (ended == 0 && had_entry)) << nth << ": " << ended;
        expect_right_and_clean(folder.path(), key,
                               fmt::format("call {} {} {}", nth, is_after, had_entry));
      }
    }
  }
}

// Sixteen processes and 200 keys: no error, no wrong byte, nothing left behind.
TEST(EntryCache, Ps01_ManyProcessesStoreTheSameKeys) {
  const TemporaryFolder folder;
  std::vector<pid_t> children;
  for (unsigned process = 0; process < 16; ++process) {
    children.push_back(start_child([&] {
      auto files = std::make_shared<FaultyFileSystem>();
      files->as_process = 7;  // as in containers: every one thinks it is process 7
      const OpenedCache cache = open_cache(folder.path(), System{files, system_clock()});
      std::vector<int> order(200);
      for (int i = 0; i < 200; ++i) order[static_cast<std::size_t>(i)] = i;
      std::shuffle(order.begin(), order.end(), std::mt19937(process));
      for (const int i : order) {
        const Key key = key_of(std::to_string(i));
        if (!cache.put(key).stored) return 1;
        if (cache.get(key) != 1) return 2;
      }
      return cache.warnings->empty() ? 0 : 3;
    }));
  }
  for (const pid_t child : children) EXPECT_EQ(wait_for_child(child), 0);
  const OpenedCache cache = open_cache(folder.path());
  for (int i = 0; i < 200; ++i) EXPECT_EQ(cache.get(key_of(std::to_string(i))), 1);
  EXPECT_TRUE(strays_below(folder.path()).empty());
  EXPECT_EQ(cache->list().size(), 200u);
}

// Equal process ids, one folder: names have random bits and are made exclusively.
TEST(EntryCache, Ps02_EqualProcessIdsDoNotMeet) {
  const TemporaryFolder folder;
  const Key key = key_of("k");
  std::vector<pid_t> children;
  for (int process = 0; process < 4; ++process) {
    children.push_back(start_child([&] {
      auto files = std::make_shared<FaultyFileSystem>();
      files->as_process = 1;
      files->most_written = 16;  // so that writes of one entry overlap
      const OpenedCache cache = open_cache(folder.path(), System{files, system_clock()});
      for (int i = 0; i < 50; ++i) {
        if (!cache.put(key).stored) return 1;
        if (cache.get(key) != 1) return 2;
        const Result<ScratchFolder> scratch = cache->make_scratch(key);
        if (!scratch.ok()) return 3;
        if (!fs::is_empty(scratch->path())) return 4;
        write_file(scratch->path() + "/mine", "");
      }
      return 0;
    }));
  }
  for (const pid_t child : children) EXPECT_EQ(wait_for_child(child), 0);
  EXPECT_TRUE(strays_below(folder.path()).empty());
}

// The holder is killed, its lock file stays: the next one goes on at once.
TEST(EntryCache, Ps06_TheLockOfAKilledHolderIsFree) {
  const TemporaryFolder folder;
  const Key key = key_of("k");
  int ready[2] = {-1, -1};
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = start_child([&] {
    const OpenedCache cache = open_cache(folder.path());
    const KeyLock lock = cache->lock(key);
    const char byte = lock.is_held() ? 'y' : 'n';
    if (::write(ready[1], &byte, 1) != 1) return 1;
    ::pause();
    return 0;
  });
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  ASSERT_EQ(byte, 'y');
  Options options = options_for(folder.path());
  options.lock_wait_ms = 3000;
  auto clock = std::make_shared<HandClock>();
  const OpenedCache cache = open_cache(options, System{posix_file_system(), clock});
  // While it lives: a notice that names it, a bounded wait, and no second wait for this key.
  EXPECT_EQ(cache->lock(key).state(), KeyLock::State::kTimedOut);
  EXPECT_EQ(clock->steady, 3000 * std::int64_t{1'000'000});
  ASSERT_EQ(cache.notices->size(), 1u);
  EXPECT_NE(cache.notices->front().find(fmt::format("process {}", child)), std::string::npos);
  EXPECT_EQ(cache->lock(key).state(), KeyLock::State::kTimedOut);
  EXPECT_EQ(clock->steady, 3000 * std::int64_t{1'000'000});
  ::kill(child, SIGKILL);
  EXPECT_EQ(wait_for_child(child), -SIGKILL);
  const OpenedCache next = open_cache(options, System{posix_file_system(), clock});
  EXPECT_EQ(next->lock(key).state(), KeyLock::State::kHeld);
  EXPECT_EQ(clock->steady, 3000 * std::int64_t{1'000'000});
  EXPECT_TRUE(next.notices->empty());
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST(EntryCache, LocksExcludeOneAnotherAndMayBeUnknown) {
  const TemporaryFolder folder;
  Options options = options_for(folder.path());
  options.lock_wait_ms = 0;
  const OpenedCache first = open_cache(options);
  const OpenedCache second = open_cache(options);
  KeyLock lock = first->lock(key_of("k"));
  EXPECT_EQ(lock.state(), KeyLock::State::kHeld);
  EXPECT_EQ(second->lock(key_of("other")).state(), KeyLock::State::kHeld);
  EXPECT_EQ(second->lock(key_of("k")).state(), KeyLock::State::kTimedOut);
  lock.release();
  EXPECT_EQ(open_cache(options)->lock(key_of("k")).state(), KeyLock::State::kHeld);
  for (const int error : {-ENOLCK, -EOPNOTSUPP, -EINVAL}) {
    auto files = std::make_shared<FaultyFileSystem>();
    files->faults = {{Call::kTryLock, 0, error, false}};
    const OpenedCache cache = open_cache(options, System{files, system_clock()});
    EXPECT_TRUE(cache->lock(key_of("k")).is_held());
  }
}

// A child that a compiler run leaves behind does not keep the lock.
TEST(EntryCache, TheLockIsClosedInOtherPrograms) {
  const TemporaryFolder folder;
  Options options = options_for(folder.path());
  options.lock_wait_ms = 0;
  const Key key = key_of("k");
  pid_t child = -1;
  {
    const OpenedCache cache = open_cache(options);
    const KeyLock lock = cache->lock(key);
    child = ::fork();
    if (child == 0) {
      ::execl("/bin/sleep", "sleep", "30", nullptr);
      ::_exit(1);
    }
    // Until the other program runs, the child still has the descriptor.
    for (int i = 0; i < 500; ++i) {
      const std::string name = read_file(fmt::format("/proc/{}/comm", child));
      if (name == "sleep\n") break;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }
  EXPECT_EQ(open_cache(options)->lock(key).state(), KeyLock::State::kHeld);
  ::kill(child, SIGKILL);
  wait_for_child(child);
}

// Eight writers and eight readers of one key: every read is whole or a miss.
void read_and_write_one_key(std::chrono::milliseconds duration) {
  const TemporaryFolder folder;
  const Key key = key_of("k");
  const OpenedCache cache = open_cache(folder.path());
  std::atomic<bool> is_over = false;
  std::atomic<int> hits = 0;
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 16; ++i) {
    threads.emplace_back([&, i] {
      const OpenedCache own = i % 4 == 0 ? open_cache(folder.path()) : cache;
      for (int round = 0; !is_over; ++round) {
        if (i % 2 == 0) {
          own.put(key);
          if (round % 16 == 0) own->remove({own->path_of(key), 0, 0, 0, 0});
        } else {
          const int found = own.get(key);
          if (found > 0) ++hits;
          if (found < 0) ++wrong;
        }
      }
    });
  }
  std::this_thread::sleep_for(duration);
  is_over = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(hits, 0);
  EXPECT_TRUE(cache.warnings->empty());
  EXPECT_TRUE(strays_below(folder.path()).empty());
}

TEST(EntryCache, Ps18_ReadersAndWritersOfOneKey) {
  read_and_write_one_key(std::chrono::milliseconds(5000));
}
// tools/soak.sh runs what is disabled here.
TEST(EntryCache, DISABLED_Ps18_ReadersAndWritersForMinutes) {
  read_and_write_one_key(std::chrono::minutes(2));
}

// One process of a random mix: put, get, evict, clear, scratch, and sometimes its own death.
int random_process(const std::string& folder, unsigned seed) {
  std::mt19937 random(seed);
  auto files = std::make_shared<FaultyFileSystem>();
  if (random() % 3 == 0) {
    files->faults = {{std::nullopt, static_cast<int>(random() % 400) + 1, 0, random() % 2 == 0}};
  } else if (random() % 2 == 0) {
    files->faults = {{static_cast<Call>(random() % 18), static_cast<int>(random() % 6) + 1,
                      random() % 2 == 0 ? -EIO : -ENOSPC, false}};
  }
  files->most_read = random() % 2 == 0 ? 7 : SIZE_MAX;
  files->most_written = random() % 2 == 0 ? 31 : SIZE_MAX;
  Options options = options_for(folder);
  options.size_limit = 8000;
  options.lock_wait_ms = 20;
  const OpenedCache cache = open_cache(options, System{files, system_clock()});
  for (int step = 0; step < 25; ++step) {
    const Key key = key_of(std::to_string(random() % 12));
    const unsigned what = static_cast<unsigned>(random() % 16);
    if (what < 6) {
      cache.put(key);
    } else if (what < 12) {
      if (cache.get(key) < 0) return kWrongKernel;
    } else if (what == 12) {
      cache->evict();
    } else if (what == 13) {
      cache->clear({});
    } else {
      const KeyLock lock = cache->lock(key);
      const Result<ScratchFolder> scratch = cache->make_scratch(key);
      cache.put(key);
    }
  }
  return 0;
}

void run_seeds(unsigned first, unsigned count) {
  for (unsigned seed = first; seed < first + count; ++seed) {
    const TemporaryFolder folder;
    std::vector<pid_t> children;
    for (unsigned process = 0; process < 4; ++process) {
      children.push_back(
          start_child([&, process] { return random_process(folder.path(), seed * 4 + process); }));
    }
    for (const pid_t child : children) {
      const int ended = wait_for_child(child);
      ASSERT_TRUE(ended == 0 || ended == -SIGKILL) << "seed " << seed << ": " << ended;
    }
    const OpenedCache fresh = open_cache(folder.path());
    for (int i = 0; i < 12; ++i) {
      const Key key = key_of(std::to_string(i));
      ASSERT_GE(fresh.get(key), 0) << "seed " << seed;
      ASSERT_TRUE(fresh.put(key).stored) << "seed " << seed;
      ASSERT_TRUE(fresh->make_scratch(key).ok());
      ASSERT_EQ(fresh.get(key), 1) << "seed " << seed;
    }
    fresh->clear({});
    ASSERT_TRUE(strays_below(folder.path()).empty()) << "seed " << seed;
    ASSERT_TRUE(fresh.warnings->empty()) << "seed " << seed;
  }
}

TEST(EntryCache, RandomInterleavingsOfFourProcesses) { run_seeds(1, 50); }
// tools/soak.sh runs what is disabled here.
TEST(EntryCache, DISABLED_RandomInterleavingsOfFourProcessesAllSeeds) { run_seeds(1, 500); }

}  // namespace
}  // namespace tern::cache
