// Hands out the pages of a state pool.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

namespace tern::runtime {

// Thread-safe: sessions of one model share it.
class PagePool {
 public:
  explicit PagePool(int pages) {
    free_.reserve(static_cast<std::size_t>(pages));
    for (int p = pages - 1; p >= 0; --p) free_.push_back(static_cast<std::uint32_t>(p));
  }
  // False, and nothing is taken, when fewer than `count` pages are left.
  [[nodiscard]] bool take(std::size_t count, std::vector<std::uint32_t>& pages) {
    const std::scoped_lock lock(mutex_);
    if (free_.size() < count) return false;
    for (std::size_t i = 0; i < count; ++i) {
      pages.push_back(free_.back());
      free_.pop_back();
    }
    return true;
  }
  // Gives back the pages of `pages` from index `keep` on.
  void give_back(std::vector<std::uint32_t>& pages, std::size_t keep) {
    const std::scoped_lock lock(mutex_);
    while (pages.size() > keep) {
      free_.push_back(pages.back());
      pages.pop_back();
    }
  }
  [[nodiscard]] std::size_t free_pages() const {
    const std::scoped_lock lock(mutex_);
    return free_.size();
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::uint32_t> free_;
};

// Pages for the length of a block.
class PageLease {
 public:
  explicit PageLease(PagePool& pool) : pool_(pool) {}
  ~PageLease() { pool_.give_back(pages_, 0); }
  PageLease(const PageLease&) = delete;
  PageLease& operator=(const PageLease&) = delete;
  [[nodiscard]] bool take(std::size_t count) { return pool_.take(count, pages_); }
  [[nodiscard]] const std::vector<std::uint32_t>& pages() const { return pages_; }

 private:
  PagePool& pool_;
  std::vector<std::uint32_t> pages_;
};

}  // namespace tern::runtime
