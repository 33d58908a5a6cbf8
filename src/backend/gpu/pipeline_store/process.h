// Starting a program and waiting for it, as an interface.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"

namespace tern::gpu {

struct ProcessRequest {
  std::vector<std::string> arguments;    // the first is the program's path
  std::string folder;                    // working folder; empty: the caller's
  std::vector<std::string> environment;  // "NAME=VALUE": all that the child gets
  std::int64_t most_ms = 120000;         // then it is killed with its children
  std::size_t most_output = 1 << 20;     // bytes kept of both outputs together
};

struct ProcessResult {
  int exit_status = -1;  // -1: ended by a signal
  int signal = 0;
  bool has_timed_out = false;
  std::string output;  // stdout and stderr as they came
};

// Errors: kNotFound (no such program), kIo. The child has no standard input and inherits no
// descriptor. Threads: any.
class ProcessRunner {
 public:
  virtual ~ProcessRunner() = default;
  [[nodiscard]] virtual Result<ProcessResult> run(const ProcessRequest& request) = 0;
};
[[nodiscard]] std::shared_ptr<ProcessRunner> posix_process_runner();

}  // namespace tern::gpu
