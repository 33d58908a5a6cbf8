// Folders that are not as they should be: foreign, linked, open to others, missing, read-only.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>

#include "backend/cache/cache.h"
#include "backend/cache/faults_test.h"

namespace tern::cache {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kDay = std::int64_t{24} * 3600 * 1'000'000'000;

unsigned mode_of(const std::string& path) {
  struct stat status = {};
  return ::lstat(path.c_str(), &status) == 0 ? status.st_mode & 07777u : 0;
}

// A folder that others may write to turns the disk tier off; its mode is not touched.
TEST(EntryCache, Ps15_FolderOpenToOthersIsRefused) {
  const Key key = key_of("k");
  for (const char* part : {"tern", "tern/kernels", "tern/kernels/v1", "tern/kernels/v1/cuda",
                           "tern/kernels/v1/cuda/sm_90a"}) {
    for (const unsigned mode : {0777u, 0770u, 0702u}) {
      const TemporaryFolder folder;
      ASSERT_TRUE(open_cache(folder.path()).put(key).stored);
      const std::string path = folder.path() + "/" + part;
      ::chmod(path.c_str(), mode);
      const OpenedCache cache = open_cache(folder.path());
      EXPECT_EQ(cache.get(key), 0);
      EXPECT_FALSE(cache.put(key).stored);
      EXPECT_EQ(cache->mode(), Mode::kOff);
      ASSERT_EQ(cache.warnings->size(), 1u);
      EXPECT_NE(cache.warnings->front().find(path), std::string::npos);
      EXPECT_NE(cache.warnings->front().find("chmod go-w"), std::string::npos);
      EXPECT_EQ(mode_of(path), mode);
    }
  }
}

TEST(EntryCache, Ps15_LinkedOrForeignFolderIsRefused) {
  const Key key = key_of("k");
  const TemporaryFolder elsewhere;
  for (const char* part : {"tern", "tern/kernels", "tern/kernels/v1"}) {
    const TemporaryFolder folder;
    const std::string path = folder.path() + "/" + part;
    fs::create_directories(fs::path(path).parent_path());
    for (fs::path up = fs::path(path).parent_path(); up != folder.path(); up = up.parent_path()) {
      ::chmod(up.c_str(), 0700);
    }
    fs::create_directory_symlink(elsewhere.path(), path);
    const OpenedCache cache = open_cache(folder.path());
    EXPECT_FALSE(cache.put(key).stored);
    EXPECT_EQ(cache.get(key), 0);
    EXPECT_EQ(cache.warnings->size(), 1u);
    EXPECT_TRUE(fs::is_empty(elsewhere.path()));
  }
  const TemporaryFolder folder;
  auto files = std::make_shared<FaultyFileSystem>();
  ASSERT_TRUE(open_cache(folder.path()).put(key).stored);
  files->owners[folder.path() + "/tern/kernels/v1/cuda"] = 12345;
  const OpenedCache cache = open_cache(folder.path(), System{files, system_clock()});
  EXPECT_EQ(cache.get(key), 0);
  EXPECT_EQ(cache.warnings->size(), 1u);
}

// An entry that others could have written is not used.
TEST(EntryCache, Ps15_EntryWithWriteBitsOfOthersIsIgnored) {
  const TemporaryFolder folder;
  const OpenedCache cache = open_cache(folder.path());
  const Key key = key_of("k");
  for (const unsigned mode : {0620u, 0602u, 0666u}) {
    ASSERT_TRUE(cache.put(key).stored);
    ::chmod(cache->path_of(key).c_str(), mode);
    EXPECT_EQ(cache.get(key), 0);
    ASSERT_TRUE(cache.put(key).stored);
    EXPECT_EQ(cache.get(key), 1);
  }
  // A link in an entry's place is not followed, even to a good entry.
  const std::string path = cache->path_of(key);
  fs::rename(path, folder.path() + "/moved");
  fs::create_symlink(folder.path() + "/moved", path);
  EXPECT_EQ(cache.get(key), 0);
  ASSERT_TRUE(cache.put(key).stored);
  EXPECT_FALSE(fs::is_symlink(path));
  EXPECT_EQ(cache.get(key), 1);
}

// Under sudo with another user's home nothing is read and nothing is written.
TEST(EntryCache, AnotherUsersFolderIsLeftAlone) {
  const TemporaryFolder folder;
  const Key key = key_of("k");
  ASSERT_TRUE(open_cache(folder.path() + "/.cache").put(key).stored);
  const std::vector<std::string> before = files_below(folder.path());
  for (const bool is_home_there : {true, false}) {
    auto files = std::make_shared<FaultyFileSystem>();
    files->as_user = 4242;
    Options options = options_for(folder.path() + (is_home_there ? "/.cache" : "/none/.cache"));
    options.base->owner_of_home = folder.path();
    const OpenedCache cache = open_cache(options, System{files, system_clock()});
    EXPECT_EQ(cache.get(key), 0);
    EXPECT_FALSE(cache.put(key).stored);
    EXPECT_EQ(cache.warnings->size(), 1u);
    EXPECT_NE(cache->why_off().find("another user"), std::string::npos);
  }
  EXPECT_EQ(files_below(folder.path()), before);
}

TEST(EntryCache, Ps14_HomeThatIsUnwritableOrMissing) {
  const TemporaryFolder folder;
  for (const int error : {-EACCES, -EROFS, -EPERM, -ENOENT, -ENOSPC}) {
    auto files = std::make_shared<FaultyFileSystem>();
    files->faults = {{Call::kMakeDirectory, 0, error, false}};
    const OpenedCache cache =
        open_cache(folder.path() + "/home/.cache", System{files, system_clock()});
    EXPECT_FALSE(cache.put(key_of("k")).stored);
    EXPECT_EQ(cache.get(key_of("k")), 0);
    EXPECT_EQ(cache.warnings->size(), 1u);
  }
  Options without_base = options_for("");
  without_base.base.reset();
  const OpenedCache cache = open_cache(without_base);
  EXPECT_EQ(cache->mode(), Mode::kOff);
  EXPECT_EQ(cache.warnings->size(), 1u);
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

// No folder that can be written: from memory, with one warning, and scratch elsewhere.
TEST(EntryCache, Ps17_ReadOnlyFileSystem) {
  const TemporaryFolder folder;
  const TemporaryFolder temporary;
  const Key old_key = key_of("old");
  ASSERT_TRUE(open_cache(folder.path()).put(old_key).stored);
  auto files = std::make_shared<FaultyFileSystem>();
  files->faults = {{Call::kCreateNew, 0, -EROFS, false}, {Call::kOpenLock, 0, -EROFS, false}};
  Options options = options_for(folder.path());
  options.temporary_folder = temporary.path();
  const OpenedCache cache = open_cache(options, System{files, system_clock()});
  EXPECT_EQ(cache.get(old_key), 1);
  for (int i = 0; i < 5; ++i) {
    const KeyLock lock = cache->lock(key_of(std::to_string(i)));
    EXPECT_TRUE(lock.is_held());
    EXPECT_FALSE(cache.put(key_of(std::to_string(i))).stored);
  }
  EXPECT_EQ(cache.warnings->size(), 1u);
}

TEST(EntryCache, ExplicitFolderThatCannotBeUsedIsAnError) {
  const TemporaryFolder folder;
  write_file(folder.path() + "/file", "");
  Options options = options_for(folder.path() + "/file/below");
  options.base->is_explicit = true;
  Result<std::shared_ptr<Cache>> cache = Cache::open(options);
  ASSERT_FALSE(cache.ok());
  EXPECT_NE(cache.error().message().find("TERN_CACHE_DIR"), std::string::npos);
  options = options_for(folder.path());
  options.base->is_explicit = true;
  fs::create_directory(folder.path() + "/tern");
  ::chmod((folder.path() + "/tern").c_str(), 0777);
  EXPECT_FALSE(Cache::open(options).ok());
  EXPECT_EQ(mode_of(folder.path() + "/tern"), 0777u);
}

// Whatever others put into the tree: everything works, and it survives eviction and clear.
TEST(EntryCache, Ps23_ForeignFilesSurvive) {
  const TemporaryFolder folder;
  const Key key = key_of("k");
  ASSERT_TRUE(open_cache(folder.path()).put(key).stored);
  std::vector<std::string> foreign;
  const std::string root = folder.path() + "/tern";
  for (const std::string& level :
       {root, root + "/kernels", root + "/kernels/v1", root + "/kernels/v1/cuda",
        root + "/kernels/v1/cuda/sm_90a", root + "/kernels/v1/cuda/sm_90a/" + key.fan()}) {
    for (const char* name : {"orphan", "orphan.tkc", ".hidden.tmp", "x.lock", "scratch-1"}) {
      write_file(level + "/" + name, "foreign");
      foreign.push_back(level + "/" + name);
    }
    fs::create_directory(level + "/folder.tkc");
    write_file(level + "/folder.tkc/inside", "foreign");
    foreign.push_back(level + "/folder.tkc/inside");
    fs::create_symlink("/nowhere", level + "/link");
  }
  // A folder in the place of another entry, and a pipe that would block whoever opens it.
  const Key blocked = key_of("blocked");
  Options options = options_for(folder.path());
  options.size_limit = 4096;
  const OpenedCache cache = open_cache(options);
  fs::create_directories(cache->path_of(blocked) + "/deep");
  for (fs::path up = fs::path(cache->path_of(blocked)); up != root; up = up.parent_path()) {
    ::chmod(up.c_str(), 0700);
  }
  EXPECT_EQ(cache.get(blocked), 0);
  EXPECT_FALSE(cache.put(blocked).stored);
  const Key pipe = key_of("pipe");
  ASSERT_TRUE(cache.put(pipe).stored);
  fs::remove(cache->path_of(pipe));
  ASSERT_EQ(::mkfifo(cache->path_of(pipe).c_str(), 0600), 0);
  EXPECT_EQ(cache.get(pipe), 0);
  EXPECT_TRUE(cache.put(pipe).stored);
  EXPECT_EQ(cache.get(pipe), 1);

  EXPECT_EQ(cache.get(key), 1);
  for (int i = 0; i < 30; ++i) ASSERT_TRUE(cache.put(key_of(std::to_string(i))).stored);
  for (const std::string& path : foreign) EXPECT_EQ(read_file(path), "foreign") << path;
  const ClearReport report = cache->clear({std::nullopt, true});
  EXPECT_TRUE(report.failures.empty());
  EXPECT_GE(report.kept_foreign.size(), 25u);
  for (const std::string& path : foreign) EXPECT_EQ(read_file(path), "foreign") << path;
  EXPECT_TRUE(cache->list().empty());
}

// A shared folder keeps its mode, and scratch is private.
TEST(EntryCache, Ps34_ScratchIsPrivateAndTheBaseKeepsItsMode) {
  const TemporaryFolder folder;
  ::chmod(folder.path().c_str(), 01777);
  const OpenedCache cache = open_cache(folder.path());
  std::string path;
  {
    const ScratchFolder scratch = cache->make_scratch(key_of("k")).value();
    path = scratch.path();
    EXPECT_EQ(mode_of(path), 0700u);
    write_file(path + "/file", "x");
    fs::create_directory(path + "/sub");
    write_file(path + "/sub/file", "x");
    fs::create_symlink("/", path + "/sub/link");
  }
  EXPECT_FALSE(fs::exists(path));
  EXPECT_TRUE(fs::exists("/tmp"));
  EXPECT_EQ(mode_of(folder.path()), 01777u);
}

// Names cannot be guessed, two at once do not meet, a planted link is not followed.
TEST(EntryCache, Ps39_ScratchFoldersDoNotCollide) {
  const TemporaryFolder temporary;
  Options options = options_for("");
  options.mode = Mode::kOff;
  options.temporary_folder = temporary.path();
  const OpenedCache off = open_cache(options);
  fs::create_directory_symlink("/", temporary.path() + "/tern-scratch");
  const ScratchFolder first = off->make_scratch(key_of("k")).value();
  const ScratchFolder second = off->make_scratch(key_of("k")).value();
  EXPECT_NE(first.path(), second.path());
  EXPECT_TRUE(fs::is_directory(first.path()));
  EXPECT_TRUE(fs::is_directory(second.path()));
  EXPECT_EQ(mode_of(first.path()), 0700u);
  // Another process does not take a living one for a leftover.
  const OpenedCache other = open_cache(options);
  const ScratchFolder third = other->make_scratch(key_of("k")).value();
  EXPECT_TRUE(fs::is_directory(first.path()));
  EXPECT_TRUE(fs::is_symlink(temporary.path() + "/tern-scratch"));
}

// With a disk tier nothing of it lies outside of the private tree.
TEST(EntryCache, Ps40_NothingLiesInTheSharedTemporaryFolder) {
  const TemporaryFolder folder;
  const TemporaryFolder temporary;
  Options options = options_for(folder.path());
  options.temporary_folder = temporary.path();
  const OpenedCache cache = open_cache(options);
  ASSERT_TRUE(cache.put(key_of("k")).stored);
  const ScratchFolder scratch = cache->make_scratch(key_of("k")).value();
  EXPECT_EQ(scratch.path().find(folder.path() + "/tern/kernels/v1/cuda/sm_90a/scratch-"), 0u);
  EXPECT_TRUE(fs::is_empty(temporary.path()));
}

// Where locks are not known, a leftover is removed when it is a day old.
TEST(EntryCache, LeftoversWithoutLocksAreRemovedAfterADay) {
  const TemporaryFolder folder;
  const Key key = key_of("k");
  ASSERT_TRUE(open_cache(folder.path()).put(key).stored);
  const std::string place = fs::path(open_cache(folder.path())->path_of(key)).parent_path();
  const std::string temporary = place + "/" + std::string(40, 'a') + ".1-0123456789abcdef.tmp";
  const std::string scratch = fs::path(place).parent_path().string() + "/scratch-0123456789abcdef";
  write_file(temporary, "half");
  fs::create_directory(scratch);
  auto files = std::make_shared<FaultyFileSystem>();
  files->faults = {{Call::kTryLock, 0, -ENOLCK, false}};
  auto clock = std::make_shared<HandClock>();
  {
    const OpenedCache cache = open_cache(folder.path(), System{files, clock});
    EXPECT_TRUE(cache.put(key).stored);
    EXPECT_TRUE(cache->make_scratch(key).ok());
    EXPECT_TRUE(fs::exists(temporary));
    EXPECT_TRUE(fs::exists(scratch));
  }
  clock->offset_ns = 2 * kDay;
  const OpenedCache cache = open_cache(folder.path(), System{files, clock});
  EXPECT_TRUE(cache.put(key).stored);
  EXPECT_TRUE(cache->make_scratch(key).ok());
  EXPECT_FALSE(fs::exists(temporary));
  EXPECT_FALSE(fs::exists(scratch));
}

}  // namespace
}  // namespace tern::cache
