// Reading and writing of entries: Cache::get and Cache::put.
#include <array>
#include <cerrno>

#include "backend/cache/cache.h"
#include "backend/cache/file_names.h"
#include "base/utf8.h"

namespace tern::cache {
namespace {

constexpr std::uint32_t kWriteBitsOfOthers = 022;
constexpr std::int64_t kHour = std::int64_t{3600} * 1'000'000'000;
constexpr int kAttempts = 16;

FileMark mark_of(const std::string& path, const FileStatus& status) {
  return {path, status.device, status.inode, status.bytes, status.modified_ns};
}

bool is_same(const FileMark& mark, const FileStatus& status) {
  return mark.device == status.device && mark.inode == status.inode && mark.bytes == status.bytes;
}

// Reads until `bytes` are there or the file ends; a short read is only a read.
std::int64_t read_all(FileSystem& files, int descriptor, std::byte* to, std::uint64_t bytes) {
  std::uint64_t done = 0;
  while (done < bytes) {
    const std::int64_t n =
        files.read(descriptor, to + done, static_cast<std::size_t>(bytes - done));
    if (n < 0) return n;
    if (n == 0) break;
    done += static_cast<std::uint64_t>(n);
  }
  return static_cast<std::int64_t>(done);
}

}  // namespace

Lookup Cache::get(const Key& key, PayloadKind kind) {
  Lookup lookup;
  if (mode() == Mode::kOff) {
    lookup.why = "the disk tier is off: " + why_off();
    return lookup;
  }
  if (!ensure_folder(key, true, false, lookup.why)) return lookup;
  Examined examined = examine(path_of(key));
  if (!examined.exists) {
    lookup.why = examined.why;
    return lookup;
  }
  if (examined.entry && examined.entry->key_text() != key.text()) {
    // The put that follows replaces it.
    lookup.why = "the entry has another key";
    lookup.was_bad = true;
    return lookup;
  }
  if (examined.entry && examined.entry->kind() != kind) {
    examined.why = fmt::format("the entry holds a {}, expected a {}",
                               name_of(examined.entry->kind()), name_of(kind));
    examined.entry.reset();
  }
  if (!examined.entry) {
    lookup.why = examined.why;
    lookup.was_bad = true;
    if (examined.is_ours) remove(examined.mark);
    return lookup;
  }
  touch_if_old(examined.mark);
  lookup.entry = std::move(examined.entry);
  return lookup;
}

Cache::Examined Cache::examine(const std::string& path) {
  FileSystem& files = *system_.files;
  Examined examined;
  const int descriptor = files.open_read(path);
  if (descriptor < 0) {
    examined.exists = descriptor != -ENOENT;
    examined.why = examined.exists
                       ? fmt::format("the entry cannot be opened: {}", describe_errno(descriptor))
                       : "no entry";
    return examined;
  }
  examined.exists = true;
  FileStatus status;
  const int found = files.status(descriptor, status);
  if (found < 0) {
    examined.why = fmt::format("the entry cannot be looked at: {}", describe_errno(found));
  } else if (status.type != FileStatus::Type::kFile) {
    examined.why = "what stands in the entry's place is no file";
  } else if (status.owner != files.user()) {
    examined.why = "the entry belongs to another user";
  } else {
    examined.is_ours = true;
    examined.mark = mark_of(path, status);
    if ((status.mode & kWriteBitsOfOthers) != 0) {
      examined.why = fmt::format("the entry may be written by others (mode {:o})", status.mode);
    } else {
      read_checked(descriptor, status.bytes, examined);
    }
  }
  files.close(descriptor);
  return examined;
}

void Cache::read_checked(int descriptor, std::uint64_t bytes, Examined& examined) {
  FileSystem& files = *system_.files;
  std::vector<std::byte> content(kEntryHeaderBytes);
  const auto cut = [&examined](std::int64_t n) {
    examined.why = n < 0 ? fmt::format("the entry cannot be read: {}", describe_errno(n))
                         : fmt::format("the entry ends at byte {}", n);
  };
  std::int64_t n = read_all(files, descriptor, content.data(), content.size());
  if (n != static_cast<std::int64_t>(content.size())) return cut(n);
  const Result<EntryHeader> header = parse_entry_header(content, bytes);
  if (!header.ok()) {
    examined.why = header.error().message();
    return;
  }
  content.resize(static_cast<std::size_t>(bytes));  // at most 258 MiB: the lengths add up to it
  n = read_all(files, descriptor, content.data() + kEntryHeaderBytes, bytes - kEntryHeaderBytes);
  if (n != static_cast<std::int64_t>(bytes - kEntryHeaderBytes)) return cut(n);
  const Result<EntryView> view = parse_entry(content);
  if (!view.ok()) {
    examined.why = view.error().message();
    return;
  }
  examined.entry.emplace(std::move(content), *view, examined.mark);
}

// For eviction only. At most once an hour, so that a hit costs no write.
void Cache::touch_if_old(const FileMark& mark) {
  if (!is_on()) return;
  const std::int64_t now = system_.clock->wall_ns();
  if (mark.modified_ns > now - kHour && mark.modified_ns < now + kHour) return;
  const int descriptor = system_.files->open_read(mark.path);
  if (descriptor < 0) return;
  FileStatus status;
  if (system_.files->status(descriptor, status) == 0 && is_same(mark, status)) {
    system_.files->touch(descriptor, now);
  }
  system_.files->close(descriptor);
}

void Cache::remove(const FileMark& mark) {
  if (!is_on() || mark.path.empty()) return;
  FileStatus status;
  if (system_.files->status_of(mark.path, status) < 0 || !is_same(mark, status)) return;
  system_.files->remove(mark.path);
}

PutOutcome Cache::put(const Key& key, PayloadKind kind, std::span<const std::string> entry_points,
                      std::span<const std::byte> payload) {
  if (!is_on()) {
    return {false,
            mode() == Mode::kReadOnly ? std::string("the cache is only read")
                                      : "the disk tier is off: " + why_off(),
            {}};
  }
  const Result<std::vector<std::byte>> bytes =
      encode_entry(kind, key.text(), entry_points, payload);
  if (!bytes.ok()) return {false, bytes.error().message(), {}};
  if (bytes->size() > options_.size_limit) {
    return {false,
            fmt::format("{} bytes are above the bound of the whole cache ({} bytes)", bytes->size(),
                        options_.size_limit),
            {}};
  }
  PutOutcome outcome;
  int result = -ENOENT;
  for (int attempt = 0; attempt < kAttempts && result == -ENOENT; ++attempt) {
    if (attempt > 0) forget_folders();  // another process has cleared the tree
    if (!ensure_folder(key, true, true, outcome.why)) {
      result = -EIO;
      break;
    }
    const std::string path = path_of(key);
    const std::string folder = path.substr(0, path.rfind('/'));
    remove_leftovers(folder);
    result = write_entry(folder, key.stem(), *bytes, outcome);
  }
  if (result < 0) {
    if (mode() != Mode::kOff) {
      warn_once("put", fmt::format("a compiled kernel cannot be kept on disk: {}", outcome.why));
    }
    return outcome;
  }
  outcome.stored = true;
  outcome.why.clear();
  note_put(bytes->size());
  return outcome;
}

// -ENOENT: the folder or the temporary file has gone; worth another attempt.
int Cache::write_entry(const std::string& folder, const std::string& stem,
                       std::span<const std::byte> bytes, PutOutcome& outcome) {
  FileSystem& files = *system_.files;
  std::string temporary;
  int result = -EEXIST;
  for (int attempt = 0; attempt < kAttempts && result == -EEXIST; ++attempt) {
    temporary = folder + "/" + temporary_name(stem, files.process_id(), files.random_bits());
    bool exists = false;
    result = write_temporary(temporary, bytes, exists, outcome);
    if (result < 0 && exists) files.remove(temporary);
  }
  if (result < 0) return result;
  const std::string path = folder + "/" + stem + std::string(kEntrySuffix);
  result = files.rename(temporary, path);
  if (result < 0) {
    outcome.why = fmt::format("{}: {}", escape_for_message(path, 4096), describe_errno(result));
    files.remove(temporary);
    return result;
  }
  outcome.mark.path = path;
  // The name itself is safe only when the folder is; the entry is good either way.
  const int descriptor = files.open_directory(folder);
  const int flushed = descriptor < 0 ? descriptor : files.flush(descriptor);
  if (descriptor >= 0) files.close(descriptor);
  if (flushed < 0 && flushed != -EINVAL && flushed != -EOPNOTSUPP && flushed != -ENOENT) {
    warn_once("flush", fmt::format("{} cannot be flushed to the disk: {}",
                                   escape_for_message(folder, 4096), describe_errno(flushed)));
  }
  return 0;
}

int Cache::write_temporary(const std::string& path, std::span<const std::byte> bytes, bool& exists,
                           PutOutcome& outcome) {
  FileSystem& files = *system_.files;
  const auto failed = [&](std::int64_t error) {
    outcome.why = fmt::format("{}: {}", escape_for_message(path, 4096), describe_errno(error));
    return static_cast<int>(error);
  };
  const int descriptor = files.create_new(path);
  if (descriptor < 0) return failed(descriptor);
  exists = true;
  // The lock tells a living writer's file from one that was left behind. Another process may have
  // looked between the two calls: then a new name is taken.
  FileStatus status;
  if (files.try_lock(descriptor) == -EWOULDBLOCK ||
      (files.status(descriptor, status) == 0 && status.links == 0)) {
    files.close(descriptor);
    return failed(-EEXIST);
  }
  std::int64_t result = 0;
  for (std::size_t done = 0; done < bytes.size() && result >= 0;) {
    result = files.write(descriptor, bytes.data() + done, bytes.size() - done);
    if (result == 0) result = -EIO;
    if (result > 0) done += static_cast<std::size_t>(result);
  }
  if (result >= 0) result = files.flush(descriptor);
  if (result >= 0) result = files.status(descriptor, status);
  outcome.mark = mark_of(path, status);
  const int closed = files.close(descriptor);
  if (result >= 0) result = closed;
  return result < 0 ? failed(result) : 0;
}

}  // namespace tern::cache
