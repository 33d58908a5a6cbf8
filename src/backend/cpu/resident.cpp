#include "backend/cpu/resident.h"

#include <algorithm>
#include <cstring>
#include <mutex>

#include "base/checked.h"
#include "quant/codec.h"

namespace tern::cpu {
namespace {

constexpr std::uint64_t kAlignment = 64;

std::uint64_t aligned(std::uint64_t bytes) { return (bytes + kAlignment - 1) & ~(kAlignment - 1); }

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

constexpr std::int64_t kRepackRows = 128;  // a multiple of the block of 32 rows

// Code 3 decides the layout of 2-bit formats, so their codes are looked at first.
bool find_code3(const Work& w) {
  if (w.decl.format != quant::Format::kT2G64 && w.decl.format != quant::Format::kT2G128 &&
      w.decl.format != quant::Format::kT2G256)
    return false;
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
  // The first fault of the first damaged part, whichever thread saw it first.
  std::mutex mutex;
  const program::WeightPart* damaged = nullptr;
  PackedScan scan;
  for_rows(w, kRepackRows,
           [&](const program::WeightPart& part, std::int64_t first, std::int64_t begin,
               std::int64_t count) {
             const PackedScan found =
                 repack(r.layout, source_of(w.decl, part), begin, count, w.memory, first + begin);
             if (found.bad_block < 0) return;
             const std::scoped_lock lock(mutex);
             if (damaged == nullptr) damaged = &part;
             if (damaged == &part) scan = scan.merged(found);
           });
  if (damaged != nullptr)
    return fail(ErrorCode::kInvalidFile, "tensor '{}' block {} has scale {}", damaged->name,
                scan.bad_block, scan.bad_is_nan ? "nan" : "inf");
  return Resident(r);
}

Resident lay_out_block(const Work& w) {
  const auto row_bytes = static_cast<std::int64_t>(
      quant::bytes_for(w.decl.format, static_cast<std::uint64_t>(w.decl.inputs)));
  for_rows(w, kRepackRows,
           [&](const program::WeightPart& part, std::int64_t first, std::int64_t begin,
               std::int64_t count) {
             block_pack_rows(w.decl.format, w.decl.rows, w.decl.inputs,
                             part.bytes.data() + begin * row_bytes, first + begin, count, w.memory);
           });
  return BlockMatrix{w.decl.format, w.decl.rows, w.decl.inputs, w.memory};
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

LayoutEstimate estimate_layout(const program::WeightDecl& d, PackedTiling tiling, bool uses_code3) {
  const quant::FormatInfo& format = quant::info(d.format);
  if (d.uses == program::kUseVector) return {aligned(elements(d) * 4), "vector f32"};
  switch (format.kind) {
    case quant::FormatClass::kPacked: {
      const PackedLayout layout = packed_layout(d.format, d.rows, d.inputs, uses_code3, tiling);
      const std::string_view kind = layout.kind == PackedKind::kBinary    ? "binary"
                                    : layout.kind == PackedKind::kTernary ? "ternary"
                                                                          : "2-bit";
      return {aligned(layout.bytes()), fmt::format("rows32 {} g{}", kind, layout.group)};
    }
    case quant::FormatClass::kBlock:
      return {aligned(block_matrix_bytes(d.format, d.rows, d.inputs)),
              fmt::format("rows8 {}", format.tag)};
    case quant::FormatClass::kDense:
      break;
  }
  return {aligned(quant::bytes_for(d.format, elements(d))), fmt::format("rows {}", format.tag)};
}

Result<std::shared_ptr<const CpuWeights>> CpuWeights::make(const program::WeightSet& set,
                                                           PackedTiling tiling, ThreadPool& pool,
                                                           const ProgressFn& progress,
                                                           const CancelToken& cancel) {
  const auto release = [&set](const program::WeightDecl& d) {
    if (set.release)
      for (const program::WeightPart& part : d.parts) set.release(part.bytes);
  };
  std::uint64_t total = 0;
  std::uint64_t file_bytes = 0;
  std::vector<std::uint64_t> offsets;
  std::vector<bool> code3;
  const auto cancelled = [] { return fail(ErrorCode::kCancelled, "loading was cancelled"); };
  for (const program::WeightDecl& d : set.weights) {
    if (cancel.requested()) return cancelled();
    offsets.push_back(total);
    code3.push_back(find_code3({d, tiling, pool, cancel}));
    release(d);
    total += estimate_layout(d, tiling, code3.back()).bytes;
    file_bytes += d.file_bytes();
  }
  auto weights = std::make_shared<CpuWeights>();
  Result<AlignedBuffer> memory =
      AlignedBuffer::allocate(total, {.huge_pages = true, .what = "the weights"});
  TERN_TRY(memory);
  weights->memory_ = std::move(*memory);
  ProgressMeter meter(progress, "repacking weights", "bytes", file_bytes);
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
