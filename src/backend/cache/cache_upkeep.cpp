// What keeps the folder small and clean: listing, eviction, leftovers, clear.
#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <iterator>

#include "backend/cache/cache.h"
#include "backend/cache/file_names.h"
#include "base/utf8.h"

namespace tern::cache {
namespace {

constexpr std::int64_t kDay = std::int64_t{24} * 3600 * 1'000'000'000;
// Eviction frees one part of this many more than it must, so that it does not happen at every put.
constexpr std::uint64_t kSlack = 16;
constexpr int kMostDepth = 8;

// "v12" -> 12; 0: no folder of a format.
int format_of_folder(std::string_view name) {
  int version = 0;
  if (name.size() < 2 || name.front() != 'v') return 0;
  const auto [end, error] = std::from_chars(name.data() + 1, name.data() + name.size(), version);
  return error == std::errc() && end == name.data() + name.size() && version > 0 ? version : 0;
}

}  // namespace

std::vector<Cache::WalkItem> Cache::walk() {
  std::vector<WalkItem> items;
  std::vector<std::string> names;
  if (mode() == Mode::kOff || system_.files->list(root_, names) < 0) return items;
  for (const std::string& name : names) {
    ListedEntry place;
    place.path = root_ + "/" + name;
    place.format = format_of_folder(name);
    FileStatus status;
    const bool is_format = place.format > 0 && system_.files->status_of(place.path, status) == 0 &&
                           status.type == FileStatus::Type::kDirectory;
    if (is_format) {
      walk_folder(place.path, place, 0, items);
      items.push_back({Found::kFolder, place});
    } else {
      items.push_back({Found::kForeign, place});
    }
  }
  return items;
}

// Items of a folder come before the folder. Other formats may have other depths, so any is walked.
void Cache::walk_folder(const std::string& path, const ListedEntry& place, int depth,
                        std::vector<WalkItem>& items) {
  FileSystem& files = *system_.files;
  std::vector<std::string> names;
  if (depth > kMostDepth || files.list(path, names) < 0) return;
  for (const std::string& name : names) {
    WalkItem item{Found::kForeign, place};
    item.entry.path = path + "/" + name;
    FileStatus status;
    if (files.status_of(item.entry.path, status) < 0) continue;
    const bool is_ours = status.owner == files.user();
    item.entry.bytes = status.bytes;
    item.entry.used_ns = status.modified_ns;
    item.entry.mark = {item.entry.path, status.device, status.inode, status.bytes,
                       status.modified_ns};
    if (status.type == FileStatus::Type::kDirectory && is_ours) {
      if (is_scratch_name(name, kScratchPrefix)) {
        item.found = Found::kScratch;
      } else {
        if (depth == 0) item.entry.backend = name;
        if (depth == 1) item.entry.architecture = name;
        walk_folder(item.entry.path, item.entry, depth + 1, items);
        item.found = Found::kFolder;
      }
    } else if (status.type == FileStatus::Type::kFile && is_ours) {
      item.found = has_stem_and(name, kEntrySuffix)  ? Found::kEntry
                   : has_stem_and(name, kLockSuffix) ? Found::kLock
                   : is_temporary_name(name)         ? Found::kLeftover
                                                     : Found::kForeign;
    }
    item.entry.is_lock = item.found == Found::kLock;
    items.push_back(std::move(item));
  }
}

std::vector<ListedEntry> Cache::list() {
  std::vector<ListedEntry> entries;
  for (WalkItem& item : walk()) {
    if (item.found == Found::kEntry) entries.push_back(std::move(item.entry));
  }
  std::sort(entries.begin(), entries.end(),
            [](const ListedEntry& a, const ListedEntry& b) { return a.path < b.path; });
  return entries;
}

Result<Entry> Cache::read_listed(const ListedEntry& entry) {
  Examined examined = examine(entry.path);
  if (examined.entry) return std::move(*examined.entry);
  return fail(ErrorCode::kInvalidFile, "{}: {}", escape_for_message(entry.path, 4096),
              examined.why);
}

// The key text says which build wrote an entry. One that cannot be read goes with the others.
bool Cache::is_of_other_build(const ListedEntry& entry) {
  FileSystem& files = *system_.files;
  const int descriptor = files.open_read(entry.path);
  if (descriptor < 0) return true;
  std::array<std::byte, 16384> start{};
  std::size_t n = 0;
  while (n < start.size()) {
    const std::int64_t more = files.read(descriptor, start.data() + n, start.size() - n);
    if (more <= 0) break;
    n += static_cast<std::size_t>(more);
  }
  files.close(descriptor);
  const Result<EntryHeader> header = parse_entry_header(std::span(start).first(n), entry.bytes);
  if (!header.ok()) return true;
  const std::size_t bytes = std::min<std::size_t>(header->key_bytes, n - kEntryHeaderBytes);
  const std::string_view text(reinterpret_cast<const char*>(start.data()) + kEntryHeaderBytes,
                              bytes);
  const std::string build = value_of_line(text, "tern");  // may go on with a generator's hash
  return build != options_.tern && !build.starts_with(options_.tern + " ");
}

std::uint64_t Cache::evict() {
  if (!is_on()) return 0;
  struct Candidate {
    ListedEntry entry;
    int rank;  // lower goes first
  };
  std::vector<Candidate> candidates;
  std::uint64_t bytes = 0;
  for (ListedEntry& entry : list()) {
    bytes += entry.bytes;
    candidates.push_back({std::move(entry), 2});
  }
  std::uint64_t entries = candidates.size();
  std::uint64_t freed = 0;
  if (bytes > options_.size_limit || entries > options_.entries_limit) {
    for (Candidate& candidate : candidates) {
      if (candidate.entry.format != kFormatVersion) {
        candidate.rank = 0;
      } else if (is_of_other_build(candidate.entry)) {
        candidate.rank = 1;
      }
    }
    std::sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
      return std::pair(a.rank, a.entry.used_ns) < std::pair(b.rank, b.entry.used_ns);
    });
    const std::uint64_t bytes_aim = options_.size_limit - options_.size_limit / kSlack;
    const std::uint64_t entries_aim = options_.entries_limit - options_.entries_limit / kSlack;
    for (const Candidate& candidate : candidates) {
      if (bytes <= bytes_aim && entries <= entries_aim) break;
      remove(candidate.entry.mark);
      bytes -= candidate.entry.bytes;
      freed += candidate.entry.bytes;
      --entries;
    }
  }
  const std::lock_guard lock(mutex_);
  is_counted_ = true;
  counted_bytes_ = bytes;
  counted_entries_ = entries;
  added_bytes_ = 0;
  return freed;
}

// The listing is the truth. It is taken at the first put, whenever the bound may be passed, and
// after every 1/16 of the bound, because other processes put too.
void Cache::note_put(std::uint64_t bytes) {
  {
    const std::lock_guard lock(mutex_);
    counted_bytes_ += bytes;
    ++counted_entries_;
    added_bytes_ += bytes;
    if (is_counted_ && counted_bytes_ <= options_.size_limit &&
        counted_entries_ <= options_.entries_limit &&
        added_bytes_ <= options_.size_limit / kSlack) {
      return;
    }
  }
  evict();
}

// Whoever works with it holds its lock. Where the file system knows no locks, a day is waited.
bool Cache::is_abandoned(const std::string& path, bool is_folder) {
  FileSystem& files = *system_.files;
  const int descriptor = is_folder ? files.open_directory(path) : files.open_read(path);
  if (descriptor < 0) return false;
  FileStatus status;
  bool is_left = false;
  if (files.status(descriptor, status) == 0 && status.owner == files.user()) {
    const int locked = files.try_lock(descriptor);
    is_left = locked == 0 ||
              (locked != -EWOULDBLOCK && status.modified_ns < system_.clock->wall_ns() - kDay);
  }
  files.close(descriptor);
  return is_left;
}

// Once per folder and process, before the first write there.
void Cache::remove_leftovers(const std::string& folder) {
  {
    const std::lock_guard lock(mutex_);
    if (!swept_.insert(folder).second) return;
  }
  FileSystem& files = *system_.files;
  std::vector<std::string> names;
  if (files.list(folder, names) < 0) return;
  for (const std::string& name : names) {
    const std::string path = folder + "/" + name;
    if (is_temporary_name(name)) {
      if (is_abandoned(path, false)) files.remove(path);
    } else if (is_scratch_name(name, kScratchPrefix) ||
               is_scratch_name(name, kOutsideScratchPrefix)) {
      if (is_abandoned(path, true)) remove_tree(files, path);
    }
  }
}

ClearReport Cache::clear(const ClearOptions& options) {
  ClearReport report;
  if (!is_on()) {
    report.failures.push_back(mode() == Mode::kReadOnly ? "the cache is only read" : why_off());
    return report;
  }
  for (const WalkItem& item : walk()) {
    if (item.entry.format == kFormatVersion || options.all_versions ||
        item.found == Found::kForeign) {
      clear_item(item, options, report);
    }
  }
  forget_folders();
  const std::lock_guard lock(mutex_);
  is_counted_ = false;
  return report;
}

void Cache::clear_item(const WalkItem& item, const ClearOptions& options, ClearReport& report) {
  FileSystem& files = *system_.files;
  const std::string& path = item.entry.path;
  const bool is_kept_by_age =
      options.older_than_days &&
      item.entry.used_ns > system_.clock->wall_ns() - *options.older_than_days * kDay;
  const auto count = [&](int result, std::uint64_t& counter) {
    if (result == 0) {
      ++counter;
    } else if (result != -ENOENT) {
      report.failures.push_back(
          fmt::format("{}: {}", escape_for_message(path, 4096), describe_errno(result)));
    }
    return result == 0;
  };
  switch (item.found) {
    case Found::kEntry:
      if (!is_kept_by_age && count(files.remove(path), report.entries)) {
        report.bytes += item.entry.bytes;
      }
      break;
    case Found::kLock:
      // One that is held stays: its holder would otherwise no longer be alone.
      if (!is_kept_by_age && is_abandoned(path, false)) count(files.remove(path), report.locks);
      break;
    case Found::kLeftover:
      if (is_abandoned(path, false)) count(files.remove(path), report.leftovers);
      break;
    case Found::kScratch:
      if (is_abandoned(path, true) && remove_tree(files, path)) ++report.leftovers;
      break;
    case Found::kFolder:
      files.remove_directory(path);  // refuses while something is in it
      break;
    case Found::kForeign:
      report.kept_foreign.push_back(path);
      break;
  }
}

}  // namespace tern::cache
