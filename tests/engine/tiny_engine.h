// Helpers for tests that load tiny models through the public interface.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "tern/engine.h"
#include "tests/fixtures/tiny_model.h"

namespace tern::testing_tiny {

// A folder that goes when the test does.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    path_ = std::filesystem::temp_directory_path() /
            (std::string("tern-") + info->test_suite_name() + "-" + info->name() + "-" +
             std::to_string(::getpid()));
    std::filesystem::create_directories(path_);
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  // Writes the model and gives its path.
  [[nodiscard]] std::string write(const fixtures::TinyModel& model,
                                  const std::string& name = "tm.gguf") const {
    const std::filesystem::path file = path_ / name;
    model.write(file).value();
    return file.string();
  }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

inline Engine two_threads() { return Engine::create({.threads = 2}).value(); }

}  // namespace tern::testing_tiny
