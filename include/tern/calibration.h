// What `tern calibrate` measures and reports: which kernel runs, by time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tern {

struct CalibrationTime {
  std::string variant;
  double microseconds = 0;  // median of the rounds
  double spread = 0;        // microseconds
  int samples = 0;          // rounds; 1: too far behind to be measured again
};

// One shape and number of rows.
struct CalibrationRow {
  std::string problem;  // "dense_product f32 x f16 -> f32, rows, n 4096, k 576, m 17-32"
  std::string before;   // the variant that ran until now; empty: nothing was measured
  std::string after;
  std::vector<CalibrationTime> times;
  double gbps = 0, tflops = 0;  // of `after`
};

struct CalibrationReport {
  std::string device;
  std::string kept_in;  // the file
  double launch_us = 0;
  double read_gbps = 0;
  double peak_gflops = 0;  // f32
  std::vector<CalibrationRow> rows;
  std::vector<std::string> skipped;  // one sentence each
};

}  // namespace tern
