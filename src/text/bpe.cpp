// Byte pair encoding with a heap over a linked list of symbols.
#include "text/bpe.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "text/stop_request.h"

namespace tern::text {
namespace {

constexpr std::size_t kStepsBetweenQuestions = 4096;
// For a heap whose top is the candidate that comes first.
constexpr auto kLater = [](const auto& a, const auto& b) { return a.order > b.order; };

}  // namespace

MergeTable::MergeTable(std::size_t vocabulary, const std::vector<Merge>& merges)
    : first_(vocabulary + 1, 0) {
  for (const Merge& m : merges) ++first_[static_cast<std::size_t>(m.left) + 1];
  for (std::size_t i = 1; i < first_.size(); ++i) first_[i] += first_[i - 1];
  entries_.resize(merges.size());
  std::vector<std::uint32_t> next(first_.begin(), first_.end() - 1);
  for (const Merge& m : merges) {
    entries_[next[static_cast<std::size_t>(m.left)]++] = {m.right, m.result, m.rank};
  }
  std::uint32_t kept = 0;
  for (std::size_t left = 0; left < vocabulary; ++left) {
    const auto begin = entries_.begin() + std::exchange(first_[left], kept);
    const auto end = entries_.begin() + first_[left + 1];
    std::sort(begin, end, [](const Entry& a, const Entry& b) {
      return std::tie(a.right, a.rank) < std::tie(b.right, b.rank);
    });
    for (auto at = begin; at != end; ++at) {
      const bool comes_again = at + 1 != end && (at + 1)->right == at->right;
      if (!comes_again) entries_[kept++] = *at;
    }
  }
  first_.back() = kept;
  entries_.resize(kept);
}

const MergeTable::Entry* MergeTable::find(std::int32_t left, std::int32_t right) const {
  const auto l = static_cast<std::size_t>(left);
  const Entry* begin = entries_.data() + first_[l];
  const Entry* end = entries_.data() + first_[l + 1];
  const Entry* at = std::lower_bound(
      begin, end, right, [](const Entry& entry, std::int32_t r) { return entry.right < r; });
  return at != end && at->right == right ? at : nullptr;
}

void Bpe::push_candidate(BpeScratch& scratch, std::uint32_t left, bool keep_heap) const {
  const BpeScratch::Symbol& l = scratch.symbols_[left];
  if (l.next == BpeScratch::kNone) return;
  const std::int32_t right = scratch.symbols_[l.next].token;
  const MergeTable::Entry* merge = merges_.find(l.token, right);
  if (merge == nullptr) return;
  scratch.heap_.push_back({std::uint64_t{merge->rank} << 32 | left, l.token, right});
  if (keep_heap) {
    std::push_heap(scratch.heap_.begin(), scratch.heap_.end(), kLater);
  }
}

void Bpe::merge_all(BpeScratch& scratch) const {
  auto& symbols = scratch.symbols_;
  auto& heap = scratch.heap_;
  heap.clear();
  std::size_t steps = 0;
  const auto ask = [&] {
    if (steps++ % kStepsBetweenQuestions == 0) stop_if_requested(scratch.cancel_);
  };
  for (std::uint32_t i = 0; i < symbols.size(); ++i) {
    ask();
    push_candidate(scratch, i, false);
  }
  std::make_heap(heap.begin(), heap.end(), [&](const auto& a, const auto& b) {
    ask();
    return kLater(a, b);
  });
  while (!heap.empty()) {
    ask();
    std::pop_heap(heap.begin(), heap.end(), kLater);
    const BpeScratch::Candidate top = heap.back();
    heap.pop_back();
    const auto position = static_cast<std::uint32_t>(top.order);
    BpeScratch::Symbol& left = symbols[position];
    // An older candidate of a pair that has changed since: a live left symbol with another
    // neighbour, or one that was merged away (-1).
    if (left.token != top.left || left.next == BpeScratch::kNone) continue;
    BpeScratch::Symbol& right = symbols[left.next];
    if (right.token != top.right) continue;
    left.token = merges_.find(top.left, top.right)->result;
    right.token = -1;
    left.next = right.next;
    if (left.next != BpeScratch::kNone) symbols[left.next].previous = position;
    push_candidate(scratch, position, true);
    if (left.previous != BpeScratch::kNone) push_candidate(scratch, left.previous, true);
  }
}

void Bpe::encode(std::string_view piece, BpeScratch& scratch,
                 std::vector<std::int32_t>& ids) const {
  TERN_ASSERT(piece.size() <= kMaxPieceBytes);
  auto& symbols = scratch.symbols_;
  symbols.clear();
  for (std::size_t i = 0; i < piece.size(); ++i) {
    if (i % kStepsBetweenQuestions == 0) stop_if_requested(scratch.cancel_);
    const char c = piece[i];
    const std::int32_t token = byte_tokens_[static_cast<unsigned char>(c)];
    if (token < 0) continue;
    const auto at = static_cast<std::uint32_t>(symbols.size());
    symbols.push_back({token, at == 0 ? BpeScratch::kNone : at - 1, at + 1});
  }
  if (symbols.empty()) return;
  symbols.back().next = BpeScratch::kNone;
  merge_all(scratch);
  for (std::uint32_t at = 0; at != BpeScratch::kNone; at = symbols[at].next) {
    ids.push_back(symbols[at].token);
  }
}

}  // namespace tern::text
