// The host program of the worked example: plain C++ in front, Metal behind.
#pragma once

#include <string>
#include <vector>

namespace example {

struct Result {
  std::vector<float> y;
  float sum = 0;
  std::string error;  // empty: all went well
};

// y = a * x + y on the GPU, and the sum of the new y. `library` is the path of the metallib.
Result saxpy(const std::string& library, float a, const std::vector<float>& x,
             const std::vector<float>& y);

}  // namespace example
