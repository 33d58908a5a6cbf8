// Parser of cache entries: an accepted entry is exactly what writing its parts gives.
#include <algorithm>
#include <span>

#include "backend/cache/entry.h"
#include "backend/cache/key.h"
#include "tests/fuzz/fuzz.h"

using namespace tern::cache;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto input = std::as_bytes(std::span(data, size));
  const auto header = parse_entry_header(input, size);
  const auto entry = parse_entry(input);
  if (!entry.ok()) {
    fuzz_require(!entry.error().message().empty(), "a refusal is a sentence");
    return 0;
  }
  fuzz_require(header.ok(), "an entry has a header");
  fuzz_require(
      header->payload_bytes == entry->payload.size() && header->key_bytes == entry->key_text.size(),
      "the header tells the lengths");
  fuzz_require(entry->payload.empty() ||
                   (entry->payload.data() >= input.data() &&
                    entry->payload.data() + entry->payload.size() <= input.data() + size),
               "the payload lies inside the file");
  for (const char* name : {"tern", "kernel", "target"}) (void)value_of_line(entry->key_text, name);
  // Names that the writer refuses (empty ones) can be read; all others write the same bytes.
  const std::vector<std::string> names = entry->entry_point_names();
  const auto written = encode_entry(entry->kind, entry->key_text, names, entry->payload);
  if (!written.ok()) return 0;
  const bool is_plain = entry->entry_points.empty() || entry->entry_points.back() == '\n';
  fuzz_require(!is_plain || std::ranges::equal(*written, input), "a copy is the same");
  return 0;
}

// Hashes keep a mutator out, so the mutated parts are written anew half of the time.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size,
                                               std::size_t max_size, unsigned seed) {
  size = LLVMFuzzerMutate(data, size, max_size);
  if (seed % 2 == 0) return size;
  const auto input = std::as_bytes(std::span(data, size));
  const std::size_t key_bytes = std::min<std::size_t>(size / 2, seed % 97);
  const std::vector<std::string> names = {"k"};
  const auto written = encode_entry(static_cast<PayloadKind>(seed % 5 + 1),
                                    {reinterpret_cast<const char*>(data), key_bytes},
                                    std::span(names).first(seed / 2 % 2), input.subspan(key_bytes));
  if (!written.ok() || written->size() > max_size) return size;
  std::copy_n(reinterpret_cast<const std::uint8_t*>(written->data()), written->size(), data);
  // And one byte of it wrong, now and then.
  if (seed % 8 == 1) data[seed / 8 % written->size()] ^= static_cast<std::uint8_t>(1 + seed % 255);
  return written->size();
}
