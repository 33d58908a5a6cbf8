// A bounded hash table with least recently used order that allocates nothing after its
// construction: nodes are made and destroyed by the caller, outside of its lock.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace tern::gpu {

// Not thread-safe; its owner holds a lock around every call and lets what a call returns go after
// the lock. Keys are compared member by member (operator==); the hash only picks a bucket. Several
// nodes may have the same key. K provides hash_of(const K&).
template <class Key, class Value>
class LruTable {
 public:
  struct Node {
    Node(const Key& k, Value v) : key(k), value(std::move(v)) {}
    Key key;
    Value value;

   private:
    friend class LruTable;
    Node* chain = nullptr;  // next in the bucket, or next in a List
    Node* newer = nullptr;
    Node* older = nullptr;
  };

  // Nodes that were taken out, destroyed with the list.
  class List {
   public:
    List() = default;
    List(List&& other) noexcept : first_(std::exchange(other.first_, nullptr)) {}
    List& operator=(List&&) = delete;
    ~List() {
      while (first_ != nullptr) delete std::exchange(first_, first_->chain);
    }
    [[nodiscard]] bool empty() const { return first_ == nullptr; }

   private:
    friend class LruTable;
    void push(Node* node) { node->chain = std::exchange(first_, node); }
    Node* first_ = nullptr;
  };

  explicit LruTable(std::size_t bound, std::uint64_t hash_mask = ~std::uint64_t{0})
      : hash_mask_(hash_mask), buckets_(std::bit_ceil(std::max<std::size_t>(bound, 1))) {}
  ~LruTable() {
    take_if([](const Node&) { return true; });
  }
  LruTable(const LruTable&) = delete;
  LruTable& operator=(const LruTable&) = delete;

  [[nodiscard]] std::size_t size() const { return size_; }

  // The node with that key, now the most recently used; null: none.
  [[nodiscard]] Node* find(const Key& key) {
    for (Node* node = bucket(key); node != nullptr; node = node->chain) {
      if (!(node->key == key)) continue;
      unlink_order(*node);
      link_newest(*node);
      return node;
    }
    return nullptr;
  }

  // Takes a node with that key out; null: none.
  [[nodiscard]] std::unique_ptr<Node> take(const Key& key) {
    for (Node* node = bucket(key); node != nullptr; node = node->chain) {
      if (node->key == key) return take(*node);
    }
    return nullptr;
  }

  void insert(std::unique_ptr<Node> owned) {
    Node* node = owned.release();
    node->chain = std::exchange(bucket(node->key), node);
    link_newest(*node);
    ++size_;
  }

  // Takes the least recently used nodes out until at most `bound` are left.
  [[nodiscard]] List shrink(std::size_t bound) {
    List list;
    while (size_ > bound) list.push(take(*oldest_).release());
    return list;
  }

  template <class Predicate>
  List take_if(Predicate&& predicate) {
    List list;
    for (Node* node = newest_; node != nullptr;) {
      Node* const next = node->older;
      if (predicate(std::as_const(*node))) list.push(take(*node).release());
      node = next;
    }
    return list;
  }

 private:
  [[nodiscard]] Node*& bucket(const Key& key) {
    return buckets_[static_cast<std::size_t>(hash_of(key) & hash_mask_) & (buckets_.size() - 1)];
  }

  std::unique_ptr<Node> take(Node& node) {
    Node** link = &bucket(node.key);
    while (*link != &node) link = &(*link)->chain;
    *link = std::exchange(node.chain, nullptr);
    unlink_order(node);
    --size_;
    return std::unique_ptr<Node>(&node);
  }

  void link_newest(Node& node) {
    node.newer = nullptr;
    node.older = std::exchange(newest_, &node);
    (node.older != nullptr ? node.older->newer : oldest_) = &node;
  }

  void unlink_order(Node& node) {
    (node.newer != nullptr ? node.newer->older : newest_) = node.older;
    (node.older != nullptr ? node.older->newer : oldest_) = node.newer;
    node.newer = node.older = nullptr;
  }

  const std::uint64_t hash_mask_;
  std::vector<Node*> buckets_;
  Node* newest_ = nullptr;
  Node* oldest_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace tern::gpu
