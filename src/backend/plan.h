// A plan: which kernel runs each op and why, and what memory that takes. Pure data; no hardware is
// needed to make one.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "backend/choice/problem.h"
#include "backend/profile.h"
#include "program/batch.h"
#include "program/program.h"

namespace tern::backend {

struct PlanOptions {
  // --exact: canonical sums at every number of rows, where a backend has faster ones that are not
  bool exact = false;
  program::BatchLimits limits{};
  std::vector<std::string> pins{};  // "op:variant", checked against the tables
};

// What runs where the choice depends on the number of rows.
struct KernelForRows {
  std::int64_t most_rows = 0;  // from the entry before this one up to here
  std::string kernel;
  std::string reason;
};

// One launch. A step may cover several ops (a fused kernel, or a persistent kernel for whole
// regions).
struct PlanStep {
  std::uint32_t first_op = 0;
  std::uint32_t op_count = 1;
  std::string kernel;  // "gemv_q1_g128:lut"
  std::string reason;  // "measured 41.2 us, 25 % ahead of avx2 (measured)"
  // By ascending rows; empty: kernel and reason hold for every number of rows.
  std::vector<KernelForRows> by_rows{};

  [[nodiscard]] const std::string& kernel_at(std::int64_t rows) const {
    return by_rows.empty() ? kernel : at(rows).kernel;
  }
  [[nodiscard]] const std::string& reason_at(std::int64_t rows) const {
    return by_rows.empty() ? reason : at(rows).reason;
  }

 private:
  [[nodiscard]] const KernelForRows& at(std::int64_t rows) const {
    for (const KernelForRows& entry : by_rows)
      if (rows <= entry.most_rows) return entry;
    return by_rows.back();
  }
};

// Where an activation lies: offset into the arena. Values whose lives do not overlap share bytes.
struct Placement {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::int64_t row_stride = 0;  // elements (floats), or bytes for quantised rows
};

// Base of every backend's plan. A backend adds what its executable needs in a class of its own.
class Plan {
 public:
  Plan() = default;
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;
  virtual ~Plan() = default;

  program::Program program;
  program::BatchLimits limits;
  DeviceProfile profile;
  std::vector<PlanStep> steps;
  std::vector<Placement> placements;  // by ValueId; zero bytes for values outside the arena
  std::uint64_t arena_bytes = 0;      // activations
  std::uint64_t scratch_bytes = 0;    // kernels' own, all workers together
  std::uint64_t output_bytes = 0;     // host-visible outputs
  std::vector<std::string> warnings;  // refused pins, slow paths (F24)
  std::vector<Problem> problems;      // what was chosen for, each once: what calibration measures
};

// Bytes that a set of weights takes when resident, by the same function that lays them out.
struct ResidentEstimate {
  std::uint64_t bytes = 0;
  std::vector<std::string> layouts;  // by WeightId: "rows32 binary"
};

}  // namespace tern::backend
