#include "backend/cache/key_lock.h"

#include <vector>

namespace tern::cache {

void KeyLock::release() {
  if (files_ && descriptor_ >= 0) files_->close(descriptor_);
  descriptor_ = -1;
  files_.reset();
  state_ = State::kNone;
}

void ScratchFolder::discard() {
  if (!files_) return;
  if (!path_.empty()) remove_tree(*files_, path_);
  if (descriptor_ >= 0) files_->close(descriptor_);
  path_.clear();
  descriptor_ = -1;
  files_.reset();
}

bool remove_tree(FileSystem& files, const std::string& path) {
  // Without recursion: folders are removed from the end of this list, after what is in them.
  std::vector<std::string> folders = {path};
  bool is_clean = true;
  for (std::size_t i = 0; i < folders.size(); ++i) {
    std::vector<std::string> names;
    const std::string folder = folders[i];
    if (files.list(folder, names) < 0) is_clean = false;
    for (const std::string& name : names) {
      const std::string item = folder + "/" + name;
      FileStatus status;
      if (files.status_of(item, status) == 0 && status.type == FileStatus::Type::kDirectory) {
        folders.push_back(item);
      } else if (files.remove(item) < 0) {
        is_clean = false;
      }
    }
  }
  for (std::size_t i = folders.size(); i-- > 0;) {
    if (files.remove_directory(folders[i]) < 0) is_clean = false;
  }
  return is_clean;
}

}  // namespace tern::cache
