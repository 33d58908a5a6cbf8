#include "backend/metal/device/weights.h"

#include <algorithm>
#include <atomic>
#include <thread>

#include "backend/metal/plan/metal_plan.h"
#include "base/checked.h"
#include "base/thread_pool.h"
#include "quant/codec.h"

namespace tern::metal {
namespace {

constexpr std::int64_t kBlockBytes = 18;
// Between two looks at the cancel token: some milliseconds of copying.
constexpr std::int64_t kPieceBlocks = std::int64_t{1} << 20;

Error cancelled() { return fail(ErrorCode::kCancelled, "loading was cancelled"); }

int upload_threads() {
  return static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1U, 8U));
}

// Fills one weight at a time, straight from the mapped file.
class Filler {
 public:
  Filler(const CancelToken& cancel, ProgressMeter& meter)
      : pool_(upload_threads()), cancel_(cancel), meter_(meter) {}

  Result<void> fill_packed(const program::WeightDecl& d, std::byte* to) {
    const std::int64_t groups = d.inputs / kTernGroup;
    std::int64_t first = 0;
    for (const program::WeightPart& part : d.parts) {
      const std::int64_t blocks = part.rows * groups;
      for (std::int64_t begin = 0; begin < blocks; begin += kPieceBlocks) {
        if (cancel_.requested()) return cancelled();
        const std::int64_t count = std::min(kPieceBlocks, blocks - begin);
        const std::int64_t bad = repack(part.bytes.data() + begin * kBlockBytes, first + begin,
                                        count, d.rows * groups, to);
        if (bad >= 0)
          return fail(ErrorCode::kInvalidFile,
                      "tensor '{}' block {} has a scale that is not finite", part.name,
                      begin + bad);
        meter_.add(static_cast<std::uint64_t>(count * kBlockBytes));
      }
      first += blocks;
    }
    return {};
  }

  Result<void> fill_vector(const program::WeightDecl& d, std::byte* to) {
    const auto block = static_cast<std::size_t>(quant::info(d.format).block_bytes);
    auto* values = reinterpret_cast<float*>(to);
    for (const program::WeightPart& part : d.parts) {
      if (cancel_.requested()) return cancelled();
      const std::size_t count = part.bytes.size() / block;
      quant::decode_row(d.format, part.bytes.data(), static_cast<std::int64_t>(count), values);
      values += count;
      meter_.add(part.bytes.size());
    }
    return {};
  }

 private:
  // The first bad block of these, or -1.
  std::int64_t repack(const std::byte* blocks, std::int64_t first, std::int64_t count,
                      std::int64_t total, std::byte* to) {
    std::atomic<std::int64_t> bad{count};
    pool_.parallel_for(count, 4096, [&](std::int64_t begin, std::int64_t end, int) {
      const std::int64_t found =
          repack_split(blocks + begin * kBlockBytes, first + begin, end - begin, total, to);
      if (found < 0) return;
      std::int64_t lowest = bad;
      while (begin + found < lowest && !bad.compare_exchange_weak(lowest, begin + found)) {
      }
    });
    return bad < count ? bad.load() : -1;
  }

  ThreadPool pool_;
  const CancelToken& cancel_;
  ProgressMeter& meter_;
};

}  // namespace

// Puts each weight into the last buffer that has room for it; a buffer is as large as what is in
// it.
Result<void> MetalWeights::allocate(const program::WeightSet& set, const Context& context) {
  const std::uint64_t most = context.describe().max_buffer_bytes;
  std::vector<std::uint64_t> sizes;
  for (const program::WeightDecl& d : set.weights) {
    const LayoutEstimate layout = estimate_layout(d);
    if (layout.name.empty())
      return fail(ErrorCode::kUnsupported,
                  "[metal] weight {} is [{} x {} {}], and no Metal kernel reads that; run it with "
                  "--device cpu",
                  d.name, d.rows, d.inputs, quant::info(d.format).tag);
    if (layout.bytes > most)
      return fail(ErrorCode::kUnsupported,
                  "[metal] weight {} takes {} bytes, one buffer of this device holds {}", d.name,
                  layout.bytes, most);
    if (sizes.empty() || layout.bytes > most - sizes.back()) sizes.push_back(0);
    places_.push_back({static_cast<std::uint32_t>(sizes.size() - 1), sizes.back()});
    sizes.back() += layout.bytes;
    bytes_ += layout.bytes;
  }
  for (const std::uint64_t size : sizes) {
    if (size == 0) continue;
    TERN_ASSIGN(MemoryRef buffer, context.allocate(size, "the weights"));
    buffers_.push_back(std::move(buffer));
  }
  device_ = context.id_number();
  return {};
}

Result<std::shared_ptr<const MetalWeights>> MetalWeights::make(const program::WeightSet& set,
                                                               const Context& context,
                                                               const ProgressFn& progress,
                                                               const CancelToken& cancel) {
  if (cancel.requested()) return cancelled();
  auto weights = std::make_shared<MetalWeights>();
  TERN_TRY(weights->allocate(set, context));
  std::uint64_t file_bytes = 0;
  for (const program::WeightDecl& d : set.weights) file_bytes += d.file_bytes();
  ProgressMeter meter(progress, "uploading weights", "bytes", file_bytes);
  Filler filler(cancel, meter);
  for (std::size_t i = 0; i < set.weights.size(); ++i) {
    const program::WeightDecl& d = set.weights[i];
    if (d.rows == 0 || d.inputs == 0) continue;
    const WeightPlace place = weights->places_[i];
    std::byte* const to = weights->buffers_[place.buffer]->contents() + place.offset;
    TERN_TRY(d.uses == program::kUseVector ? filler.fill_vector(d, to) : filler.fill_packed(d, to));
    if (set.release)
      for (const program::WeightPart& part : d.parts) set.release(part.bytes);
  }
  meter.finish();
  return std::shared_ptr<const MetalWeights>(std::move(weights));
}

Result<std::shared_ptr<MetalStates>> MetalStates::make(const std::vector<program::StateDecl>& decls,
                                                       const backend::PoolSizes& sizes,
                                                       const Context& context) {
  auto states = std::make_shared<MetalStates>();
  states->decls_ = decls;
  states->pages_ = sizes.pages;
  const auto positions = static_cast<std::uint64_t>(sizes.pages) * program::kPagePositions;
  for (const program::StateDecl& decl : decls) {
    const auto bytes = checked_mul(decl.bytes_per_position(), positions);
    if (!bytes) return fail(ErrorCode::kOutOfMemory, "[metal] state {} has no size", decl.name);
    if (*bytes == 0) continue;
    TERN_ASSIGN(MemoryRef memory, context.allocate(*bytes, "the key and value cache"));
    states->memory_.push_back(std::move(memory));
    states->bytes_ += *bytes;
  }
  return states;
}

}  // namespace tern::metal
