// Type ids of GGUF files as facts: what the ids mean, in Tern and elsewhere.
#include "io/gguf_types.h"

#include <fmt/format.h>

#include <algorithm>

namespace tern::io {
namespace {

using quant::Format;

struct Row {
  std::uint32_t id;
  GgufBlock block;
};

// Two rows with one id are two readings of it. Rows without a format are refused by name; their
// sizes let a range beyond the file be named first. Size 0: a retired or foreign id of unknown
// size.
constexpr std::array kRows = {
    Row{0, {"F32", "", 1, 4, Format::kF32}},
    Row{1, {"F16", "", 1, 2, Format::kF16}},
    Row{2, {"Q4_0", "", 32, 18, Format::kQ4_0}},
    Row{3, {"Q4_1", "", 32, 20, Format::kQ4_1}},
    Row{6, {"Q5_0", "", 32, 22, {}}},
    Row{7, {"Q5_1", "", 32, 24, {}}},
    Row{8, {"Q8_0", "", 32, 34, Format::kQ8_0}},
    Row{9, {"Q8_1", "", 32, 36, {}}},
    Row{10, {"Q2_K", "", 256, 84, {}}},
    Row{11, {"Q3_K", "", 256, 110, {}}},
    Row{12, {"Q4_K", "", 256, 144, {}}},
    Row{13, {"Q5_K", "", 256, 176, {}}},
    Row{14, {"Q6_K", "", 256, 210, {}}},
    Row{15, {"Q8_K", "", 256, 292, {}}},
    Row{16, {"IQ2_XXS", "", 256, 66, {}}},
    Row{17, {"IQ2_XS", "", 256, 74, {}}},
    Row{18, {"IQ3_XXS", "", 256, 98, {}}},
    Row{19, {"IQ1_S", "", 256, 50, {}}},
    Row{20, {"IQ4_NL", "", 32, 18, {}}},
    Row{21, {"IQ3_S", "", 256, 110, {}}},
    Row{22, {"IQ2_S", "", 256, 82, {}}},
    Row{23, {"IQ4_XS", "", 256, 136, {}}},
    Row{24, {"I8", "", 1, 1, {}}},
    Row{25, {"I16", "", 1, 2, {}}},
    Row{26, {"I32", "", 1, 4, {}}},
    Row{27, {"I64", "", 1, 8, {}}},
    Row{28, {"F64", "", 1, 8, {}}},
    Row{29, {"IQ1_M", "", 256, 56, {}}},
    Row{30, {"BF16", "", 1, 2, Format::kBf16}},
    Row{31, {"Q4_0_4_4", "", 0, 0, {}}},
    Row{32, {"Q4_0_4_8", "", 0, 0, {}}},
    Row{33, {"Q4_0_8_8", "", 0, 0, {}}},
    Row{34, {"TQ1_0", "", 256, 54, Format::kT1G256}},
    Row{35, {"TQ2_0", "", 256, 66, Format::kT2G256}},
    Row{36, {"I2_S", "", 0, 0, {}}},
    Row{39, {"MXFP4", "", 32, 17, {}}},
    Row{40, {"Q1_0 in groups of 32", "q1_0-g32", 32, 6, {}}},
    Row{40, {"NVFP4", "nvfp4", 64, 36, {}}},
    Row{41, {"Q1_0", "", 128, 18, Format::kQ1G128}},
    Row{42, {"Q2_0", "q2_0-g64", 64, 18, Format::kT2G64}},
    Row{42, {"Q2_0 (128, older)", "q2_0-g128", 128, 34, Format::kT2G128}},
    Row{53, {"Q2_0 in planar blocks of 32", "", 0, 0, {}}},
    Row{142, {"PQ2_0", "", 128, 34, Format::kT2G128}},
    Row{143, {"PTQ1_0", "", 128, 28, Format::kT1G128}},
};

constexpr std::array kBlocks = [] {
  std::array<GgufBlock, kRows.size()> blocks{};
  for (std::size_t i = 0; i < kRows.size(); ++i) blocks[i] = kRows[i].block;
  return blocks;
}();

}  // namespace

bool is_contested(std::uint32_t type_id) {
  return type_id == 40 || type_id == 41 || type_id == 42 || type_id == 142 || type_id == 143;
}

std::span<const GgufBlock> readings_of(std::uint32_t type_id) {
  const auto first = std::ranges::find(kRows, type_id, &Row::id);
  auto last = first;
  while (last != kRows.end() && last->id == type_id) ++last;
  return std::span(kBlocks).subspan(static_cast<std::size_t>(first - kRows.begin()),
                                    static_cast<std::size_t>(last - first));
}

std::uint32_t type_id_of(Format format) {
  // the last row of a format is the one that is written: PQ2_0 rather than the older Q2_0
  std::uint32_t id = 0;
  for (const Row& row : kRows) {
    if (row.block.format == format) id = row.id;
  }
  return id;
}

std::string unreadable_type_message(std::string_view tensor, std::uint32_t type_id,
                                    std::string_view type_name, std::uint64_t data_offset) {
  std::string known;
  for (const quant::FormatInfo& f : quant::kFormats) {
    known += ' ';
    known += f.file_name;
  }
  return fmt::format(
      "tensor '{}' has type {}{}, which Tern does not read here (data offset {}); known:{}", tensor,
      type_id, type_name.empty() ? std::string() : fmt::format(" ({})", type_name), data_offset,
      known);
}

}  // namespace tern::io
