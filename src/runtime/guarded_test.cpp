// Tests of the edge of the public interface.
#include "runtime/guarded.h"

#include <gtest/gtest.h>

#include <string>

namespace tern::runtime {
namespace {

TEST(Guarded, PassesOnWhatTheFunctionGives) {
  EXPECT_EQ(guarded("x", "to add", []() -> Result<int> { return 3; }).value(), 3);
  const auto refused = guarded(
      "x", "to add", []() -> Result<int> { return Error(ErrorCode::kInvalidFile, "cut short"); });
  EXPECT_EQ(refused.error().code(), ErrorCode::kInvalidFile);
  EXPECT_TRUE(guarded("x", "to add", []() -> Result<void> { return {}; }).ok());
}

TEST(Guarded, TurnsAThrownErrorIntoTheResult) {
  const auto thrown = guarded("x", "to add", []() -> Result<std::string> {
    throw Error(ErrorCode::kDevice, "the device was lost");
  });
  EXPECT_EQ(thrown.error().code(), ErrorCode::kDevice);
  EXPECT_EQ(thrown.error().message(), "the device was lost");
}

TEST(Guarded, NamesWhatThereWasNoMemoryFor) {
  const auto full =
      guarded("m.gguf", "to load the model", []() -> Result<int> { throw std::bad_alloc(); });
  EXPECT_EQ(full.error().code(), ErrorCode::kOutOfMemory);
  EXPECT_EQ(full.error().message(), "m.gguf: no memory is left to load the model");
}

TEST(Guarded, LeavesTheExceptionsOfCallbacksToTheCaller) {
  EXPECT_THROW((void)guarded("x", "to add", []() -> Result<int> { throw 7; }), int);
}

}  // namespace
}  // namespace tern::runtime
