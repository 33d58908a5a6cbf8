// Caches of vendor objects: shared ones that do not change, and a pool of those that change while
// they encode.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include "backend/gpu/vendor/lru_table.h"
#include "base/error.h"

namespace tern::gpu {

// Objects are made outside of the lock by the caller's function and inserted under it; of two
// threads that make the same one, the later uses the earlier's and drops its own. A failure to make
// leaves the cache as it was. An entry belongs to a generation: who started before an invalidation
// finds and makes objects as before, and inserts none.
template <class Key, class Object>
class ObjectCache {
 public:
  using Ref = std::shared_ptr<const Object>;

  ObjectCache(std::size_t bound, std::uint64_t hash_mask)
      : bound_(bound), table_(bound, hash_mask) {}

  // `make` returns Result<std::unique_ptr<Object>>, never null.
  template <class Make>
  Result<Ref> get(const Key& key, std::uint64_t generation, Make&& make) {
    {
      const std::lock_guard lock(mutex_);
      if (auto* node = table_.find(key)) return node->value;
    }
    TERN_ASSIGN(std::unique_ptr<Object> made, make());
    auto fresh = std::make_unique<Node>(key, Ref(std::move(made)));
    Ref result = fresh->value;
    const List dropped = insert(std::move(fresh), generation, result);
    return result;
  }

  // Takes out what `predicate` names and refuses entries of older generations from here on. The
  // caller lets the list go without a lock.
  template <class Predicate>
  [[nodiscard]] auto invalidate(std::uint64_t generation, Predicate&& predicate) {
    const std::lock_guard lock(mutex_);
    generation_ = std::max(generation_, generation);
    return table_.take_if([&](const Node& node) { return predicate(node.key); });
  }

  [[nodiscard]] std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return table_.size();
  }

 private:
  using Table = LruTable<Key, Ref>;
  using Node = typename Table::Node;
  using List = typename Table::List;

  // `fresh` dies after the lock: as a parameter it outlives the guard.
  List insert(std::unique_ptr<Node> fresh, std::uint64_t generation, Ref& result) {
    const std::lock_guard lock(mutex_);
    if (auto* node = table_.find(fresh->key)) {
      result = node->value;
      return {};
    }
    if (generation < generation_) return {};
    table_.insert(std::move(fresh));
    return table_.shrink(bound_);
  }

  const std::size_t bound_;
  mutable std::mutex mutex_;
  std::uint64_t generation_ = 0;
  Table table_;
};

// One encode at a time holds an object. The pool of a key grows to the number of encodes that used
// it at once and no further.
template <class Key, class Object>
class ObjectPool {
 public:
  ObjectPool(std::size_t bound, std::uint64_t hash_mask)
      : bound_(bound), table_(bound, hash_mask) {}

  // An object checked out. It goes back by give_back(); a lease that just dies, because the encode
  // failed and nobody knows what state the object is in, drops it.
  class Lease {
   public:
    Lease() = default;
    Lease(ObjectPool& pool,
          std::unique_ptr<typename LruTable<Key, std::shared_ptr<Object>>::Node> node)
        : pool_(&pool), node_(std::move(node)) {}
    Lease(Lease&& other) noexcept : pool_(other.pool_), node_(std::move(other.node_)) {}
    Lease& operator=(Lease&&) = delete;
    ~Lease() {
      if (node_) pool_->forget();
    }
    [[nodiscard]] const std::shared_ptr<Object>& object() const { return node_->value; }
    [[nodiscard]] explicit operator bool() const { return node_ != nullptr; }
    void give_back(std::uint64_t generation) {
      if (node_) pool_->put(std::move(node_), generation);
    }

   private:
    ObjectPool* pool_ = nullptr;
    std::unique_ptr<typename LruTable<Key, std::shared_ptr<Object>>::Node> node_;
  };

  template <class Make>
  Result<Lease> take(const Key& key, Make&& make) {
    {
      const std::lock_guard lock(mutex_);
      if (auto node = table_.take(key)) {
        ++in_use_;
        return Lease(*this, std::move(node));
      }
    }
    TERN_ASSIGN(std::unique_ptr<Object> made, make());
    auto node = std::make_unique<Node>(key, std::shared_ptr<Object>(std::move(made)));
    const std::lock_guard lock(mutex_);
    ++in_use_;
    return Lease(*this, std::move(node));
  }

  [[nodiscard]] auto invalidate(std::uint64_t generation) {
    const std::lock_guard lock(mutex_);
    generation_ = std::max(generation_, generation);
    return table_.take_if([](const Node&) { return true; });
  }

  [[nodiscard]] std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return table_.size();
  }
  [[nodiscard]] std::size_t in_use() const {
    const std::lock_guard lock(mutex_);
    return in_use_;
  }

 private:
  using Table = LruTable<Key, std::shared_ptr<Object>>;
  using Node = typename Table::Node;
  using List = typename Table::List;

  void forget() {
    const std::lock_guard lock(mutex_);
    --in_use_;
  }

  void put(std::unique_ptr<Node> node, std::uint64_t generation) {
    const List dropped = insert(node, generation);
  }

  // Leaves `node` with the caller, to die after the lock, when it belongs to an older generation.
  List insert(std::unique_ptr<Node>& node, std::uint64_t generation) {
    const std::lock_guard lock(mutex_);
    --in_use_;
    if (generation < generation_) return {};
    table_.insert(std::move(node));
    return table_.shrink(bound_ > in_use_ ? bound_ - in_use_ : 0);
  }

  const std::size_t bound_;
  mutable std::mutex mutex_;
  std::uint64_t generation_ = 0;
  std::size_t in_use_ = 0;
  Table table_;
};

}  // namespace tern::gpu
