// What was measured on one device: per problem and variant a median with its spread, kept as text
// in an entry of the verified cache, and ignored wherever anything about it is not as it should be.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/choice/cost_model.h"
#include "backend/choice/problem.h"
#include "backend/choice/units.h"
#include "base/error.h"

namespace tern::backend {

// Changes whenever an op, a variant or a layout changes what its name means.
inline constexpr int kOpSetVersion = 1;

// What a table is good for. Every member is compared; a table of another value is of no use.
struct TableKey {
  std::string backend;       // "cpu"
  std::string architecture;  // "x86-64 AVX2 FMA ...", "sm_90"
  std::string device;        // the name that the maker gave it: "Intel(R) Xeon(R) Processor"
  std::string cores;         // threads, multiprocessors
  std::string memory_class;  // memory rounded to a power of two: "16 GiB"
  std::string driver;        // driver, and build of the operating system
  std::string vendor;        // library version: "OpenBLAS 0.3.21"; "none"
  std::string tern;          // version of this build
  std::string op_set;        // kOpSetVersion

  friend bool operator==(const TableKey&, const TableKey&) = default;
};

// Takes the struct apart, so that a new member cannot be left out of the key.
template <class Visit>
void visit_key_fields(const TableKey& fields, Visit&& visit) {
  const auto& [backend, architecture, device, cores, memory_class, driver, vendor, tern, op_set] =
      fields;
  visit("backend", backend);
  visit("architecture", architecture);
  visit("device", device);
  visit("cores", cores);
  visit("memory_class", memory_class);
  visit("driver", driver);
  visit("vendor", vendor);
  visit("tern", tern);
  visit("op_set", op_set);
}

// How one variant did on one problem.
struct VariantTime {
  std::string variant;
  Seconds median{};     // per op
  Seconds spread{};     // median distance of the rounds from it
  Seconds predicted{};  // what the prior said, with the rates of the table
  int samples = 0;      // rounds
  BytesPerSecond bandwidth{};
  FlopPerSecond rate{};
  friend bool operator==(const VariantTime&, const VariantTime&) = default;
};

// A clock that stands for the speed of the machine (only ratios count), and its temperature.
struct MachineState {
  double clock = 0;        // 0: unknown
  double temperature = 0;  // Celsius; 0: unknown
  friend bool operator==(const MachineState&, const MachineState&) = default;
};

struct TableRow {
  Problem problem;  // m is that of the bucket
  std::vector<VariantTime> times;
  // The variant that runs until another one wins clearly; empty: the fastest.
  std::string incumbent;
  MachineState before, after;
  std::string date;      // "2026-11-30"
  std::string revision;  // of the source

  [[nodiscard]] const VariantTime* find(std::string_view variant) const;
  friend bool operator==(const TableRow&, const TableRow&) = default;
};

// A challenger replaces the incumbent only if it wins by more than this ...
inline constexpr double kHysteresis = 0.03;
// ... and by more than this many times the larger spread of the two.
inline constexpr double kHysteresisSpreads = 2;
[[nodiscard]] bool beats(const VariantTime& challenger, const VariantTime& incumbent);

class MeasuredTable {
 public:
  MeasuredTable() = default;
  explicit MeasuredTable(DeviceRates rates) : rates_(rates) {}

  // The rates that were measured with the table.
  [[nodiscard]] const DeviceRates& rates() const { return rates_; }
  void set_rates(const DeviceRates& rates) { rates_ = rates; }
  [[nodiscard]] const std::vector<TableRow>& rows() const { return rows_; }

  // The row of the problem's own bucket, or null.
  [[nodiscard]] const TableRow* find(const Problem& problem) const;
  // Adds or replaces the row of the same bucket. The old row's incumbent (without one: its
  // fastest) stays unless another variant beats it.
  void put(TableRow row);
  // Appends a row as it was written, incumbent and all. Its bucket is not there yet.
  void restore(TableRow row) { rows_.push_back(std::move(row)); }

  // Measured / predicted of a variant, from the nearest buckets of the same op, dtypes and layout;
  // none when the variant was never measured with them.
  [[nodiscard]] std::optional<double> neighbour_ratio(const Problem& problem,
                                                      std::string_view variant) const;

  friend bool operator==(const MeasuredTable&, const MeasuredTable&) = default;

 private:
  DeviceRates rates_;
  std::vector<TableRow> rows_;  // in the order of their problems
};

// Text: a line per rate, row and time. The key is part of it and checked when it is read.
[[nodiscard]] std::string write_table(const TableKey& key, const MeasuredTable& table);
// Errors: kInvalidFile naming the line, or the member of the key that differs. Numbers are finite,
// times above 0, names are as in the tables, counts have bounds.
[[nodiscard]] Result<MeasuredTable> read_table(const TableKey& key, std::string_view text);

}  // namespace tern::backend
