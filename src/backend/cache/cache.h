// Verified entry files on disk: read, written, locked, healed and bounded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backend/cache/entry.h"
#include "backend/cache/file_system.h"
#include "backend/cache/key.h"
#include "backend/cache/key_lock.h"
#include "backend/cache/location.h"
#include "base/error.h"

namespace tern::cache {

enum class Mode {
  kOff,       // no disk tier
  kReadOnly,  // reads; never writes, removes, locks or touches
  kOn,
};

using MessageFn = std::function<void(std::string_view)>;

struct Options {
  std::optional<Base> base;  // none: no disk tier
  Mode mode = Mode::kOn;
  // This build's value of the key line `tern`: entries of other builds are evicted first.
  std::string tern;
  std::uint64_t size_limit = std::uint64_t{256} << 20;
  std::uint64_t entries_limit = 16384;
  std::int64_t lock_wait_ms = 30000;
  std::int64_t lock_notice_ms = 1000;
  std::string temporary_folder = "/tmp";  // for scratch when there is no disk tier
  MessageFn warn;    // one sentence, at most once per kind of trouble and process; may be empty
  MessageFn notice;  // one sentence about waiting; may be empty
};

// Which file was examined, so that only that one is removed.
struct FileMark {
  std::string path;
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::uint64_t bytes = 0;
  std::int64_t modified_ns = 0;
};

// A verified entry in memory.
class Entry {
 public:
  Entry(std::vector<std::byte> bytes, EntryView view, FileMark mark)
      : bytes_(std::move(bytes)), view_(view), mark_(std::move(mark)) {}
  Entry(Entry&&) noexcept = default;
  Entry& operator=(Entry&&) noexcept = default;
  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;

  [[nodiscard]] PayloadKind kind() const { return view_.kind; }
  [[nodiscard]] std::string_view key_text() const { return view_.key_text; }
  [[nodiscard]] std::span<const std::byte> payload() const { return view_.payload; }
  [[nodiscard]] std::vector<std::string> entry_points() const { return view_.entry_point_names(); }
  [[nodiscard]] const FileMark& mark() const { return mark_; }

 private:
  std::vector<std::byte> bytes_;
  EntryView view_;  // into bytes_
  FileMark mark_;
};

struct Lookup {
  std::optional<Entry> entry;
  std::string why;       // a miss: the reason, one clause
  bool was_bad = false;  // a file was there and has been found wanting (it is removed in mode kOn)
};

struct PutOutcome {
  bool stored = false;
  std::string why;  // not stored: the reason
  FileMark mark;    // stored: the file that was written
};

struct ListedEntry {
  std::string path;
  std::string backend;
  std::string architecture;
  int format = 0;
  std::uint64_t bytes = 0;
  std::int64_t used_ns = 0;
  bool is_lock = false;  // a lock file: counted and cleared, never evicted
  FileMark mark;
};

struct ClearOptions {
  std::optional<std::int64_t> older_than_days;
  bool all_versions = false;
};
struct ClearReport {
  std::uint64_t entries = 0;
  std::uint64_t bytes = 0;
  std::uint64_t locks = 0;
  std::uint64_t leftovers = 0;            // temporary files and scratch folders
  std::vector<std::string> kept_foreign;  // files that are not Tern's
  std::vector<std::string> failures;
};

// Threads: any may call any member. Processes: any number may share the folder. No member throws,
// and apart from open() nothing here fails: the disk is a help, never a condition.
class Cache {
 public:
  // Fails only for an explicit base that cannot be used (kUsage, kIo). Any other trouble is one
  // warning and a cache without a disk. With mode kOn the folders are made.
  [[nodiscard]] static Result<std::shared_ptr<Cache>> open(Options options, System system = {});

  // A read, checked, matching entry, or the reason why there is none.
  [[nodiscard]] Lookup get(const Key& key, PayloadKind kind);
  // Stores, then keeps the size bound. Losing a race is success.
  PutOutcome put(const Key& key, PayloadKind kind, std::span<const std::string> entry_points,
                 std::span<const std::byte> payload);
  // After a failure beyond the file format (the driver refused it): removes what was examined.
  void remove(const FileMark& mark);

  // Waits for the key's lock at most lock_wait_ms, with a notice after lock_notice_ms; a key that
  // was waited for in vain is not waited for again. Never fails: without a lock the caller works
  // privately. In the modes kOff and kReadOnly it is empty at once.
  [[nodiscard]] KeyLock lock(const Key& key);

  // A fresh private folder for a compiler, removed with the object: beside the entries, or where
  // that is not possible in the temporary folder. Errors: kIo.
  [[nodiscard]] Result<ScratchFolder> make_scratch(const Key& key);

  // All entries below tern/kernels, of every format version.
  [[nodiscard]] std::vector<ListedEntry> list();
  // Reads and checks one listed entry; nothing is removed.
  [[nodiscard]] Result<Entry> read_listed(const ListedEntry& entry);
  ClearReport clear(const ClearOptions& options);
  // Brings the folder below its bounds, as every put does by itself. Returns the removed bytes.
  std::uint64_t evict();

  [[nodiscard]] Mode mode() const;            // kOff after the folder was found unusable
  [[nodiscard]] std::string why_off() const;  // empty while it is on
  [[nodiscard]] const std::string& root() const { return root_; }  // <base>/tern/kernels
  [[nodiscard]] std::string path_of(const Key& key) const;

 private:
  // What a file was found to be.
  struct Examined {
    std::optional<Entry> entry;
    std::string why;  // no entry: the reason
    bool exists = false;
    bool is_ours = false;  // a file of this user: may be removed
    FileMark mark;
  };
  enum class Found { kEntry, kLock, kLeftover, kScratch, kFolder, kForeign };
  struct WalkItem {
    Found found;
    ListedEntry entry;
  };

  Cache(Options options, System system);
  Result<void> prepare_base();
  // The folder of a key (or of its architecture), looked at once. With `create` it is made.
  bool ensure_folder(const Key& key, bool with_fan, bool create, std::string& why);
  bool check_folder(const std::string& path, bool create, std::string& why);
  void forget_folders();
  void turn_off(const std::string& why);
  void warn_once(const std::string& kind, const std::string& text);
  [[nodiscard]] bool is_on() const { return mode() == Mode::kOn; }

  Examined examine(const std::string& path);
  void read_checked(int descriptor, std::uint64_t bytes, Examined& examined);
  void touch_if_old(const FileMark& mark);
  int write_entry(const std::string& folder, const std::string& stem,
                  std::span<const std::byte> bytes, PutOutcome& outcome);
  int write_temporary(const std::string& path, std::span<const std::byte> bytes, bool& exists,
                      PutOutcome& outcome);
  KeyLock wait_for(const Key& key, int descriptor);
  Result<ScratchFolder> make_scratch_in(const std::string& parent, std::string_view prefix);

  [[nodiscard]] std::vector<WalkItem> walk();
  void walk_folder(const std::string& path, const ListedEntry& place, int depth,
                   std::vector<WalkItem>& items);
  bool is_abandoned(const std::string& path, bool is_folder);
  void remove_leftovers(const std::string& folder);
  void note_put(std::uint64_t bytes);
  void clear_item(const WalkItem& item, const ClearOptions& options, ClearReport& report);
  bool is_of_other_build(const ListedEntry& entry);

  Options options_;
  System system_;
  std::string root_;

  mutable std::mutex mutex_;  // guards what follows; never held during a call of the system
  Mode mode_ = Mode::kOff;
  std::string why_off_ = "there is no folder for it";
  std::set<std::string> checked_;    // folders that were looked at
  std::set<std::string> warned_;     // kinds of trouble that were told
  std::set<std::string> given_up_;   // keys that are not waited for again
  std::set<std::string> swept_;      // folders whose leftovers were removed
  bool is_counted_ = false;          // the two below are known
  std::uint64_t counted_bytes_ = 0;  // at the last listing, and own puts since
  std::uint64_t counted_entries_ = 0;
  std::uint64_t added_bytes_ = 0;  // own puts since the last listing
};

}  // namespace tern::cache
