#include "runtime/tuning.h"

#include "backend/choice/table_store.h"
#include "tern/version.h"

namespace tern::runtime {
namespace {

Result<std::shared_ptr<cache::Cache>> open_cache(cache::Mode mode) {
  cache::Options options;
  TERN_ASSIGN(options.base, cache::choose_base(cache::read_location_strings()));
  options.mode = mode;
  options.tern = TERN_VERSION_STRING;
  return cache::Cache::open(std::move(options));
}

}  // namespace

std::shared_ptr<const backend::MeasuredTable> load_tuning(const backend::DeviceProfile& profile,
                                                          std::vector<std::string>& warnings) {
  const Result<std::shared_ptr<cache::Cache>> cache = open_cache(cache::Mode::kReadOnly);
  if (!cache.ok()) {
    warnings.push_back(fmt::format("no calibration is looked for: {}", cache.error().message()));
    return nullptr;
  }
  backend::LoadedTable loaded = backend::load_table(**cache, backend::table_key(profile));
  if (!loaded.message.empty()) warnings.push_back(std::move(loaded.message));
  return std::move(loaded.table);
}

Result<std::string> save_tuning(const backend::DeviceProfile& profile,
                                const backend::MeasuredTable& table) {
  TERN_ASSIGN(const std::shared_ptr<cache::Cache> cache, open_cache(cache::Mode::kOn));
  return backend::save_table(*cache, backend::table_key(profile), table);
}

}  // namespace tern::runtime
