// Byte pair encoding of one piece of text: the merge of lowest rank first, of equal ones the
// leftmost.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "tern/cancel.h"

namespace tern::text {

// Two neighbouring tokens become a third.
struct Merge {
  std::int32_t left = 0;
  std::int32_t right = 0;
  std::int32_t result = 0;
  std::uint32_t rank = 0;  // lower ones come first
};

// Finds the merge of a pair. Merges are sorted by left token, so that a lookup is a search among
// the few that begin with it; no hash, so no file can make it slow.
class MergeTable {
 public:
  struct Entry {
    std::int32_t right = 0;
    std::int32_t result = 0;
    std::uint32_t rank = 0;
  };

  MergeTable() = default;
  // Tokens are in [0, vocabulary). Where a pair is given twice, the higher rank counts, as with
  // Hugging Face.
  MergeTable(std::size_t vocabulary, const std::vector<Merge>& merges);

  // nullptr: the pair does not merge.
  [[nodiscard]] const Entry* find(std::int32_t left, std::int32_t right) const;
  [[nodiscard]] std::size_t size() const { return entries_.size(); }

 private:
  std::vector<std::uint32_t> first_;  // [vocabulary + 1]: entries of a left token
  std::vector<Entry> entries_;        // of one left token: sorted by right
};

// The encoder's working memory, so that a text of many pieces allocates once. One thread at a time.
class BpeScratch {
 public:
  BpeScratch() = default;
  // Encoding throws Error(kCancelled) soon after the token is tripped.
  explicit BpeScratch(CancelToken cancel) : cancel_(std::move(cancel)) {}

 private:
  friend class Bpe;
  static constexpr std::uint32_t kNone = 0xFFFFFFFF;
  struct Symbol {
    std::int32_t token;  // -1: merged into the one before
    std::uint32_t previous, next;
  };
  struct Candidate {
    std::uint64_t order;  // rank << 32 | position of the left symbol
    std::int32_t left, right;
  };
  std::vector<Symbol> symbols_;
  std::vector<Candidate> heap_;
  CancelToken cancel_;
};

class Bpe {
 public:
  // The most bytes of one piece; positions are 32 bits wide.
  static constexpr std::size_t kMaxPieceBytes = std::size_t{1} << 30;

  Bpe() = default;
  // byte_tokens: the token of each single byte, or -1. A byte without one is left out before
  // anything is merged, as Hugging Face does it.
  Bpe(const std::array<std::int32_t, 256>& byte_tokens, MergeTable merges)
      : byte_tokens_(byte_tokens), merges_(std::move(merges)) {}

  // Appends the tokens of a piece of at most kMaxPieceBytes. A heap of candidates: n log n for n
  // bytes.
  void encode(std::string_view piece, BpeScratch& scratch, std::vector<std::int32_t>& ids) const;

  [[nodiscard]] std::int32_t byte_token(std::uint8_t byte) const { return byte_tokens_[byte]; }
  [[nodiscard]] const MergeTable& merges() const { return merges_; }

 private:
  void push_candidate(BpeScratch& scratch, std::uint32_t left, bool keep_heap) const;
  void merge_all(BpeScratch& scratch) const;

  std::array<std::int32_t, 256> byte_tokens_{};
  MergeTable merges_;
};

}  // namespace tern::text
