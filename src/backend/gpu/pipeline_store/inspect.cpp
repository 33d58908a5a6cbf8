#include "backend/gpu/pipeline_store/inspect.h"

#include <utility>

namespace tern::gpu {
namespace {

bool is_code(cache::PayloadKind kind) {
  return kind == cache::PayloadKind::kCubin || kind == cache::PayloadKind::kMetallib;
}

void fill(const cache::Entry& entry, InspectedEntry& row) {
  const std::string_view key = entry.key_text();
  row.kind = entry.kind();
  row.kernel = cache::value_of_line(key, "kernel");
  row.variant = cache::value_of_line(key, "variant");
  row.constants = cache::value_of_line(key, "constants");
  row.target = cache::value_of_line(key, "target");
  row.compiler = cache::value_of_line(key, "compiler");
  row.tern = cache::value_of_line(key, "tern");
  row.entry_points = entry.entry_points();
}

// The driver's word, where there is a driver for it.
std::string try_to_load(const cache::Entry& entry, const InspectedEntry& row, Loader& loader) {
  const Result<std::shared_ptr<Module>> module =
      loader.load(entry.kind(), entry.payload(), row.kernel);
  if (!module.ok()) return module.error().message();
  for (const std::string& name : row.entry_points) {
    const Result<LoadedEntry> found = loader.find(**module, EntryPoint{name, {}, {}}, {});
    if (!found.ok()) return found.error().message();
  }
  return {};
}

}  // namespace

std::vector<InspectedEntry> inspect_entries(cache::Cache& cache, const InspectOptions& options) {
  std::vector<InspectedEntry> rows;
  for (cache::ListedEntry& listed : cache.list()) {
    if (listed.format != cache::kFormatVersion) continue;
    InspectedEntry row;
    const Result<cache::Entry> entry = cache.read_listed(listed);
    if (!entry.ok()) {
      row.problem = entry.error().message();
    } else {
      fill(*entry, row);
      const bool is_loaded =
          options.loader != nullptr && is_code(row.kind) && row.target == options.target;
      if (is_loaded) row.problem = try_to_load(*entry, row, *options.loader);
    }
    row.is_good = row.problem.empty();
    if (!row.is_good && options.fix) {
      cache.remove(listed.mark);
      row.was_removed = true;
    }
    row.listed = std::move(listed);
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<std::string> caches_of_others() {
  return {
      "NVIDIA's driver keeps a cache of its own in ~/.nv/ComputeCache (CUDA_CACHE_PATH)",
      "macOS keeps compiled Metal code in its own caches, by application",
  };
}

}  // namespace tern::gpu
