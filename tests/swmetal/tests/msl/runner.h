// Runs kernels of the test module straight on the executor, without the fake Metal in between.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "../../rt/executor.h"

namespace swmetal_test {

class Runner : public testing::Test {
 protected:
  void SetUp() override {
    std::string error;
    dispatch.module = swm::Module::load(MSL_MODULE, error);
    ASSERT_TRUE(dispatch.module) << error;
  }
  template <class T>
  void bind(int index, std::vector<T>& values) {
    dispatch.args.buffer[index] = values.data();
    dispatch.args.buffer_bytes[index] = values.size() * sizeof(T);
  }
  // Empty when all went well.
  std::string run(const std::string& kernel, swm_dim grid, swm_dim group) {
    dispatch.kernel = dispatch.module->find(kernel);
    if (!dispatch.kernel) return "there is no kernel " + kernel;
    dispatch.grid = grid;
    dispatch.group = group;
    std::string error;
    swm::run(dispatch, options, error, &counts);
    return error;
  }

  swm::Dispatch dispatch;
  swm::Options options = swm::options_from_environment();
  swm::Counts counts;
};

}  // namespace swmetal_test
