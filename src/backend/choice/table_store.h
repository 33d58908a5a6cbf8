// A measured table in the verified cache: an entry of kind 4 per device, driver and build.
#pragma once

#include <memory>
#include <string>

#include "backend/cache/cache.h"
#include "backend/choice/measured_table.h"

namespace tern::backend {

struct LoadedTable {
  std::shared_ptr<const MeasuredTable> table;  // null: there is none of this key
  // Why a table that is there is of no use, one sentence with what to do; empty: nothing to say.
  std::string message;
};

// Never fails: a table is a help. A table of another driver, library or build is named in the
// message, as is one that does not parse or verify.
[[nodiscard]] LoadedTable load_table(cache::Cache& cache, const TableKey& key);

// Replaces the entry of this key. Errors: kIo with the reason.
[[nodiscard]] Result<std::string> save_table(cache::Cache& cache, const TableKey& key,
                                             const MeasuredTable& table);

}  // namespace tern::backend
