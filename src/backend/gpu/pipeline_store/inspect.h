// What `tern kernels list|verify|clear` print, as values.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "backend/cache/cache.h"
#include "backend/gpu/pipeline_store/loader.h"

namespace tern::gpu {

struct InspectedEntry {
  cache::ListedEntry listed;
  bool is_good = false;
  std::string problem;  // where it is not
  cache::PayloadKind kind = cache::PayloadKind::kCubin;
  std::string kernel;
  std::string variant;
  std::string constants;
  std::string target;
  std::string compiler;
  std::string tern;
  std::vector<std::string> entry_points;
  bool was_removed = false;
};

struct InspectOptions {
  bool fix = false;    // remove what is bad
  std::string target;  // only entries of this target are loaded; the others are read and checked
  Loader* loader = nullptr;  // none: nothing is loaded
};
// Reads and checks every entry of this format; with a loader, loads the ones for its target too.
[[nodiscard]] std::vector<InspectedEntry> inspect_entries(cache::Cache& cache,
                                                          const InspectOptions& options);

// What `clear` does not own: other caches above or below Tern's.
[[nodiscard]] std::vector<std::string> caches_of_others();

}  // namespace tern::gpu
