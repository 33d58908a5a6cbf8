#include "backend/choice/table_store.h"

namespace tern::backend {
namespace {

// The folder that tables have to themselves, so that looking for one of another driver reads
// nothing else.
constexpr std::string_view kFolder = "choice";

Result<cache::Key> cache_key(const TableKey& key) {
  return cache::make_key(kFolder, key.backend, key);
}

std::string unusable(std::string_view why) {
  return fmt::format(
      "the calibration of this device is ignored: {}; 'tern calibrate' makes it anew", why);
}

// What differs between the key of an entry and this one: the first member, and how many.
struct Difference {
  std::string first;
  int count = 0;
};
Difference difference(std::string_view key_text, const TableKey& key) {
  Difference d;
  visit_key_fields(key, [&](std::string_view name, const std::string& value) {
    const std::string other = cache::value_of_line(key_text, name);
    if (other == value) return;
    if (d.count++ == 0) d.first = fmt::format("{} was '{}' and is '{}'", name, other, value);
  });
  return d;
}

// A table of this backend and device under another key: the one that is nearest.
std::string describe_others(cache::Cache& cache, const TableKey& key) {
  std::optional<Difference> nearest;
  for (const cache::ListedEntry& listed : cache.list()) {
    if (listed.is_lock || listed.backend != kFolder || listed.architecture != key.backend) continue;
    const Result<cache::Entry> entry = cache.read_listed(listed);
    if (!entry.ok() || entry->kind() != cache::PayloadKind::kTuningTable) continue;
    // Another number of threads is another wish, and no table that has aged.
    if (cache::value_of_line(entry->key_text(), "device") != key.device ||
        cache::value_of_line(entry->key_text(), "cores") != key.cores)
      continue;
    Difference d = difference(entry->key_text(), key);
    if (!nearest || d.count < nearest->count) nearest = std::move(d);
  }
  if (!nearest) return {};
  return unusable(fmt::format("it was measured under other conditions ({})", nearest->first));
}

}  // namespace

LoadedTable load_table(cache::Cache& cache, const TableKey& key) {
  const Result<cache::Key> name = cache_key(key);
  if (!name.ok()) return {nullptr, unusable(name.error().message())};
  const cache::Lookup found = cache.get(*name, cache::PayloadKind::kTuningTable);
  if (!found.entry)
    return {nullptr, found.was_bad ? unusable(found.why) : describe_others(cache, key)};
  const std::span<const std::byte> payload = found.entry->payload();
  Result<MeasuredTable> table =
      read_table(key, {reinterpret_cast<const char*>(payload.data()), payload.size()});
  if (!table.ok()) return {nullptr, unusable(table.error().message())};
  return {std::make_shared<const MeasuredTable>(std::move(*table)), {}};
}

Result<std::string> save_table(cache::Cache& cache, const TableKey& key,
                               const MeasuredTable& table) {
  TERN_ASSIGN(const cache::Key name, cache_key(key));
  const std::string text = write_table(key, table);
  const cache::PutOutcome outcome =
      cache.put(name, cache::PayloadKind::kTuningTable, {}, std::as_bytes(std::span(text)));
  if (!outcome.stored)
    return fail(ErrorCode::kIo, "the calibration could not be kept: {}", outcome.why);
  return cache.path_of(name);
}

}  // namespace tern::backend
