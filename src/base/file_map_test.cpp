// Files that are fine, missing, odd, cut while mapped, and systems that refuse.
#include "base/file_map.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <numeric>
#include <thread>
#include <vector>

#include "base/control_groups.h"

namespace tern {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class FileMapTest : public testing::Test {
 protected:
  FileMapTest() {
    std::string pattern = testing::TempDir() + "tern_file_map_XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
  }
  ~FileMapTest() override { fs::remove_all(folder_); }

  fs::path write(const std::string& name, std::string_view text) {
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return folder_ / name;
  }
  static std::string text_of(const FileMap& map) {
    return {reinterpret_cast<const char*>(map.bytes().data()), map.bytes().size()};
  }
  // The sum of all bytes: touches every page.
  static unsigned long sum_of(std::span<const std::byte> bytes) {
    return std::accumulate(bytes.begin(), bytes.end(), 0ul, [](unsigned long s, std::byte b) {
      return s + std::to_integer<unsigned long>(b);
    });
  }

  fs::path folder_;
};

TEST_F(FileMapTest, GivesTheBytesInEveryMode) {
  const fs::path path = write("f", "hello");
  for (const auto mode : {FileMap::Mode::kAuto, FileMap::Mode::kMmap, FileMap::Mode::kRead}) {
    const FileMap map = FileMap::open(path, mode).value();
    EXPECT_EQ(text_of(map), "hello");
    EXPECT_EQ(map.size(), 5u);
    EXPECT_EQ(map.path(), path);
    EXPECT_EQ(map.is_mapped(), mode != FileMap::Mode::kRead);
    EXPECT_FALSE(map.fell_back());
    EXPECT_FALSE(map.damaged());
    EXPECT_TRUE(map.check_unchanged().ok());
    map.advise_sequential();
    map.advise_normal();
    EXPECT_EQ(text_of(map), "hello");
  }
}

TEST_F(FileMapTest, MovesWithoutMovingTheBytes) {
  FileMap a = FileMap::open(write("a", "first")).value();
  const std::byte* data = a.bytes().data();
  FileMap b = std::move(a);
  EXPECT_EQ(b.bytes().data(), data);
  EXPECT_TRUE(a.bytes().empty());  // NOLINT(bugprone-use-after-move): a moved-from map is empty
  b = FileMap::open(write("b", "second")).value();
  EXPECT_EQ(text_of(b), "second");
}

TEST_F(FileMapTest, RefusesWhatIsNoReadableFile) {
  const auto error_of = [](const fs::path& path) {
    const auto result = FileMap::open(path);
    EXPECT_FALSE(result.ok());
    return result.ok() ? Error(ErrorCode::kInternal, "opened") : result.error();
  };
  const fs::path missing = folder_ / "missing";
  EXPECT_EQ(error_of(missing).code(), ErrorCode::kNotFound);
  EXPECT_EQ(error_of(missing).message(), missing.string() + ": there is no such file");
  EXPECT_EQ(error_of(write("f", "x") / "below").code(), ErrorCode::kNotFound);
  EXPECT_EQ(error_of(folder_).code(), ErrorCode::kInvalidFile);
  EXPECT_EQ(error_of(folder_).message(), folder_.string() + ": is a directory, a file is expected");
  EXPECT_EQ(error_of("/dev/null").message(), "/dev/null: is not a regular file");
  const fs::path empty = write("empty", "");
  EXPECT_EQ(error_of(empty).code(), ErrorCode::kInvalidFile);
  EXPECT_THAT(error_of(empty).message(), HasSubstr("the file is empty (0 bytes)"));
  const fs::path loop = folder_ / "loop";
  fs::create_symlink(loop, loop);
  EXPECT_EQ(error_of(loop).code(), ErrorCode::kIo);
}

TEST_F(FileMapTest, ANamedPipeOrSocketIsRefusedAtOnce) {
  const fs::path pipe = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(FileMap::open(pipe).error().message(), pipe.string() + ": is not a regular file");
  const fs::path name = folder_ / "socket";
  const int descriptor = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  ASSERT_LT(name.string().size(), sizeof address.sun_path);
  std::strcpy(address.sun_path, name.c_str());
  ASSERT_EQ(::bind(descriptor, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(FileMap::open(name).error().message(), name.string() + ": is not a regular file");
  ::close(descriptor);
}

TEST_F(FileMapTest, SaysWhenPermissionIsMissing) {
  const fs::path path = write("secret", "x");
  fs::permissions(path, fs::perms::none);
  const auto is_refused = [&] {
    const auto result = FileMap::open(path);
    return !result.ok() && result.error().code() == ErrorCode::kIo &&
           result.error().message() == path.string() + ": no permission to read the file";
  };
  if (::getuid() != 0) {
    EXPECT_TRUE(is_refused());
    return;
  }
  // Root may read everything: a child that is nobody asks.
  const pid_t child = ::fork();
  if (child == 0) ::_exit(::setuid(65534) == 0 && is_refused() ? 0 : 1);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST_F(FileMapTest, FallsBackToReadingWhereMappingIsRefused) {
  const fs::path path = write("f", "hello");
  FileMap::Options options;
  options.calls.mmap = [](void*, std::size_t, int, int, int, off_t) -> void* {
    errno = ENODEV;
    return MAP_FAILED;
  };
  const FileMap map = FileMap::open(path, options).value();
  EXPECT_TRUE(map.fell_back());
  EXPECT_FALSE(map.is_mapped());
  EXPECT_EQ(text_of(map), "hello");
  options.mode = FileMap::Mode::kMmap;
  const auto result = FileMap::open(path, options);
  ASSERT_FALSE(result.ok());
  EXPECT_THAT(result.error().message(), HasSubstr("cannot be mapped into memory"));
}

TEST_F(FileMapTest, ReadsOnAfterShortReadsAndInterruptions) {
  const fs::path path = write("f", "0123456789");
  FileMap::Options options;
  options.mode = FileMap::Mode::kRead;
  options.calls.pread = [](int fd, void* to, std::size_t n, off_t at) -> ssize_t {
    if (at % 3 == 2) n = std::min<std::size_t>(n, 2);
    if (at == 4) {
      static bool was_interrupted = false;
      was_interrupted = !was_interrupted;
      if (was_interrupted) {
        errno = EINTR;
        return -1;
      }
    }
    return ::pread(fd, to, std::min<std::size_t>(n, 2), at);
  };
  EXPECT_EQ(text_of(FileMap::open(path, options).value()), "0123456789");
}

TEST_F(FileMapTest, ACancelEndsReadingAfterThePieceThatWasBegun) {
  const fs::path path = write("f", std::string(2 * FileMap::kReadPiece + 5, 'x'));
  FileMap::Options options;
  options.mode = FileMap::Mode::kRead;
  options.cancel = CancelToken::make();
  Progress last;
  options.progress = [&](const Progress& p) {
    last = p;
    options.cancel.request();
  };
  const auto cancelled = FileMap::open(path, options);
  ASSERT_FALSE(cancelled.ok());
  EXPECT_EQ(cancelled.error().code(), ErrorCode::kCancelled);
  EXPECT_EQ(cancelled.error().message(), path.string() + ": loading was cancelled");
  EXPECT_EQ(last.done, std::uint64_t{8} << 20);
  EXPECT_EQ(last.total, (std::uint64_t{16} << 20) + 5);
  EXPECT_FALSE(last.finished);
  // A token that is tripped already: not a byte is read.
  options.calls.pread = [](int, void*, std::size_t, off_t) -> ssize_t {
    ADD_FAILURE() << "read after a cancel";
    return 0;
  };
  EXPECT_EQ(FileMap::open(path, options).error().code(), ErrorCode::kCancelled);
}

TEST_F(FileMapTest, NamesTheOffsetOfAReadError) {
  const fs::path path = write("f", "0123456789");
  FileMap::Options options;
  options.mode = FileMap::Mode::kRead;
  options.calls.pread = [](int fd, void* to, std::size_t, off_t at) -> ssize_t {
    if (at < 6) return ::pread(fd, to, 3, at);
    errno = EIO;
    return -1;
  };
  const auto broken = FileMap::open(path, options);
  ASSERT_FALSE(broken.ok());
  EXPECT_EQ(broken.error().code(), ErrorCode::kIo);
  EXPECT_THAT(broken.error().message(), HasSubstr("read error at offset 6 of 10"));

  options.calls.pread = [](int fd, void* to, std::size_t, off_t at) -> ssize_t {
    return at < 4 ? ::pread(fd, to, 4, at) : 0;
  };
  const auto cut = FileMap::open(path, options);
  ASSERT_FALSE(cut.ok());
  EXPECT_EQ(cut.error().code(), ErrorCode::kInvalidFile);
  EXPECT_THAT(cut.error().message(), HasSubstr("the file ends at 4, but had 10 bytes"));
}

TEST_F(FileMapTest, NoticesThatTheFileWasChanged) {
  const fs::path path = write("f", "0123456789");
  const FileMap map = FileMap::open(path, FileMap::Mode::kRead).value();
  fs::resize_file(path, 4);
  EXPECT_THAT(map.check_unchanged().error().message(), HasSubstr("has 4 bytes now, but had 10"));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // the grain of file times
  write("f", "abcdefghij");
  EXPECT_THAT(map.check_unchanged().error().message(),
              HasSubstr("was written to after it was loaded"));
  EXPECT_EQ(text_of(map), "0123456789");
}

TEST_F(FileMapTest, ReplacingTheFileByRenameIsHarmless) {
  const fs::path path = write("f", "old");
  const FileMap map = FileMap::open(path).value();
  fs::rename(write("g", "newer"), path);
  EXPECT_EQ(text_of(map), "old");
  EXPECT_TRUE(map.check_unchanged().ok());
}

TEST_F(FileMapTest, ACutFileReadsAsZerosAndMarksTheMapping) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const fs::path path = write("f", std::string(8 * page, '\1'));
  const fs::path other_path = write("g", std::string(page, '\1'));
  const FileMap map = FileMap::open(path, FileMap::Mode::kMmap).value();
  const FileMap other = FileMap::open(other_path, FileMap::Mode::kMmap).value();
  EXPECT_EQ(sum_of(map.bytes()), 8 * page);
  fs::resize_file(path, 3 * page);
  EXPECT_FALSE(map.damaged());
  EXPECT_EQ(sum_of(map.bytes().first(3 * page)), 3 * page);
  EXPECT_FALSE(map.damaged());
  errno = EAGAIN;
  EXPECT_EQ(sum_of(map.bytes()), 3 * page);
  EXPECT_EQ(errno, EAGAIN);
  EXPECT_TRUE(map.damaged());
  EXPECT_FALSE(other.damaged());
  EXPECT_EQ(map.damage_error().code(), ErrorCode::kIo);
  EXPECT_THAT(map.damage_error().message(), HasSubstr(path.string()));
  EXPECT_FALSE(map.check_unchanged().ok());
}

TEST_F(FileMapTest, ManyThreadsMayMeetTheSameCut) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const fs::path path = write("f", std::string(256 * page, '\1'));
  const FileMap map = FileMap::open(path, FileMap::Mode::kMmap).value();
  fs::resize_file(path, page);
  std::vector<std::jthread> threads;
  std::atomic<int> right{0};
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] { right += sum_of(map.bytes()) == page ? 1 : 0; });
  }
  threads.clear();
  EXPECT_EQ(right, 4);
  EXPECT_TRUE(map.damaged());
}

TEST_F(FileMapTest, AnEntryIsFreshForTheNextMapping) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  for (int round = 0; round < 3; ++round) {
    const fs::path path = write("f", std::string(2 * page, '\1'));
    const FileMap map = FileMap::open(path, FileMap::Mode::kMmap).value();
    EXPECT_FALSE(map.damaged());
    fs::resize_file(path, 0);
    EXPECT_EQ(sum_of(map.bytes()), 0u);
    EXPECT_TRUE(map.damaged());
  }
}

// In a process of its own, where nothing has been mapped yet: a host's handler that ends it with 5.
[[noreturn]] void fault_outside_of_mappings(const fs::path& path) {
  struct sigaction action = {};
  action.sa_handler = [](int) { ::_exit(5); };
  ::sigaction(SIGBUS, &action, nullptr);
  const FileMap map = FileMap::open(path, FileMap::Mode::kMmap).value();
  // A mapping beyond the end of a file, which nobody registered.
  const int descriptor = ::open(path.c_str(), O_RDONLY);
  const std::size_t far = std::size_t{1} << 20;
  void* address = ::mmap(nullptr, far, PROT_READ, MAP_PRIVATE, descriptor, 0);
  const char c = static_cast<volatile char*>(address)[far - 1];
  ::_exit(c == 0 ? 1 : 2);
}

TEST_F(FileMapTest, OtherBusErrorsGoToTheHandlerOfTheHost) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(fault_outside_of_mappings(write("f", "x")), testing::ExitedWithCode(5), "");
}

[[noreturn]] void send_bus_error(const fs::path& path) {
  ::signal(SIGBUS, SIG_DFL);
  const FileMap map = FileMap::open(path, FileMap::Mode::kMmap).value();
  ::raise(SIGBUS);
  ::_exit(1);
}

TEST_F(FileMapTest, ABusErrorSentByAnotherProcessStillEndsThisOne) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(send_bus_error(write("f", "x")), testing::KilledBySignal(SIGBUS), "");
}

long resident_bytes() {
  std::ifstream stream("/proc/self/statm");
  long size = 0;
  long resident = 0;
  stream >> size >> resident;
  return resident * ::sysconf(_SC_PAGESIZE);
}

TEST_F(FileMapTest, DroppedPagesLeaveTheProcess) {
#if !defined(__linux__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "counts resident pages of a plain Linux process";
#endif
  constexpr long kBytes = 32 << 20;
  const fs::path path = write("f", std::string(kBytes, '\1'));
  for (const auto mode : {FileMap::Mode::kMmap, FileMap::Mode::kRead}) {
    const FileMap map = FileMap::open(path, mode).value();
    ASSERT_EQ(sum_of(map.bytes()), static_cast<unsigned long>(kBytes));
    const long before = resident_bytes();
    map.drop_pages(100, kBytes - 200);  // all whole pages but the first and the last
    EXPECT_LT(resident_bytes(), before - kBytes * 9 / 10);
    EXPECT_EQ(sum_of(map.bytes().first(4096)), 4096u);
    EXPECT_EQ(sum_of(map.bytes().last(4096)), 4096u);
  }
}

TEST_F(FileMapTest, DroppingKeepsNeighboursAndRangesBeyondTheFile) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const FileMap map =
      FileMap::open(write("f", std::string(2 << 20, '\1')), FileMap::Mode::kRead).value();
  map.drop_pages(10, page);  // holds no whole page
  map.drop_pages(map.size(), 100);
  map.drop_pages(~std::uint64_t{0}, ~std::uint64_t{0});
  EXPECT_EQ(sum_of(map.bytes()), 2ul << 20);
  map.drop_pages(page, ~std::uint64_t{0});
  EXPECT_EQ(sum_of(map.bytes().first(page)), page);
}

}  // namespace
}  // namespace tern
