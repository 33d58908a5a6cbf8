// Runs one kernel of a module: run_kernel MODULE.so KERNEL [THREADS [GROUPS]]. Prints y, or the
// failure and exit code 3. Built with and without sanitizers.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "../../rt/executor.h"

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  std::string error;
  swm::Dispatch d;
  d.module = swm::Module::load(argv[1], error);
  if (d.module) d.kernel = d.module->find(argv[2]);
  if (!d.kernel) {
    std::fprintf(stderr, "no kernel %s: %s\n", argv[2], error.c_str());
    return 2;
  }
  const unsigned threads = argc > 3 ? static_cast<unsigned>(std::atoi(argv[3])) : 64;
  const unsigned groups = argc > 4 ? static_cast<unsigned>(std::atoi(argv[4])) : 1;
  std::vector<float> x(64, 1.0f), y(64, 0.0f), c(16, 2.0f);
  const auto bind = [&](int index, std::vector<float>& v) {
    d.args.buffer[index] = v.data();
    d.args.buffer_bytes[index] = v.size() * sizeof(float);
  };
  bind(0, x);
  bind(1, y);
  bind(2, c);
  d.args.group_bytes[0] = 64 * sizeof(float);
  d.group = {threads, 1, 1};
  d.grid = {threads * groups, 1, 1};
  if (!swm::run(d, swm::options_from_environment(), error)) {
    std::fprintf(stderr, "%s\n", error.c_str());
    return 3;
  }
  for (const float f : y) std::printf("%g ", static_cast<double>(f));
  std::printf("\n");
  return 0;
}
