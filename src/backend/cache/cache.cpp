#include "backend/cache/cache.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "backend/cache/file_names.h"
#include "base/utf8.h"

namespace tern::cache {
namespace {

std::string shown(const std::string& path) { return escape_for_message(path, 4096); }

std::string child(const std::string& folder, std::string_view name) {
  std::string path = folder;
  if (path.empty() || path.back() != '/') path += '/';
  path += name;
  return path;
}

constexpr std::uint32_t kWriteBitsOfOthers = 022;

}  // namespace

Cache::Cache(Options options, System system)
    : options_(std::move(options)), system_(std::move(system)) {}

Result<std::shared_ptr<Cache>> Cache::open(Options options, System system) {
  auto cache = std::shared_ptr<Cache>(new Cache(std::move(options), std::move(system)));
  const Options& given = cache->options_;
  if (given.mode == Mode::kOff) {
    cache->why_off_ = "it is switched off";
    return cache;
  }
  if (!given.base) {
    cache->turn_off("there is no home folder; set TERN_CACHE_DIR to an absolute path");
    return cache;
  }
  cache->root_ = child(child(given.base->path, "tern"), "kernels");
  if (Result<void> prepared = cache->prepare_base(); !prepared.ok()) {
    if (given.base->is_explicit) {
      return fail(prepared.error().code(), "TERN_CACHE_DIR: {}", prepared.error().message());
    }
    cache->turn_off(prepared.error().message());
  }
  return cache;
}

// The base exists afterwards, belongs to this user, and so do `tern` and `kernels` below it.
Result<void> Cache::prepare_base() {
  FileSystem& files = *system_.files;
  const Base& base = *options_.base;
  const bool create = options_.mode == Mode::kOn;
  FileStatus status;
  if (!base.owner_of_home.empty() && files.status_of(base.owner_of_home + "/.", status) == 0 &&
      status.owner != files.user()) {
    return fail(ErrorCode::kIo, "{} belongs to another user, so nothing is kept there",
                shown(base.owner_of_home));
  }
  // Links above `tern` are the user's own business: "/." follows them.
  int found = files.status_of(base.path + "/.", status);
  for (std::size_t at = 1; found == -ENOENT && create && at != std::string::npos;) {
    at = base.path.find('/', at);
    const std::string part = base.path.substr(0, at);
    if (at != std::string::npos) ++at;
    const int made = files.make_directory(part);
    const bool is_harmless = made == -EEXIST || at != std::string::npos;
    if (made < 0 && !is_harmless) {
      return fail(ErrorCode::kIo, "{} cannot be made: {}", shown(part), describe_errno(made));
    }
    if (at == std::string::npos) found = files.status_of(base.path + "/.", status);
  }
  if (found < 0) {
    return fail(ErrorCode::kIo, "{}: {}", shown(base.path), describe_errno(found));
  }
  if (status.owner != files.user()) {
    return fail(ErrorCode::kIo, "{} belongs to another user, so nothing is kept there",
                shown(base.path));
  }
  {
    const std::lock_guard lock(mutex_);
    mode_ = options_.mode;
    why_off_.clear();
  }
  for (const std::string& path : {child(base.path, "tern"), root_}) {
    std::string why;
    const bool is_fine = check_folder(path, create, why);
    if (mode() == Mode::kOff) return fail(ErrorCode::kIo, "{}", why_off());
    if (!is_fine && create) return fail(ErrorCode::kIo, "{}", why);
  }
  return {};
}

// A folder at or below `tern`: real, ours, and closed to the writing of others. One that is not
// turns the cache off; its mode is never changed.
bool Cache::check_folder(const std::string& path, bool create, std::string& why) {
  {
    const std::lock_guard lock(mutex_);
    if (checked_.count(path) != 0) return true;
  }
  FileSystem& files = *system_.files;
  FileStatus status;
  int found = files.status_of(path, status);
  if (found == -ENOENT && create) {
    const int made = files.make_directory(path);
    if (made < 0 && made != -EEXIST) {
      why = fmt::format("{} cannot be made: {}", shown(path), describe_errno(made));
      return false;
    }
    found = files.status_of(path, status);
  }
  if (found < 0) {
    why = found == -ENOENT ? "no entry" : fmt::format("{}: {}", shown(path), describe_errno(found));
    return false;
  }
  if (status.type != FileStatus::Type::kDirectory) {
    why =
        fmt::format("{} is {}; move it away, or set TERN_CACHE_DIR to another folder", shown(path),
                    status.type == FileStatus::Type::kLink ? "a link" : "not a folder");
  } else if (status.owner != files.user()) {
    why = fmt::format("{} belongs to another user; set TERN_CACHE_DIR to a folder of your own",
                      shown(path));
  } else if ((status.mode & kWriteBitsOfOthers) != 0) {
    why = fmt::format("{} may be written by others (mode {:o}); 'chmod go-w' mends it", shown(path),
                      status.mode);
  } else {
    const std::lock_guard lock(mutex_);
    checked_.insert(path);
    return true;
  }
  turn_off(why);
  return false;
}

bool Cache::ensure_folder(const Key& key, bool with_fan, bool create, std::string& why) {
  std::string path = options_.base ? options_.base->path : std::string();
  const std::string version = fmt::format("v{}", kFormatVersion);
  const std::array<std::string, 6> parts = {"tern",        "kernels",          version,
                                            key.backend(), key.architecture(), key.fan()};
  for (std::size_t i = 0; i < parts.size() - (with_fan ? 0 : 1); ++i) {
    path = child(path, parts[i]);
    if (!check_folder(path, create, why)) return false;
  }
  return true;
}

void Cache::forget_folders() {
  const std::lock_guard lock(mutex_);
  checked_.clear();
  swept_.clear();
}

void Cache::turn_off(const std::string& why) {
  bool is_opening = false;
  {
    const std::lock_guard lock(mutex_);
    mode_ = Mode::kOff;
    why_off_ = why;
    is_opening = checked_.empty();
  }
  // An explicit folder that fails at open() is an error of its caller.
  if (options_.base && options_.base->is_explicit && is_opening) return;
  warn_once("off", fmt::format("the kernel cache on disk is off for this process: {}", why));
}

void Cache::warn_once(const std::string& kind, const std::string& text) {
  {
    const std::lock_guard lock(mutex_);
    if (!warned_.insert(kind).second) return;
  }
  if (options_.warn) options_.warn(text);
}

Mode Cache::mode() const {
  const std::lock_guard lock(mutex_);
  return mode_;
}

std::string Cache::why_off() const {
  const std::lock_guard lock(mutex_);
  return why_off_;
}

std::string Cache::path_of(const Key& key) const {
  return fmt::format("{}/v{}/{}/{}/{}/{}{}", root_, kFormatVersion, key.backend(),
                     key.architecture(), key.fan(), key.stem(), kEntrySuffix);
}

KeyLock Cache::lock(const Key& key) {
  if (!is_on()) return {};
  {
    const std::lock_guard lock(mutex_);
    if (given_up_.count(key.hash()) != 0) return {KeyLock::State::kTimedOut, nullptr, -1};
  }
  std::string why;
  if (!ensure_folder(key, true, true, why)) return {};
  std::string path = path_of(key);
  path.replace(path.size() - kEntrySuffix.size(), kEntrySuffix.size(), kLockSuffix);
  int descriptor = system_.files->open_lock(path);
  if (descriptor == -ENOENT) {  // another process has cleared the tree
    forget_folders();
    if (ensure_folder(key, true, true, why)) descriptor = system_.files->open_lock(path);
  }
  if (descriptor < 0) return {KeyLock::State::kUnsupported, nullptr, -1};
  return wait_for(key, descriptor);
}

KeyLock Cache::wait_for(const Key& key, int descriptor) {
  FileSystem& files = *system_.files;
  const std::int64_t start = system_.clock->steady_ns();
  std::int64_t pause_ms = 2;
  bool is_told = false;
  for (;;) {
    const int result = files.try_lock(descriptor);
    if (result == 0) {
      files.overwrite(descriptor, fmt::format("process {}\n", files.process_id()));
      return {KeyLock::State::kHeld, system_.files, descriptor};
    }
    if (result != -EWOULDBLOCK) {
      files.close(descriptor);
      return {KeyLock::State::kUnsupported, nullptr, -1};
    }
    const std::int64_t waited_ms = (system_.clock->steady_ns() - start) / 1'000'000;
    if (waited_ms >= options_.lock_wait_ms) {
      files.close(descriptor);
      const std::lock_guard lock(mutex_);
      given_up_.insert(key.hash());
      return {KeyLock::State::kTimedOut, nullptr, -1};
    }
    if (!is_told && waited_ms >= options_.lock_notice_ms) {
      is_told = true;
      std::array<char, 64> text{};
      const std::int64_t n = files.read(descriptor, text.data(), text.size());
      std::string holder(text.data(), static_cast<std::size_t>(std::max<std::int64_t>(n, 0)));
      holder = holder.substr(0, holder.find('\n'));
      if (options_.notice) {
        options_.notice(fmt::format(
            "waiting for {} to finish a GPU kernel",
            holder.empty() ? std::string("another process") : escape_for_message(holder, 64)));
      }
    }
    system_.clock->sleep_ms(std::min(pause_ms, options_.lock_wait_ms - waited_ms));
    pause_ms = std::min<std::int64_t>(pause_ms * 2, 50);
  }
}

Result<ScratchFolder> Cache::make_scratch(const Key& key) {
  std::string why;
  for (int attempt = 0; attempt < 2 && is_on(); ++attempt) {
    if (attempt > 0) forget_folders();  // another process may have cleared the tree
    if (!ensure_folder(key, false, true, why)) break;
    Result<ScratchFolder> made = make_scratch_in(
        fmt::format("{}/v{}/{}/{}", root_, kFormatVersion, key.backend(), key.architecture()),
        kScratchPrefix);
    if (made.ok()) return made;
  }
  return make_scratch_in(options_.temporary_folder, kOutsideScratchPrefix);
}

Result<ScratchFolder> Cache::make_scratch_in(const std::string& parent, std::string_view prefix) {
  FileSystem& files = *system_.files;
  remove_leftovers(parent);
  constexpr int kAttempts = 16;
  int made = 0;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const std::string path = child(parent, fmt::format("{}{:016x}", prefix, files.random_bits()));
    made = files.make_directory(path);
    if (made == -EEXIST) continue;
    if (made < 0) break;
    const int descriptor = files.open_directory(path);
    // Another process may have taken the new folder for a leftover.
    FileStatus status;
    const bool is_lost = descriptor < 0 || files.try_lock(descriptor) == -EWOULDBLOCK ||
                         files.status_of(path, status) < 0;
    if (!is_lost) return ScratchFolder(system_.files, path, descriptor);
    if (descriptor >= 0) files.close(descriptor);
    files.remove_directory(path);
  }
  return fail(ErrorCode::kIo, "no private folder for a compiler can be made in {}: {}",
              shown(parent), describe_errno(made));
}

}  // namespace tern::cache
