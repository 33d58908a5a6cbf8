// An advisory lock on one key across processes, and a private folder that goes with its owner.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "backend/cache/file_system.h"

namespace tern::cache {

// Held until the object or the process ends, whatever ends it.
class KeyLock {
 public:
  enum class State {
    kNone,         // no disk tier
    kHeld,         // alone with this key
    kUnsupported,  // the file system knows no locks: as if held
    kTimedOut,     // another process still holds it: work privately
  };

  KeyLock() = default;
  KeyLock(State state, std::shared_ptr<FileSystem> files, int descriptor)
      : state_(state), files_(std::move(files)), descriptor_(descriptor) {}
  ~KeyLock() { release(); }
  KeyLock(KeyLock&& other) noexcept
      : state_(std::exchange(other.state_, State::kNone)),
        files_(std::move(other.files_)),
        descriptor_(std::exchange(other.descriptor_, -1)) {}
  KeyLock& operator=(KeyLock&& other) noexcept {
    release();
    state_ = std::exchange(other.state_, State::kNone);
    files_ = std::move(other.files_);
    descriptor_ = std::exchange(other.descriptor_, -1);
    return *this;
  }

  void release();
  [[nodiscard]] State state() const { return state_; }
  // Somebody else may have stored the key while this waited: look again before compiling.
  [[nodiscard]] bool is_held() const {
    return state_ == State::kHeld || state_ == State::kUnsupported;
  }

 private:
  State state_ = State::kNone;
  std::shared_ptr<FileSystem> files_;
  int descriptor_ = -1;
};

// A folder of mode 0700 with an unpredictable name. It is locked while it lives, so that one whose
// owner was killed is recognised and removed by the next writer.
class ScratchFolder {
 public:
  ScratchFolder() = default;
  ScratchFolder(std::shared_ptr<FileSystem> files, std::string path, int descriptor)
      : files_(std::move(files)), path_(std::move(path)), descriptor_(descriptor) {}
  ~ScratchFolder() { discard(); }
  ScratchFolder(ScratchFolder&& other) noexcept
      : files_(std::move(other.files_)),
        path_(std::exchange(other.path_, {})),
        descriptor_(std::exchange(other.descriptor_, -1)) {}
  ScratchFolder& operator=(ScratchFolder&& other) noexcept {
    discard();
    files_ = std::move(other.files_);
    path_ = std::exchange(other.path_, {});
    descriptor_ = std::exchange(other.descriptor_, -1);
    return *this;
  }

  void discard();
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::shared_ptr<FileSystem> files_;
  std::string path_;
  int descriptor_ = -1;
};

// Removes a folder with all that is in it, links unfollowed. False when something is left.
bool remove_tree(FileSystem& files, const std::string& path);

}  // namespace tern::cache
