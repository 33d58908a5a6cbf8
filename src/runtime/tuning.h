// The measured table of an engine's device: read when the engine starts, written by a calibration.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "backend/choice/measured_table.h"
#include "backend/profile.h"
#include "base/error.h"

namespace tern::runtime {

// The profile's table, if there is one; a table that is of no use is one line of `warnings`.
[[nodiscard]] std::shared_ptr<const backend::MeasuredTable> load_tuning(
    const backend::DeviceProfile& profile, std::vector<std::string>& warnings);

// The path of the entry. Errors: kIo; kUsage for a cache folder that cannot be used.
[[nodiscard]] Result<std::string> save_tuning(const backend::DeviceProfile& profile,
                                              const backend::MeasuredTable& table);

}  // namespace tern::runtime
