// Sizes and offsets of packed matrices and of activation records.
#include "backend/cpu/kernels/packed/packed.h"
#include "base/checked.h"
#include "base/error.h"

namespace tern::cpu {
namespace {

constexpr std::int64_t kLine = 64;              // bytes; everything starts at a multiple
constexpr std::int64_t kActivationGroup = 128;  // inputs that share one scale

bool may_hold_code3(quant::Format format) {
  return format == quant::Format::kT2G64 || format == quant::Format::kT2G128 ||
         format == quant::Format::kT2G256;
}

// Bytes of the codes of one group of 32 rows.
std::int64_t code_bytes(PackedKind kind, PackedTiling tiling, std::int64_t group) {
  const std::int64_t plane = kPackedBlockRows * group / 8;
  if (kind == PackedKind::kBinary) return plane;
  // Three ternary weights take 5 bits, so 64 of them take 7 words of 16 bits: 7 * 9 + 1, the last
  // one in spare bits.
  if (kind == PackedKind::kTernary && tiling == PackedTiling::kWords) return group / 64 * 7 * 64;
  return 2 * plane;
}

}  // namespace

std::int64_t PackedLayout::row_blocks() const { return ceil_div(rows, kPackedBlockRows); }

std::size_t PackedLayout::group_bytes() const {
  return static_cast<std::size_t>(kPackedBlockRows * 2 + code_bytes(kind, tiling, group));
}

std::size_t PackedLayout::bytes() const {
  return static_cast<std::size_t>(row_blocks() * groups()) * group_bytes();
}

PackedView PackedLayout::view(const std::byte* data) const {
  const auto one_group = static_cast<std::int64_t>(group_bytes());
  return {.data = data,
          .rows = rows,
          .inputs = inputs,
          .groups = groups(),
          .group_bytes = one_group,
          .row_block_bytes = groups() * one_group,
          .group = group,
          .kind = kind,
          .tiling = tiling};
}

PackedLayout packed_layout(quant::Format format, std::int64_t rows, std::int64_t inputs,
                           bool has_code3, PackedTiling tiling) {
  const quant::FormatInfo& f = quant::info(format);
  TERN_ASSERT(f.kind == quant::FormatClass::kPacked);
  TERN_ASSERT(rows >= 0 && inputs >= 0 && inputs % f.group == 0);
  PackedKind kind = PackedKind::kTernary;
  if (format == quant::Format::kQ1G128) {
    kind = PackedKind::kBinary;
  } else if (has_code3 && may_hold_code3(format)) {
    kind = PackedKind::kCodes;
  }
  return {.source = format,
          .kind = kind,
          .tiling = tiling,
          .group = f.group == 64 ? 64 : 128,
          .rows = rows,
          .inputs = inputs};
}

ActivationNeeds needs(const PackedLayout& layout) {
  const bool ternary = layout.kind == PackedKind::kTernary && layout.tiling == PackedTiling::kWords;
  return {.subset_tables = !ternary, .ternary_tables = ternary};
}

ActivationLayout activation_layout(std::int64_t inputs, PackedTiling tiling,
                                   ActivationNeeds needs) {
  TERN_ASSERT(inputs >= 0 && inputs % 64 == 0);
  const std::int64_t groups = ceil_div(inputs, kActivationGroup);
  std::int64_t end = 0;
  const auto place = [&end](std::int64_t bytes) {
    const std::int64_t offset = end;
    end += round_up(bytes, kLine);
    return offset;
  };
  ActivationLayout layout{};
  layout.inputs = inputs;
  layout.scales_offset = place(groups * 4);
  layout.sums_offset = place(groups * 2 * 4);
  layout.q_offset = place(groups * kActivationGroup * 2);
  // kBytes: 48 bytes for every four inputs. kWords, per 64 inputs: three tables of 64 bytes for 15
  // of 16 inputs, and a line with the four inputs that are left.
  const std::int64_t subset_bytes = tiling == PackedTiling::kBytes ? 32 * 48 : 2 * (12 * 64 + 64);
  // Per 64 inputs: 21 tables of 64 bytes for 63 inputs, and a line with the one that is left.
  const std::int64_t ternary_bytes = 2 * (21 * 64 + 64);
  layout.subset_table_offset = needs.subset_tables ? place(groups * subset_bytes) : -1;
  layout.ternary_table_offset = needs.ternary_tables ? place(groups * ternary_bytes) : -1;
  // An odd number of lines: records of many rows then fall into different sets of the cache.
  layout.record_bytes = (end / kLine) % 2 == 0 ? end + kLine : end;
  return layout;
}

RecordsView ActivationLayout::view(std::byte* records) const {
  return {.data = records,
          .record_bytes = record_bytes,
          .inputs = inputs,
          .scales_offset = scales_offset,
          .sums_offset = sums_offset,
          .q_offset = q_offset,
          .subset_table_offset = subset_table_offset,
          .ternary_table_offset = ternary_table_offset};
}

std::int64_t packed_task_blocks(const PackedLayout& layout, std::int64_t rows) {
  // About 10 us of work for one row; for many rows enough blocks that the tables of a token serve
  // 512 outputs.
  if (rows >= 16) return 16;
  constexpr std::int64_t kProductsPerTask = 1 << 20;
  const std::int64_t per_block =
      kPackedBlockRows * (layout.inputs > 0 ? layout.inputs : 1) * (rows > 0 ? rows : 1);
  const std::int64_t blocks = kProductsPerTask / per_block;
  return blocks < 1 ? 1 : (blocks > 64 ? 64 : blocks);
}

}  // namespace tern::cpu
