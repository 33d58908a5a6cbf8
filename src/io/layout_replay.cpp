// The replay: a writer lays tensors out one after the other, so only the right block size gives the
// offsets that are in the file.
#include "io/layout_replay.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/checked.h"
#include "base/half.h"
#include "base/utf8.h"

namespace tern::io {
namespace {

// The reading chosen for each contested id that occurs.
struct Choice {
  std::vector<std::pair<std::uint32_t, const GgufBlock*>> readings;

  [[nodiscard]] const GgufBlock* of(std::uint32_t id) const {
    for (const auto& [known, block] : readings) {
      if (known == id) return block;
    }
    return nullptr;
  }
};

enum class Stop { kNone, kRow, kOffset, kBeyondFile };

struct Replay {
  const Choice* choice = nullptr;
  Stop stop = Stop::kNone;
  std::size_t tensor = 0;      // where it stopped
  std::uint64_t expected = 0;  // the offset that this reading needs there
  std::uint64_t bytes = 0;     // of that tensor
  bool is_exact = false;       // the file ends where the last tensor does
};

const GgufBlock& block_of(const GgufTensorInfo& tensor, const Choice& choice) {
  const GgufBlock* block = choice.of(tensor.type_id);
  return block != nullptr ? *block : readings_of(tensor.type_id).front();
}

Replay replay(const GgufHeader& header, std::uint64_t file_bytes, const Choice& choice,
              std::uint64_t alignment) {
  Replay run;
  run.choice = &choice;
  std::uint64_t position = 0;
  std::uint64_t end = 0;
  for (run.tensor = 0; run.tensor < header.tensors.size(); ++run.tensor) {
    const GgufTensorInfo& tensor = header.tensors[run.tensor];
    const GgufBlock& block = block_of(tensor, choice);
    run.expected = position;
    // elements < 2^63: blocks times bytes may not fit 64 bits, and counts as an end beyond the file
    const auto bytes = checked_mul(tensor.elements / block.weights, block.bytes);
    run.bytes = bytes.value_or(~std::uint64_t{0});
    if (tensor.ne[0] % block.weights != 0) {
      run.stop = Stop::kRow;
      return run;
    }
    if (tensor.offset != position) {
      run.stop = Stop::kOffset;
      return run;
    }
    const auto data_end = bytes ? checked_add(position, *bytes) : std::nullopt;
    const auto file_end = data_end ? checked_add(header.data_offset, *data_end) : std::nullopt;
    if (!file_end || *file_end > file_bytes) {
      run.stop = Stop::kBeyondFile;
      return run;
    }
    end = *data_end;
    position = *checked_align(end, alignment);  // end is a size of the file: no wrap
  }
  run.is_exact =
      header.data_offset + end == file_bytes || header.data_offset + position == file_bytes;
  return run;
}

// Every combination of readings of the contested ids that occur; `layout` leaves one reading of the
// id that has it.
std::vector<Choice> choices_of(const GgufHeader& header, std::string_view layout) {
  std::vector<std::uint32_t> ids;
  for (const GgufTensorInfo& tensor : header.tensors) {
    if (is_contested(tensor.type_id) && std::ranges::count(ids, tensor.type_id) == 0) {
      ids.push_back(tensor.type_id);
    }
  }
  std::vector<Choice> choices(1);
  for (const std::uint32_t id : ids) {
    const auto readings = readings_of(id);
    const bool is_named = std::ranges::any_of(
        readings, [&](const GgufBlock& b) { return !layout.empty() && b.layout_name == layout; });
    std::vector<Choice> more;
    for (const Choice& choice : choices) {
      for (const GgufBlock& block : readings) {
        if (is_named && block.layout_name != layout) continue;
        more.push_back(choice);
        more.back().readings.emplace_back(id, &block);
      }
    }
    choices = std::move(more);
  }
  return choices;
}

Result<void> check_layout_name(std::string_view layout) {
  if (layout.empty() || layout == "q2_0-g64" || layout == "q2_0-g128") return {};
  return fail(ErrorCode::kUsage, "layout '{}' is not known; known: q2_0-g64 q2_0-g128",
              escape_for_message(layout));
}

const GgufTensorInfo& first_of_type(const GgufHeader& header, std::uint32_t id) {
  return *std::ranges::find(header.tensors, id, &GgufTensorInfo::type_id);
}

// The id that a failure is about: one with two readings if there is one, else the first contested
// one.
std::uint32_t disputed_id(const Choice& choice) {
  for (const auto& [id, block] : choice.readings) {
    if (readings_of(id).size() > 1) return id;
  }
  return choice.readings.front().first;
}

Error row_error(const GgufTensorInfo& tensor, const GgufBlock& block) {
  return fail(ErrorCode::kInvalidFile, "tensor '{}' has rows of {}, type {} needs a multiple of {}",
              tensor.name, tensor.ne[0], block.name, block.weights);
}

// No reading survives. The run that came furthest says what is wrong.
Error no_survivor(const GgufHeader& header, std::uint64_t file_bytes,
                  const std::vector<Replay>& runs) {
  const auto furthest = std::ranges::max_element(runs, {}, [](const Replay& run) {
    return std::pair(run.tensor, run.stop == Stop::kBeyondFile);
  });
  const GgufTensorInfo& tensor = header.tensors[furthest->tensor];
  if (furthest->stop == Stop::kBeyondFile) {
    const auto begin = checked_add(header.data_offset, tensor.offset);
    return beyond_file(fmt::format("tensor '{}'", tensor.name), begin.value_or(~std::uint64_t{0}),
                       furthest->bytes, file_bytes);
  }
  if (furthest->stop == Stop::kRow) return row_error(tensor, block_of(tensor, *furthest->choice));
  // an offset that cannot be inside the file is damage, whatever the layout
  if (tensor.offset >= file_bytes) {
    const auto begin = checked_add(header.data_offset, tensor.offset);
    return beyond_file(fmt::format("tensor '{}'", tensor.name), begin.value_or(tensor.offset),
                       furthest->bytes, file_bytes);
  }
  const std::uint32_t id = disputed_id(*furthest->choice);
  if (readings_of(id).size() == 1) {
    const GgufTensorInfo& first = first_of_type(header, id);
    const GgufBlock& block = readings_of(id).front();
    return Error(
        ErrorCode::kUnsupported,
        unreadable_type_message(first.name, id,
                                fmt::format("not laid out as {}, {} bytes per {} weights: "
                                            "tensor '{}' has offset {}, expected {}",
                                            block.name, block.bytes, block.weights, tensor.name,
                                            tensor.offset, furthest->expected),
                                first.offset));
  }
  std::string expected;
  std::vector<std::uint64_t> seen;
  for (const Replay& run : runs) {
    if (run.tensor != furthest->tensor || std::ranges::count(seen, run.expected) != 0) continue;
    expected += fmt::format("{}{}", seen.empty() ? "" : " or ", run.expected);
    seen.push_back(run.expected);
  }
  return fail(
      ErrorCode::kInvalidFile,
      "tensor '{}' has offset {}, but type {} needs {}; the file matches no known layout of "
      "this type",
      tensor.name, tensor.offset, id, expected);
}

Error two_survivors(const GgufHeader& header, const std::vector<Replay>& survivors) {
  const Choice& first = *survivors[0].choice;
  const Choice& second = *survivors[1].choice;
  for (const auto& [id, block] : first.readings) {
    // no reading of id 40 is one of Tern's: its name is the question, not the way to read it
    if (readings_of(id).size() > 1 && !block->format) {
      const GgufTensorInfo& tensor = first_of_type(header, id);
      return Error(ErrorCode::kUnsupported,
                   unreadable_type_message(tensor.name, id, "Q1_0 in groups of 32, or NVFP4",
                                           tensor.offset));
    }
  }
  const auto differs = std::ranges::find_if(first.readings, [&](const auto& reading) {
    return second.of(reading.first) != reading.second;
  });
  return fail(ErrorCode::kInvalidFile,
              "type {} could be {} or {} in this file; say which with --layout", differs->first,
              differs->second->layout_name, second.of(differs->first)->layout_name);
}

// The survivors of one alignment; an exact one beats loose ones.
std::vector<Replay> survivors_of(const std::vector<Replay>& runs) {
  std::vector<Replay> survivors;
  std::ranges::copy_if(runs, std::back_inserter(survivors),
                       [](const Replay& run) { return run.stop == Stop::kNone; });
  if (std::ranges::any_of(survivors, &Replay::is_exact)) {
    std::erase_if(survivors, [](const Replay& run) { return !run.is_exact; });
  }
  return survivors;
}

// Blocks of all tensors under one choice; refuses types that Tern does not have.
Result<std::vector<GgufBlock>> blocks_of(const GgufHeader& header, const Choice& choice) {
  std::vector<GgufBlock> blocks;
  blocks.reserve(header.tensors.size());
  for (const GgufTensorInfo& tensor : header.tensors) {
    const GgufBlock& block = block_of(tensor, choice);
    if (!block.format) {
      return Error(ErrorCode::kUnsupported,
                   unreadable_type_message(tensor.name, tensor.type_id, block.name, tensor.offset));
    }
    if (tensor.ne[0] % block.weights != 0) return row_error(tensor, block);
    blocks.push_back(block);
  }
  return blocks;
}

// Types that are refused whatever the offsets say: unknown ids, and foreign types that lie inside
// the file. One that does not is a damaged file first.
Result<void> refuse_foreign_types(const GgufHeader& header, std::uint64_t file_bytes) {
  for (const GgufTensorInfo& tensor : header.tensors) {
    const auto readings = readings_of(tensor.type_id);
    if (is_contested(tensor.type_id) || (readings.size() == 1 && readings.front().format)) continue;
    const std::string_view name = readings.empty() ? "" : readings.front().name;
    if (!readings.empty() && readings.front().bytes > 0) {
      const std::uint64_t blocks = tensor.elements / readings.front().weights;
      const auto bytes = checked_mul(blocks, readings.front().bytes);
      const auto begin = checked_add(header.data_offset, tensor.offset);
      const auto end = begin && bytes ? checked_add(*begin, *bytes) : std::nullopt;
      if (!end || *end > file_bytes) {
        return beyond_file(fmt::format("tensor '{}'", tensor.name),
                           begin.value_or(~std::uint64_t{0}), bytes.value_or(~std::uint64_t{0}),
                           file_bytes);
      }
    }
    return Error(ErrorCode::kUnsupported,
                 unreadable_type_message(tensor.name, tensor.type_id, name, tensor.offset));
  }
  return {};
}

bool is_bad(std::span<const std::byte> codes, const std::byte* scale) {
  const auto low = std::to_integer<unsigned>(scale[0]);
  const auto high = std::to_integer<unsigned>(scale[1]);
  const float d = half_to_float(static_cast<std::uint16_t>(low | high << 8));
  if (!(d >= 0.0F) || std::isinf(d)) return true;
  return std::ranges::any_of(codes, [](std::byte b) {
    const auto byte = std::to_integer<unsigned>(b);
    return (byte & byte >> 1 & 0x55U) != 0;  // both bits of one code
  });
}

}  // namespace

Result<ResolvedLayouts> resolve_layouts(const GgufHeader& header, std::uint64_t file_bytes,
                                        std::string_view layout) {
  TERN_TRY(check_layout_name(layout));
  TERN_TRY(refuse_foreign_types(header, file_bytes));
  const std::vector<Choice> choices = choices_of(header, layout);
  ResolvedLayouts result;
  result.alignment = header.alignment;
  const Choice* chosen = &choices.front();
  if (!chosen->readings.empty()) {
    const auto run_all = [&](std::uint64_t alignment) {
      std::vector<Replay> runs;
      runs.reserve(choices.size());
      for (const Choice& choice : choices) {
        runs.push_back(replay(header, file_bytes, choice, alignment));
      }
      return runs;
    };
    const std::vector<Replay> padded = run_all(header.alignment);
    std::vector<Replay> survivors = survivors_of(padded);
    if (survivors.empty() && header.alignment > 1) {
      survivors = survivors_of(run_all(1));
      result.alignment = 1;
      if (!survivors.empty()) {
        result.notes.push_back(
            fmt::format("the tensors are not padded to the alignment of {}", header.alignment));
      }
    }
    if (survivors.empty()) return no_survivor(header, file_bytes, padded);
    if (survivors.size() > 1) return two_survivors(header, survivors);
    chosen = survivors.front().choice;
  }
  auto blocks = blocks_of(header, *chosen);
  if (!blocks.ok()) return blocks.error();
  result.blocks = std::move(*blocks);
  return result;
}

ScalePlaces sample_scale_places(std::span<const std::span<const std::byte>> tensors) {
  constexpr std::uint64_t kBlockBytes = 34;
  constexpr std::uint64_t kScaleBytes = 2;
  constexpr std::uint64_t kWanted = 2000;
  std::uint64_t total = 0;
  for (const auto tensor : tensors) total += tensor.size() / kBlockBytes;
  ScalePlaces places;
  places.blocks = std::min(total, kWanted);
  std::size_t tensor = 0;
  std::uint64_t first = 0;  // number of the first block of `tensor`
  for (std::uint64_t i = 0; i < places.blocks; ++i) {
    const std::uint64_t wanted = i * total / places.blocks;  // below 2^59: no file has 2^52 bytes
    while (wanted - first >= tensors[tensor].size() / kBlockBytes) {
      first += tensors[tensor].size() / kBlockBytes;
      ++tensor;
    }
    const auto block = tensors[tensor].subspan(
        static_cast<std::size_t>((wanted - first) * kBlockBytes), kBlockBytes);
    if (is_bad(block.subspan(kScaleBytes), block.data())) ++places.bad_first;
    constexpr std::uint64_t kCodeBytes = kBlockBytes - kScaleBytes;
    if (is_bad(block.first(kCodeBytes), block.data() + kCodeBytes)) ++places.bad_last;
  }
  return places;
}

}  // namespace tern::io
