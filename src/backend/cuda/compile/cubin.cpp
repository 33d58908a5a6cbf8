#include "backend/cuda/compile/cubin.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "base/checked.h"

namespace tern::cuda {
namespace {

constexpr std::size_t kElfHeaderBytes = 64;
constexpr std::size_t kSectionBytes = 64;
constexpr std::size_t kSymbolBytes = 24;
constexpr std::uint64_t kMachineCuda = 190;
constexpr std::uint64_t kSectionSymbols = 2;
constexpr unsigned kTypeObject = 1;
constexpr unsigned kTypeFunction = 2;
constexpr unsigned kBindGlobal = 1;
constexpr unsigned kOtherEntry = 0x10;  // marks a kernel among device functions

Error bad(std::string_view what) {
  return fail(ErrorCode::kInvalidFile, "cubin: {}; expected a 64-bit ELF file for CUDA", what);
}

// Little-endian numbers at offsets that may lie anywhere.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  [[nodiscard]] std::optional<std::uint64_t> number(std::uint64_t offset, std::size_t size) const {
    const auto end = checked_add(offset, size);
    if (!end || *end > bytes_.size()) return std::nullopt;
    std::uint64_t value = 0;
    for (std::size_t i = size; i-- > 0;) {
      value = value << 8 | static_cast<std::uint64_t>(bytes_[static_cast<std::size_t>(offset) + i]);
    }
    return value;
  }
  [[nodiscard]] std::optional<std::span<const std::byte>> range(std::uint64_t offset,
                                                                std::uint64_t size) const {
    const auto end = checked_add(offset, size);
    if (!end || *end > bytes_.size()) return std::nullopt;
    return bytes_.subspan(static_cast<std::size_t>(offset), static_cast<std::size_t>(size));
  }

 private:
  std::span<const std::byte> bytes_;
};

struct Section {
  std::uint64_t type = 0;
  std::uint64_t link = 0;
  std::span<const std::byte> bytes;
};

Result<Section> read_section(const Reader& file, std::uint64_t table, std::uint64_t index) {
  const auto at = checked_add(table, index * kSectionBytes);
  if (!at || !file.range(*at, kSectionBytes)) return bad("a section lies outside of the file");
  Section section;
  section.type = *file.number(*at + 4, 4);
  section.link = *file.number(*at + 40, 4);
  if (section.type != kSectionSymbols && section.type != 3) return section;
  const auto bytes = file.range(*file.number(*at + 24, 8), *file.number(*at + 32, 8));
  if (!bytes) return bad("a table lies outside of the file");
  section.bytes = *bytes;
  return section;
}

std::string name_at(std::span<const std::byte> strings, std::uint64_t offset) {
  if (offset >= strings.size()) return {};
  const std::string_view text(reinterpret_cast<const char*>(strings.data()), strings.size());
  const std::string_view rest = text.substr(static_cast<std::size_t>(offset));
  return std::string(rest.substr(0, rest.find('\0')));
}

void take_symbols(std::span<const std::byte> table, std::span<const std::byte> strings,
                  CubinFacts& facts) {
  const Reader symbols(table);
  for (std::uint64_t at = 0; at + kSymbolBytes <= table.size(); at += kSymbolBytes) {
    const unsigned info = static_cast<unsigned>(*symbols.number(at + 4, 1));
    const unsigned other = static_cast<unsigned>(*symbols.number(at + 5, 1));
    const bool is_defined = *symbols.number(at + 6, 2) != 0;
    std::string name = name_at(strings, *symbols.number(at, 4));
    if (!is_defined || name.empty()) continue;
    const unsigned type = info & 0xF;
    if (type == kTypeFunction && info >> 4 == kBindGlobal && (other & kOtherEntry) != 0) {
      facts.entry_points.push_back(std::move(name));
    } else if (type == kTypeObject) {
      facts.objects.push_back(std::move(name));
    }
  }
}

}  // namespace

Result<CubinFacts> read_cubin(std::span<const std::byte> bytes) {
  const Reader file(bytes);
  if (!file.range(0, kElfHeaderBytes)) return bad("the file ends in the header");
  const bool is_elf =
      *file.number(0, 4) == 0x464C457F && *file.number(4, 1) == 2 && *file.number(5, 1) == 1;
  if (!is_elf || *file.number(18, 2) != kMachineCuda) return bad("this is another kind of file");
  CubinFacts facts;
  const std::uint64_t flags = *file.number(48, 4);
  const bool is_new_abi = *file.number(8, 1) >= 8;  // from CUDA 13 on
  facts.architecture = static_cast<std::uint32_t>((is_new_abi ? flags >> 8 : flags) & 0xFF);
  const std::uint64_t table = *file.number(40, 8);
  const std::uint64_t sections = *file.number(60, 2);
  for (std::uint64_t i = 0; i < sections; ++i) {
    TERN_ASSIGN(const Section section, read_section(file, table, i));
    if (section.type != kSectionSymbols) continue;
    if (section.link >= sections) return bad("a symbol table has no strings");
    TERN_ASSIGN(const Section strings, read_section(file, table, section.link));
    take_symbols(section.bytes, strings.bytes, facts);
  }
  std::sort(facts.entry_points.begin(), facts.entry_points.end());
  std::sort(facts.objects.begin(), facts.objects.end());
  return facts;
}

}  // namespace tern::cuda
