// The target is the old file or the whole new one, whatever fails and whenever the process is
// killed.
#include "base/atomic_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/wait.h>

#include <cerrno>
#include <fstream>
#include <sstream>

namespace tern {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class AtomicFileTest : public testing::Test {
 protected:
  AtomicFileTest() {
    std::string pattern = testing::TempDir() + "tern_atomic_file_XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    target_ = folder_ / "model.gguf";
  }
  ~AtomicFileTest() override { fs::remove_all(folder_); }

  static void put(const fs::path& path, std::string_view text) {
    std::ofstream(path, std::ios::binary) << text;
  }
  static std::string get(const fs::path& path) {
    std::ostringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    return text.str();
  }
  [[nodiscard]] int files() const {
    int n = 0;
    for ([[maybe_unused]] const auto& entry : fs::directory_iterator(folder_)) ++n;
    return n;
  }
  static unsigned mode_of(const fs::path& path) {
    return static_cast<unsigned>(fs::status(path).permissions());
  }

  fs::path folder_;
  fs::path target_;
};

TEST_F(AtomicFileTest, TheNameAppearsAtCommit) {
  AtomicFile file = AtomicFile::create(target_).value();
  EXPECT_TRUE(file.write("hello ").ok());
  EXPECT_TRUE(file.write("world").ok());
  EXPECT_FALSE(fs::exists(target_));
  EXPECT_EQ(file.temporary().parent_path(), folder_);
  EXPECT_EQ(mode_of(file.temporary()), 0600u);
  EXPECT_EQ(file.written_bytes(), 11u);
  EXPECT_TRUE(file.commit().ok());
  EXPECT_EQ(get(target_), "hello world");
  EXPECT_EQ(files(), 1);
}

TEST_F(AtomicFileTest, WithoutCommitNothingIsLeft) {
  put(target_, "old");
  {
    AtomicFile file =
        AtomicFile::create(target_, {.overwrite = true, .expected_bytes = {}, .calls = {}}).value();
    EXPECT_TRUE(file.write("new").ok());
    AtomicFile moved = std::move(file);
    EXPECT_TRUE(moved.write("er").ok());
    EXPECT_EQ(files(), 2);
  }
  EXPECT_EQ(get(target_), "old");
  EXPECT_EQ(files(), 1);
}

TEST_F(AtomicFileTest, ANewFileHasTheModeOfTheMask) {
  const mode_t mask = ::umask(027);
  EXPECT_TRUE(write_file_atomically(target_, "x", {}).ok());
  ::umask(mask);
  EXPECT_EQ(mode_of(target_), 0640u);
}

TEST_F(AtomicFileTest, AReplacedFileKeepsItsMode) {
  put(target_, "old");
  ASSERT_EQ(::chmod(target_.c_str(), 0751), 0);
  AtomicFile::Options options;
  options.overwrite = true;
  EXPECT_TRUE(write_file_atomically(target_, "new", options).ok());
  EXPECT_EQ(get(target_), "new");
  EXPECT_EQ(mode_of(target_), 0751u);
}

TEST_F(AtomicFileTest, AnExistingTargetIsRefusedAndUntouched) {
  put(target_, "old");
  const auto result = AtomicFile::create(target_);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(result.error().message(),
            target_.string() +
                ": the file exists; choose another name or allow overwriting with --force");
  EXPECT_EQ(get(target_), "old");
  EXPECT_EQ(files(), 1);
}

TEST_F(AtomicFileTest, ATargetThatAppearsMeanwhileIsUntouched) {
  AtomicFile file = AtomicFile::create(target_).value();
  EXPECT_TRUE(file.write("mine").ok());
  put(target_, "theirs");
  const auto result = file.commit();
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code(), ErrorCode::kInvalidArgument);
  EXPECT_EQ(get(target_), "theirs");
  EXPECT_EQ(files(), 1);
}

TEST_F(AtomicFileTest, WorksOnFileSystemsWithoutLinks) {
  AtomicFile::Options options;
  options.calls.link = [](const char*, const char*) {
    errno = EPERM;
    return -1;
  };
  EXPECT_TRUE(write_file_atomically(target_, "new", options).ok());
  EXPECT_EQ(get(target_), "new");
  EXPECT_EQ(files(), 1);
}

TEST_F(AtomicFileTest, RefusesTargetsThatAreNoFiles) {
  AtomicFile::Options options;
  options.overwrite = true;
  const auto code_of = [&](const fs::path& path) {
    const auto result = AtomicFile::create(path, options);
    EXPECT_FALSE(result.ok()) << path;
    return result.ok() ? ErrorCode::kInternal : result.error().code();
  };
  EXPECT_EQ(code_of(folder_), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of("/dev/null"), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of(folder_ / ""), ErrorCode::kInvalidArgument);
  EXPECT_EQ(code_of(folder_ / "no" / "such"), ErrorCode::kNotFound);
  put(target_, "x");
  EXPECT_EQ(code_of(target_ / "below"), ErrorCode::kNotFound);
}

TEST_F(AtomicFileTest, ALinkIsFollowed) {
  put(target_, "old");
  const fs::path link = folder_ / "link";
  fs::create_symlink("model.gguf", link);
  AtomicFile::Options options;
  EXPECT_FALSE(AtomicFile::create(link, options).ok());
  options.overwrite = true;
  EXPECT_TRUE(write_file_atomically(link, "new", options).ok());
  EXPECT_TRUE(fs::is_symlink(link));
  EXPECT_EQ(get(target_), "new");
}

TEST_F(AtomicFileTest, WritesOnAfterShortWritesAndInterruptions) {
  AtomicFile::Options options;
  options.calls.write = [](int fd, const void* from, std::size_t n) -> ssize_t {
    static int calls = 0;
    if (++calls % 2 == 0) {
      errno = EINTR;
      return -1;
    }
    return ::write(fd, from, std::min<std::size_t>(n, 3));
  };
  EXPECT_TRUE(write_file_atomically(target_, "0123456789", options).ok());
  EXPECT_EQ(get(target_), "0123456789");
}

TEST_F(AtomicFileTest, AFullDiskNamesTheMissingBytes) {
  put(target_, "old");
  AtomicFile::Options options;
  options.overwrite = true;
  options.expected_bytes = 100;
  options.calls.write = [](int fd, const void* from, std::size_t n) -> ssize_t {
    if (::lseek(fd, 0, SEEK_CUR) >= 30) {
      errno = ENOSPC;
      return -1;
    }
    return ::write(fd, from, std::min<std::size_t>(n, 30));
  };
  AtomicFile file = AtomicFile::create(target_, options).value();
  const auto result = file.write(std::string(60, 'x'));
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code(), ErrorCode::kDiskFull);
  EXPECT_THAT(result.error().message(),
              HasSubstr("the disk is full: 30 bytes are written, 70 bytes are missing"));
  EXPECT_FALSE(file.write("x").ok());
  EXPECT_FALSE(file.commit().ok());
  EXPECT_EQ(get(target_), "old");
  EXPECT_EQ(files(), 1);
}

TEST_F(AtomicFileTest, AFileAboveTheLimitOfItsSizeIsRemoved) {
  AtomicFile::Options options;
  options.expected_bytes = 100;
  options.calls.write = [](int, const void*, std::size_t) -> ssize_t {
    errno = EFBIG;
    return -1;
  };
  AtomicFile file = AtomicFile::create(target_, options).value();
  const auto result = file.write(std::string(60, 'x'));
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code(), ErrorCode::kDiskFull);
  EXPECT_THAT(result.error().message(), HasSubstr("may not grow beyond 0 bytes here"));
  EXPECT_EQ(files(), 0);
}

TEST_F(AtomicFileTest, RefusesAtOnceWhatTheDiskCannotHold) {
  AtomicFile::Options options;
  options.expected_bytes = std::uint64_t{1} << 60;
  const auto result = AtomicFile::create(target_, options);
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code(), ErrorCode::kDiskFull);
  EXPECT_THAT(result.error().message(), HasSubstr("needs 1152921504606846976 bytes"));
  EXPECT_EQ(files(), 0);
}

TEST_F(AtomicFileTest, EveryFailingCallLeavesTheOldFile) {
  put(target_, "old");
  AtomicFile::Options failing[6];
  failing[0].calls.write = [](int, const void*, std::size_t) -> ssize_t {
    errno = EDQUOT;
    return -1;
  };
  failing[1].calls.write = [](int, const void*, std::size_t) -> ssize_t {
    errno = EIO;
    return -1;
  };
  failing[2].calls.write = [](int, const void*, std::size_t) -> ssize_t { return 0; };
  failing[3].calls.fsync = [](int) {
    errno = EIO;
    return -1;
  };
  failing[4].calls.fchmod = [](int, mode_t) {
    errno = EROFS;
    return -1;
  };
  failing[5].calls.rename = [](const char*, const char*) {
    errno = EACCES;
    return -1;
  };
  for (AtomicFile::Options& options : failing) {
    options.overwrite = true;
    const auto result = write_file_atomically(target_, "new", options);
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().code(), &options == failing ? ErrorCode::kDiskFull : ErrorCode::kIo);
    EXPECT_EQ(get(target_), "old");
    EXPECT_EQ(files(), 1);
  }
}

TEST_F(AtomicFileTest, ASizeOtherThanAnnouncedIsNotCommitted) {
  AtomicFile::Options options;
  options.expected_bytes = 5;
  AtomicFile file = AtomicFile::create(target_, options).value();
  EXPECT_TRUE(file.write("abc").ok());
  EXPECT_EQ(file.commit().error().code(), ErrorCode::kInternal);
  EXPECT_EQ(files(), 0);
}

TEST_F(AtomicFileTest, BytesThatTheDiskLostAreNoticed) {
  AtomicFile::Options options;
  options.calls.write = [](int, const void*, std::size_t n) { return static_cast<ssize_t>(n); };
  const auto result = write_file_atomically(target_, "abc", options);
  ASSERT_FALSE(result.ok());
  EXPECT_THAT(result.error().message(), HasSubstr("3 bytes were written, but the disk holds 0"));
  EXPECT_EQ(files(), 0);
}

TEST_F(AtomicFileTest, LongNamesStayBelowTheLimitOfTheFileSystem) {
  const fs::path target = folder_ / std::string(255, 'n');
  EXPECT_TRUE(write_file_atomically(target, "x", {}).ok());
  EXPECT_EQ(get(target), "x");
}

TEST_F(AtomicFileTest, TwoWritersDoNotMix) {
  AtomicFile::Options options;
  options.overwrite = true;
  AtomicFile a = AtomicFile::create(target_, options).value();
  AtomicFile b = AtomicFile::create(target_, options).value();  // must not take a's for a leftover
  EXPECT_TRUE(a.write("aaaa").ok());
  EXPECT_TRUE(b.write("bb").ok());
  EXPECT_TRUE(a.commit().ok());
  EXPECT_EQ(get(target_), "aaaa");
  EXPECT_TRUE(b.commit().ok());
  EXPECT_EQ(get(target_), "bb");
  EXPECT_EQ(files(), 1);
}

TEST_F(AtomicFileTest, OnlyItsOwnLeftoversAreRemoved) {
  put(folder_ / ".model.gguf.tern-0123456789abcdef.tmp", "left behind");
  put(folder_ / ".model.gguf.tern-0123456789abcdeX.tmp", "somebody's");
  put(folder_ / ".other.gguf.tern-0123456789abcdef.tmp", "another target's");
  put(folder_ / ".model.gguf.tern-0123456789abcdef.tmp2", "somebody's");
  EXPECT_TRUE(write_file_atomically(target_, "new", {}).ok());
  EXPECT_FALSE(fs::exists(folder_ / ".model.gguf.tern-0123456789abcdef.tmp"));
  EXPECT_EQ(files(), 4);
}

#if !defined(__SANITIZE_THREAD__)
// The process dies at the n-th system call of the sequence.
int calls_until_death = 0;
void count_down() {
  if (--calls_until_death == 0) ::_exit(42);
}

AtomicFile::Options deadly_options(bool overwrite) {
  AtomicFile::Options options;
  options.overwrite = overwrite;
  options.calls.write = [](int fd, const void* from, std::size_t n) {
    count_down();
    return ::write(fd, from, std::min<std::size_t>(n, 2));
  };
  options.calls.fsync = [](int fd) {
    count_down();
    return ::fsync(fd);
  };
  options.calls.fchmod = [](int fd, mode_t mode) {
    count_down();
    return ::fchmod(fd, mode);
  };
  options.calls.link = [](const char* from, const char* to) {
    count_down();
    return ::link(from, to);
  };
  options.calls.rename = [](const char* from, const char* to) {
    count_down();
    return std::rename(from, to);
  };
  options.calls.unlink = [](const char* path) {
    count_down();
    return ::unlink(path);
  };
  return options;
}

TEST_F(AtomicFileTest, KilledAtAnyCallTheTargetIsOldOrNew) {
  for (const bool overwrite : {true, false}) {
    bool is_finished = false;
    int deaths = 0;
    for (int n = 1; !is_finished && n < 50; ++n) {
      fs::remove(target_);
      if (overwrite) put(target_, "old");
      const pid_t child = ::fork();
      if (child == 0) {
        calls_until_death = n;
        const bool is_ok =
            write_file_atomically(target_, "the new", deadly_options(overwrite)).ok();
        ::_exit(is_ok ? 0 : 1);
      }
      int status = 0;
      ASSERT_EQ(::waitpid(child, &status, 0), child);
      ASSERT_TRUE(WIFEXITED(status));
      is_finished = WEXITSTATUS(status) == 0;
      ASSERT_TRUE(is_finished || WEXITSTATUS(status) == 42);
      deaths += is_finished ? 0 : 1;
      if (fs::exists(target_)) {
        const std::string found = get(target_);
        EXPECT_TRUE(found == "the new" || (overwrite && found == "old" && !is_finished))
            << n << found;
      } else {
        EXPECT_FALSE(overwrite) << n;
      }
      // A later run works and removes what the dead one left.
      AtomicFile::Options options;
      options.overwrite = true;
      EXPECT_TRUE(write_file_atomically(target_, "later", options).ok());
      EXPECT_EQ(get(target_), "later");
      EXPECT_EQ(files(), 1) << n;
    }
    EXPECT_TRUE(is_finished);
    EXPECT_GE(deaths, 7);  // 4 writes, flush, mode, name, flush of the folder
  }
}
#endif

}  // namespace
}  // namespace tern
