#include "backend/cuda/plan/resident.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>

#include "backend/cuda/kernels/kernels.h"
#include "base/checked.h"
#include "base/thread_pool.h"
#include "quant/codec.h"

namespace tern::cuda {
namespace {

constexpr std::uint64_t kAlignment = 256;
constexpr std::size_t kSlots = 4;

std::uint64_t aligned(std::uint64_t bytes) { return (bytes + kAlignment - 1) & ~(kAlignment - 1); }

Error cancelled() { return fail(ErrorCode::kCancelled, "loading was cancelled"); }

// Pieces of pinned memory in turn: one is filled while the others are on their way.
class UploadRing {
 public:
  static Result<UploadRing> make(const std::shared_ptr<Context>& context, std::uint64_t bytes) {
    TERN_ASSIGN(Stream stream, Stream::make(context));
    TERN_ASSIGN(PinnedMemory memory, context->allocate_pinned(static_cast<std::size_t>(bytes),
                                                              "the upload of the weights"));
    std::vector<Event> events;
    for (std::size_t i = 0; i < kSlots; ++i) {
      TERN_ASSIGN(Event event, Event::make(context, false));
      events.push_back(std::move(event));
    }
    return UploadRing(std::move(stream), std::move(memory), std::move(events));
  }

  [[nodiscard]] std::uint64_t piece_bytes() const { return memory_.bytes() / kSlots; }
  // The next piece, once what was in it has left.
  Result<std::byte*> next() {
    if (used_ >= kSlots) TERN_TRY(events_[used_ % kSlots].wait());
    return memory_.data() + used_ % kSlots * piece_bytes();
  }
  // Sends the piece that next() gave.
  Result<void> send(Address to, std::uint64_t bytes) {
    const std::size_t slot = used_++ % kSlots;
    TERN_TRY(stream_.copy_to_device(to, memory_.data() + slot * piece_bytes(),
                                    static_cast<std::size_t>(bytes)));
    return stream_.record(events_[slot]);
  }
  Result<void> finish() { return stream_.synchronize(); }

 private:
  UploadRing(Stream stream, PinnedMemory memory, std::vector<Event> events)
      : memory_(std::move(memory)), stream_(std::move(stream)), events_(std::move(events)) {}
  PinnedMemory memory_;  // outlives the stream, whose end waits for the copies
  Stream stream_;
  std::vector<Event> events_;
  std::size_t used_ = 0;
};

struct Upload {
  UploadRing& ring;
  ThreadPool& pool;
  const CancelToken& cancel;
};

// Consecutive rows of a weight that may come from several parts, made contiguous if they do.
class RowSource {
 public:
  explicit RowSource(const program::WeightDecl& decl)
      : decl_(decl),
        row_bytes_(quant::bytes_for(decl.format, static_cast<std::uint64_t>(decl.inputs))) {}

  const std::byte* rows(std::int64_t begin, std::int64_t count) {
    std::int64_t first = 0;
    gathered_.clear();
    for (const program::WeightPart& part : decl_.parts) {
      const std::int64_t from = std::max(begin, first);
      const std::int64_t to = std::min(begin + count, first + part.rows);
      if (from < to) {
        const std::byte* at = part.bytes.data() + bytes_of(from - first);
        if (to - from == count) return at;
        gathered_.insert(gathered_.end(), at, at + bytes_of(to - from));
      }
      first += part.rows;
    }
    return gathered_.data();
  }
  // Name of the part that a row comes from, and its row there.
  [[nodiscard]] std::pair<std::string_view, std::int64_t> origin(std::int64_t row) const {
    for (const program::WeightPart& part : decl_.parts) {
      if (row < part.rows) return {part.name, row};
      row -= part.rows;
    }
    return {decl_.name, row};
  }

 private:
  [[nodiscard]] std::size_t bytes_of(std::int64_t rows) const {
    return static_cast<std::size_t>(static_cast<std::uint64_t>(rows) * row_bytes_);
  }
  const program::WeightDecl& decl_;
  const std::uint64_t row_bytes_;
  std::vector<std::byte> gathered_;
};

Result<void> upload_tiles(Upload& u, const program::WeightDecl& d, Address to) {
  RowSource source(d);
  const std::uint64_t tile_bytes = tiles16_bytes(kTernTileRows, d.inputs);
  const auto tiles = static_cast<std::int64_t>(ceil_div(d.rows, kTernTileRows));
  const auto per_piece = static_cast<std::int64_t>(u.ring.piece_bytes() / tile_bytes);
  if (per_piece == 0)
    return fail(ErrorCode::kUnsupported, "[cuda] weight {}: a row of {} inputs is too long", d.name,
                d.inputs);
  const std::int64_t groups = d.inputs / kTernGroup;
  for (std::int64_t tile = 0; tile < tiles; tile += per_piece) {
    if (u.cancel.requested()) return cancelled();
    const std::int64_t count = std::min(per_piece, tiles - tile);
    const std::int64_t row = tile * kTernTileRows;
    const std::int64_t rows = std::min(count * kTernTileRows, d.rows - row);
    const std::byte* blocks = source.rows(row, rows);
    TERN_ASSIGN(std::byte* const piece, u.ring.next());
    std::atomic<std::int64_t> bad{-1};
    u.pool.parallel_for(count, 8, [&](std::int64_t begin, std::int64_t end, int) {
      const std::int64_t first = begin * kTernTileRows;
      const std::int64_t part = std::min(end * kTernTileRows, rows) - first;
      const std::int64_t found =
          repack_tiles16(blocks + first * groups * 18, d.inputs, part,
                         piece + static_cast<std::uint64_t>(begin) * tile_bytes);
      if (found >= 0) bad = row * groups + first * groups + found;
    });
    if (bad >= 0) {
      const auto [name, at] = source.origin(bad / groups);
      return fail(ErrorCode::kInvalidFile, "tensor '{}' block {} has a scale that is not finite",
                  name, at * groups + bad % groups);
    }
    TERN_TRY(u.ring.send(to + static_cast<std::uint64_t>(tile) * tile_bytes,
                         static_cast<std::uint64_t>(count) * tile_bytes));
  }
  return {};
}

Result<void> upload_vector(Upload& u, const program::WeightDecl& d, Address to) {
  const auto block = static_cast<std::size_t>(quant::info(d.format).block_bytes);
  for (const program::WeightPart& part : d.parts) {
    const std::size_t values = part.bytes.size() / block;
    const auto per_piece = static_cast<std::size_t>(u.ring.piece_bytes() / 4);
    for (std::size_t begin = 0; begin < values; begin += per_piece) {
      if (u.cancel.requested()) return cancelled();
      const std::size_t count = std::min(per_piece, values - begin);
      TERN_ASSIGN(std::byte* const piece, u.ring.next());
      quant::decode_row(d.format, part.bytes.data() + begin * block,
                        static_cast<std::int64_t>(count), reinterpret_cast<float*>(piece));
      TERN_TRY(u.ring.send(to, count * 4));
      to += count * 4;
    }
  }
  return {};
}

int upload_threads() {
  return static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1U, 8U));
}

}  // namespace

LayoutEstimate estimate_layout(const program::WeightDecl& d) {
  const quant::FormatInfo& format = quant::info(d.format);
  const auto weights = static_cast<std::uint64_t>(d.rows) * static_cast<std::uint64_t>(d.inputs);
  if (d.uses == program::kUseVector && format.kind == quant::FormatClass::kDense)
    return {aligned(weights * 4), "vector f32"};
  if (d.format == quant::Format::kQ1G128 && d.inputs % kTernGroup == 0)
    return {aligned(tiles16_bytes(d.rows, d.inputs)), "tiles16 q1_g128"};
  return {};
}

Result<std::shared_ptr<const CudaWeights>> CudaWeights::make(
    const program::WeightSet& set, const std::shared_ptr<Context>& context,
    const ProgressFn& progress, const CancelToken& cancel, std::uint64_t ring_bytes) {
  auto weights = std::make_shared<CudaWeights>();
  std::uint64_t file_bytes = 0;
  for (const program::WeightDecl& d : set.weights) {
    const LayoutEstimate layout = estimate_layout(d);
    if (layout.name.empty())
      return fail(ErrorCode::kUnsupported,
                  "[cuda] weight {} is [{} x {} {}], and no CUDA kernel reads that; run it with "
                  "--device cpu",
                  d.name, d.rows, d.inputs, quant::info(d.format).tag);
    weights->offsets_.push_back(weights->bytes_);
    weights->bytes_ += layout.bytes;
    file_bytes += d.file_bytes();
  }
  if (cancel.requested()) return cancelled();
  if (weights->bytes_ == 0) return std::shared_ptr<const CudaWeights>(std::move(weights));
  TERN_ASSIGN(weights->memory_, context->allocate(weights->bytes_, "the weights"));
  TERN_ASSIGN(UploadRing ring, UploadRing::make(context, ring_bytes));
  ThreadPool pool(upload_threads());
  Upload upload{ring, pool, cancel};
  ProgressMeter meter(progress, "uploading weights", "bytes", file_bytes);
  for (std::size_t i = 0; i < set.weights.size(); ++i) {
    const program::WeightDecl& d = set.weights[i];
    const Address to = weights->address() + weights->offsets_[i];
    TERN_TRY(d.uses == program::kUseVector ? upload_vector(upload, d, to)
                                           : upload_tiles(upload, d, to));
    if (set.release)
      for (const program::WeightPart& part : d.parts) set.release(part.bytes);
    meter.add(d.file_bytes());
  }
  TERN_TRY(ring.finish());
  meter.finish();
  return std::shared_ptr<const CudaWeights>(std::move(weights));
}

Result<std::shared_ptr<CudaStates>> CudaStates::make(const std::vector<program::StateDecl>& decls,
                                                     const backend::PoolSizes& sizes,
                                                     const std::shared_ptr<Context>& context) {
  auto states = std::make_shared<CudaStates>();
  states->decls_ = decls;
  states->pages_ = sizes.pages;
  const auto positions = static_cast<std::uint64_t>(sizes.pages) * program::kPagePositions;
  for (const program::StateDecl& decl : decls)
    states->bytes_ += aligned(decl.bytes_per_position() * positions);
  if (states->bytes_ > 0) {
    TERN_ASSIGN(states->memory_, context->allocate(states->bytes_, "the key and value cache"));
  }
  return states;
}

}  // namespace tern::cuda
