// What tests of the cache share: a file system that fails or kills on command over the real one, a
// clock that is set by hand, a temporary folder, and children.
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backend/cache/cache.h"
#include "backend/cache/file_system.h"

namespace tern::cache {

enum class Call {
  kOpenRead,
  kCreateNew,
  kOpenLock,
  kOpenDirectory,
  kRead,
  kWrite,
  kOverwrite,
  kFlush,
  kClose,
  kStatus,
  kStatusOf,
  kTouch,
  kTryLock,
  kRename,
  kRemove,
  kMakeDirectory,
  kRemoveDirectory,
  kList,
};

// "The nth call of kind X fails with Y", or the process dies there.
struct Fault {
  std::optional<Call> call;  // none: of any kind
  int nth = 1;               // from 1; 0: every one
  int error = 0;             // negative errno; 0: the process is killed
  bool is_after = false;     // the call is carried out first
};

class FaultyFileSystem final : public FileSystem {
 public:
  std::vector<Fault> faults;
  std::size_t most_read = SIZE_MAX;  // bytes that one read gives
  std::size_t most_written = SIZE_MAX;
  std::optional<std::uint32_t> as_user;
  std::optional<std::int64_t> as_process;
  std::map<std::string, std::uint32_t> owners;  // of paths, as they seem

  [[nodiscard]] int calls() const { return total_; }
  [[nodiscard]] int calls(Call call) const {
    const auto at = counts_.find(call);
    return at == counts_.end() ? 0 : at->second;
  }

  int open_read(const std::string& path) override {
    return with(Call::kOpenRead, [&] { return real_->open_read(path); });
  }
  int create_new(const std::string& path) override {
    return with(Call::kCreateNew, [&] { return real_->create_new(path); });
  }
  int open_lock(const std::string& path) override {
    return with(Call::kOpenLock, [&] { return real_->open_lock(path); });
  }
  int open_directory(const std::string& path) override {
    return with(Call::kOpenDirectory, [&] { return real_->open_directory(path); });
  }
  std::int64_t read(int descriptor, void* to, std::size_t bytes) override {
    return with(Call::kRead,
                [&] { return real_->read(descriptor, to, std::min(bytes, most_read)); });
  }
  std::int64_t write(int descriptor, const void* from, std::size_t bytes) override {
    return with(Call::kWrite,
                [&] { return real_->write(descriptor, from, std::min(bytes, most_written)); });
  }
  int overwrite(int descriptor, const std::string& text) override {
    return with(Call::kOverwrite, [&] { return real_->overwrite(descriptor, text); });
  }
  // Counted, and not carried out: a killed process loses nothing that it wrote, and a loaded disk
  // takes its time.
  int flush(int /*descriptor*/) override {
    return with(Call::kFlush, [] { return 0; });
  }
  int close(int descriptor) override {
    // A close that fails has closed all the same.
    const int result = real_->close(descriptor);
    return with(Call::kClose, [&] { return result; });
  }
  int status(int descriptor, FileStatus& status) override {
    return with(Call::kStatus, [&] { return real_->status(descriptor, status); });
  }
  int status_of(const std::string& path, FileStatus& status) override {
    return with(Call::kStatusOf, [&] {
      const int result = real_->status_of(path, status);
      if (const auto at = owners.find(path); at != owners.end()) status.owner = at->second;
      return result;
    });
  }
  int touch(int descriptor, std::int64_t modified_ns) override {
    return with(Call::kTouch, [&] { return real_->touch(descriptor, modified_ns); });
  }
  int try_lock(int descriptor) override {
    return with(Call::kTryLock, [&] { return real_->try_lock(descriptor); });
  }
  int rename(const std::string& from, const std::string& to) override {
    return with(Call::kRename, [&] { return real_->rename(from, to); });
  }
  int remove(const std::string& path) override {
    return with(Call::kRemove, [&] { return real_->remove(path); });
  }
  int make_directory(const std::string& path) override {
    return with(Call::kMakeDirectory, [&] { return real_->make_directory(path); });
  }
  int remove_directory(const std::string& path) override {
    return with(Call::kRemoveDirectory, [&] { return real_->remove_directory(path); });
  }
  int list(const std::string& path, std::vector<std::string>& names) override {
    return with(Call::kList, [&] { return real_->list(path, names); });
  }
  std::uint32_t user() override { return as_user.value_or(real_->user()); }
  std::int64_t process_id() override { return as_process.value_or(real_->process_id()); }
  std::uint64_t random_bits() override { return real_->random_bits(); }

 private:
  template <class Function>
  auto with(Call call, const Function& function) -> decltype(function()) {
    int of_kind = 0;
    int of_all = 0;
    {
      const std::lock_guard lock(mutex_);
      of_kind = ++counts_[call];
      of_all = ++total_;
    }
    for (const Fault& fault : faults) {
      const int number = fault.call ? of_kind : of_all;
      if ((fault.call && *fault.call != call) || (fault.nth != 0 && fault.nth != number)) continue;
      if (fault.is_after) function();
      if (fault.error == 0) ::kill(::getpid(), SIGKILL);
      return fault.error;
    }
    return function();
  }

  std::shared_ptr<FileSystem> real_ = posix_file_system();
  std::mutex mutex_;
  std::map<Call, int> counts_;
  int total_ = 0;
};

// Stands still but for sleeping and what a test adds.
class HandClock final : public Clock {
 public:
  std::int64_t wall_ns() override { return system_clock()->wall_ns() + offset_ns; }
  std::int64_t steady_ns() override { return steady; }
  void sleep_ms(std::int64_t ms) override { steady += ms * 1'000'000; }

  std::atomic<std::int64_t> offset_ns{0};
  std::atomic<std::int64_t> steady{0};
};

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "tern-cache-test-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Runs in a child process; its exit code, or minus the signal that ended it.
inline pid_t start_child(const std::function<int()>& run) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(run());
  return child;
}
inline int wait_for_child(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}
inline int in_child(const std::function<int()>& run) { return wait_for_child(start_child(run)); }

inline std::vector<std::byte> bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}
inline std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
inline std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}
inline void write_file(const std::string& path, std::string_view text, unsigned mode = 0600) {
  std::ofstream(path, std::ios::binary) << text;
  ::chmod(path.c_str(), static_cast<mode_t>(mode));
}

inline Key key_of(const std::string& name, const std::string& architecture = "sm_90a",
                  const std::string& tern = "1.0") {
  return *Key::from_lines("cuda", architecture,
                          {{"tern", tern}, {"kernel", name}, {"target", architecture}});
}

// The payload that belongs to a key and to no other: whoever reads another one has the wrong
// kernel.
inline std::string payload_of(const Key& key, std::size_t bytes = 300) {
  std::string text = key.hash() + "\n";
  while (text.size() < bytes) text += static_cast<char>('a' + text.size() % 23);
  return text;
}

// A cache over a folder, with what it said.
struct OpenedCache {
  std::shared_ptr<Cache> cache;
  std::shared_ptr<std::vector<std::string>> warnings = std::make_shared<std::vector<std::string>>();
  std::shared_ptr<std::vector<std::string>> notices = std::make_shared<std::vector<std::string>>();

  Cache* operator->() const { return cache.get(); }
  PutOutcome put(const Key& key) const {
    const std::vector<std::string> names = {key.hash().substr(0, 8)};
    return cache->put(key, PayloadKind::kCubin, names, bytes_of(payload_of(key)));
  }
  // 1: a hit with the right bytes, 0: a miss, -1: wrong bytes.
  [[nodiscard]] int get(const Key& key) const {
    const Lookup lookup = cache->get(key, PayloadKind::kCubin);
    if (!lookup.entry) return 0;
    return text_of(lookup.entry->payload()) == payload_of(key) &&
                   lookup.entry->entry_points() == std::vector<std::string>{key.hash().substr(0, 8)}
               ? 1
               : -1;
  }
};

inline Options options_for(const std::string& base) {
  Options options;
  options.base = Base{base, false, {}};
  options.tern = "1.0";
  return options;
}
inline System quick_system() { return {std::make_shared<FaultyFileSystem>(), system_clock()}; }
inline OpenedCache open_cache(Options options, System system = quick_system()) {
  OpenedCache opened;
  options.warn = [to = opened.warnings](std::string_view text) { to->emplace_back(text); };
  options.notice = [to = opened.notices](std::string_view text) { to->emplace_back(text); };
  opened.cache = Cache::open(std::move(options), std::move(system)).value();
  return opened;
}
inline OpenedCache open_cache(const std::string& base, System system = quick_system()) {
  return open_cache(options_for(base), std::move(system));
}

// Processor time of this process, for bounds that hold on a machine that is busy otherwise.
inline double processor_ms() { return 1e3 * static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

// Relative paths of all files (and of empty folders, with a slash) below a folder.
inline std::vector<std::string> files_below(const std::string& folder) {
  std::vector<std::string> found;
  for (const auto& item : std::filesystem::recursive_directory_iterator(folder)) {
    std::string name = std::filesystem::relative(item.path(), folder).string();
    if (!item.is_directory()) found.push_back(name);
  }
  std::sort(found.begin(), found.end());
  return found;
}
// Files that are neither entries nor locks: there should be none.
inline std::vector<std::string> strays_below(const std::string& folder) {
  std::vector<std::string> strays;
  for (const std::string& name : files_below(folder)) {
    if (!name.ends_with(".tkc") && !name.ends_with(".lock")) strays.push_back(name);
  }
  for (const auto& item : std::filesystem::recursive_directory_iterator(folder)) {
    if (item.path().filename().string().find("scratch-") != std::string::npos) {
      strays.push_back(item.path().string());
    }
  }
  return strays;
}

}  // namespace tern::cache
