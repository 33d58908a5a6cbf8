#include "backend/cpu/resident.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>

#include "backend/cpu/cache_lines.h"
#include "base/checked.h"
#include "quant/codec.h"

namespace tern::cpu {
namespace {

std::uint64_t elements(const program::WeightDecl& d) {
  return static_cast<std::uint64_t>(d.rows) * static_cast<std::uint64_t>(d.inputs);
}

// What the parts of one weight are laid out with.
struct Work {
  const program::WeightDecl& decl;
  PackedTiling tiling;
  ThreadPool& pool;
  const CancelToken&
      cancel;  // looked at once per range of rows: what was asked to stop leaves the rest as it is
  std::byte* memory = nullptr;
  bool uses_code3 = false;
};

PackedSource source_of(const program::WeightDecl& d, const program::WeightPart& part) {
  const auto row_bytes =
      static_cast<std::int64_t>(quant::bytes_for(d.format, static_cast<std::uint64_t>(d.inputs)));
  return {d.format, d.inputs, part.bytes.data(), row_bytes};
}

// Calls f(part, first row of the part in the weight, begin, count) for ranges of rows of every
// part, in parallel.
template <class F>
void for_rows(const Work& w, std::int64_t chunk, F&& f) {
  std::int64_t first = 0;
  for (const program::WeightPart& part : w.decl.parts) {
    w.pool.parallel_for(part.rows, chunk, [&](std::int64_t begin, std::int64_t end, int) {
      if (!w.cancel.requested()) f(part, first, begin, end - begin);
    });
    first += part.rows;
  }
}

// The first fault of the first damaged part, whichever thread saw it first (F19).
class FirstBadScale {
 public:
  void found(const program::WeightPart& part, std::int64_t block, bool is_nan) {
    const std::scoped_lock lock(mutex_);
    if (part_ != nullptr && (part_ != &part || block_ <= block)) return;
    part_ = &part;
    block_ = block;
    is_nan_ = is_nan;
  }
  [[nodiscard]] Result<void> result() const {
    if (part_ == nullptr) return {};
    return fail(ErrorCode::kInvalidFile, "tensor '{}' block {} has scale {}", part_->name, block_,
                is_nan_ ? "nan" : "inf");
  }

 private:
  std::mutex mutex_;
  const program::WeightPart* part_ = nullptr;
  std::int64_t block_ = 0;
  bool is_nan_ = false;
};

constexpr std::int64_t kRepackRows = 128;  // a multiple of the block of 32 rows

// Code 3 decides the layout of 2-bit formats, so their codes are looked at first.
bool find_code3(const Work& w) {
  if (!may_use_code3(w.decl)) return false;
  std::atomic<bool> found = false;
  for_rows(
      w, kRepackRows,
      [&](const program::WeightPart& part, std::int64_t, std::int64_t begin, std::int64_t count) {
        if (scan_packed(source_of(w.decl, part), begin, count).has_code3)
          found.store(true, std::memory_order_relaxed);
      });
  return found.load();
}

Result<Resident> lay_out_packed(const Work& w) {
  ResidentPacked r{packed_layout(w.decl.format, w.decl.rows, w.decl.inputs, w.uses_code3, w.tiling),
                   {}};
  r.view = r.layout.view(w.memory);
  FirstBadScale bad;
  for_rows(w, kRepackRows,
           [&](const program::WeightPart& part, std::int64_t first, std::int64_t begin,
               std::int64_t count) {
             const PackedScan found =
                 repack(r.layout, source_of(w.decl, part), begin, count, w.memory, first + begin);
             if (found.bad_block >= 0) bad.found(part, found.bad_block, found.bad_is_nan);
           });
  TERN_TRY(bad.result());
  return Resident(r);
}

Result<Resident> lay_out_block(const Work& w) {
  const std::int64_t block_bytes = quant::info(w.decl.format).block_bytes;
  FirstBadScale bad;
  const auto row_bytes = static_cast<std::int64_t>(
      quant::bytes_for(w.decl.format, static_cast<std::uint64_t>(w.decl.inputs)));
  for_rows(w, kRepackRows,
           [&](const program::WeightPart& part, std::int64_t first, std::int64_t begin,
               std::int64_t count) {
             const std::byte* rows = part.bytes.data() + begin * row_bytes;
             const auto bad_block = quant::first_bad_scale(
                 w.decl.format, {rows, static_cast<std::size_t>(count * row_bytes)});
             if (bad_block) {
               const std::int64_t blocks_per_row = row_bytes / block_bytes;
               bad.found(part, begin * blocks_per_row + *bad_block,
                         quant::scale_is_nan(w.decl.format, rows + *bad_block * block_bytes));
             }
             block_pack_rows(w.decl.format, w.decl.rows, w.decl.inputs, rows, first + begin, count,
                             w.memory);
           });
  TERN_TRY(bad.result());
  return Resident(BlockMatrix{w.decl.format, w.decl.rows, w.decl.inputs, w.memory});
}

Resident lay_out_dense(const Work& w) {
  const auto row_bytes = static_cast<std::int64_t>(
      quant::bytes_for(w.decl.format, static_cast<std::uint64_t>(w.decl.inputs)));
  for_rows(w, 64,
           [&](const program::WeightPart& part, std::int64_t first, std::int64_t begin,
               std::int64_t count) {
             std::memcpy(w.memory + (first + begin) * row_bytes,
                         part.bytes.data() + begin * row_bytes,
                         static_cast<std::size_t>(count * row_bytes));
           });
  return ResidentDense{w.decl.format, w.decl.rows, w.decl.inputs, w.memory};
}

Resident lay_out_vector(const Work& w) {
  auto* out = reinterpret_cast<float*>(w.memory);
  std::int64_t at = 0;
  for (const program::WeightPart& part : w.decl.parts) {
    const auto count = static_cast<std::int64_t>(
        part.bytes.size() / static_cast<std::size_t>(quant::info(w.decl.format).block_bytes));
    quant::decode_row(w.decl.format, part.bytes.data(), count, out + at);
    at += count;
  }
  return ResidentVector{w.decl.inputs, out};
}

Result<Resident> lay_out(const Work& w) {
  if (w.decl.uses == program::kUseVector) return lay_out_vector(w);
  switch (quant::info(w.decl.format).kind) {
    case quant::FormatClass::kPacked:
      return lay_out_packed(w);
    case quant::FormatClass::kBlock:
      return lay_out_block(w);
    case quant::FormatClass::kDense:
      break;
  }
  return lay_out_dense(w);
}

}  // namespace

bool may_use_code3(const program::WeightDecl& d) {
  return d.uses != program::kUseVector &&
         (d.format == quant::Format::kT2G64 || d.format == quant::Format::kT2G128 ||
          d.format == quant::Format::kT2G256);
}

LayoutEstimate estimate_layout(const program::WeightDecl& d, PackedTiling tiling, bool uses_code3) {
  const quant::FormatInfo& format = quant::info(d.format);
  if (d.uses == program::kUseVector) return {whole_lines(elements(d) * 4), "vector f32"};
  switch (format.kind) {
    case quant::FormatClass::kPacked: {
      const PackedLayout layout = packed_layout(d.format, d.rows, d.inputs, uses_code3, tiling);
      const std::string_view kind = layout.kind == PackedKind::kBinary    ? "binary"
                                    : layout.kind == PackedKind::kTernary ? "ternary"
                                                                          : "2-bit";
      return {whole_lines(layout.bytes()), fmt::format("rows32 {} g{}", kind, layout.group)};
    }
    case quant::FormatClass::kBlock:
      return {whole_lines(block_matrix_bytes(d.format, d.rows, d.inputs)),
              fmt::format("rows8 {}", format.tag)};
    case quant::FormatClass::kDense:
      break;
  }
  return {whole_lines(quant::bytes_for(d.format, elements(d))), fmt::format("rows {}", format.tag)};
}

Result<std::shared_ptr<const CpuWeights>> CpuWeights::make(const program::WeightSet& set,
                                                           PackedTiling tiling, ThreadPool& pool,
                                                           const ProgressFn& progress,
                                                           const CancelToken& cancel) {
  const auto release = [&set](const program::WeightDecl& d) {
    if (set.release)
      for (const program::WeightPart& part : d.parts) set.release(part.bytes);
  };
  // One count for both passes: the formats that may use code 3 are read twice. Their pages are kept
  // in between.
  std::uint64_t bytes_to_read = 0;
  for (const program::WeightDecl& d : set.weights)
    bytes_to_read += d.file_bytes() * (may_use_code3(d) ? 2 : 1);
  ProgressMeter meter(progress, "repacking weights", "bytes", bytes_to_read);
  std::uint64_t total = 0;
  std::vector<std::uint64_t> offsets;
  std::vector<bool> code3;
  const auto cancelled = [] { return fail(ErrorCode::kCancelled, "loading was cancelled"); };
  for (const program::WeightDecl& d : set.weights) {
    if (cancel.requested()) return cancelled();
    offsets.push_back(total);
    code3.push_back(find_code3({d, tiling, pool, cancel}));
    total += estimate_layout(d, tiling, code3.back()).bytes;
    if (may_use_code3(d)) meter.add(d.file_bytes());
  }
  auto weights = std::make_shared<CpuWeights>();
  Result<AlignedBuffer> memory =
      AlignedBuffer::allocate(total, {.huge_pages = true, .what = "the weights"});
  TERN_TRY(memory);
  weights->memory_ = std::move(*memory);
  weights->tiling_ = tiling;
  for (std::size_t i = 0; i < set.weights.size(); ++i) {
    const program::WeightDecl& d = set.weights[i];
    Result<Resident> resident =
        lay_out({d, tiling, pool, cancel, weights->memory_.data() + offsets[i], code3[i]});
    if (cancel.requested()) return cancelled();
    TERN_TRY(resident);
    weights->weights_.push_back(*resident);
    release(d);
    meter.add(d.file_bytes());
  }
  meter.finish();
  return std::shared_ptr<const CpuWeights>(std::move(weights));
}

}  // namespace tern::cpu
