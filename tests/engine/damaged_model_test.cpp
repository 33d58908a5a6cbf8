// Damaged keys and tensors of a model (rows RK of the robustness rules): each is refused with its
// own sentence. tests/cli/damaged_files.py asks the program the same.
#include <limits>

#include "tests/engine/tiny_engine.h"
#include "tests/fixtures/damaged_models.h"

namespace tern {
namespace {

using fixtures::make_tiny_model;
using fixtures::TinyArchitecture;
using fixtures::TinyModel;
using testing_tiny::TemporaryFolder;

constexpr std::uint32_t kMax = std::numeric_limits<std::uint32_t>::max();

TEST(DamagedModel, EachIsRefusedByItsOwnSentence) {
  const Engine engine = testing_tiny::two_threads();
  for (const fixtures::DamagedModel& row : fixtures::damaged_models()) {
    const TemporaryFolder folder;
    const std::string path = folder.write(fixtures::make_damaged(row));
    const auto opened = engine.open(path, {}, {}, {});
    if (opened.ok()) {
      ADD_FAILURE() << row.name << " was loaded";
      continue;
    }
    const std::string message = opened.error().message();
    EXPECT_EQ(message.find(path), 0U) << row.name << ": " << message;
    for (const std::string& word : row.words)
      EXPECT_NE(message.find(word), std::string::npos) << row.name << ": " << message;
  }
}

TEST(DamagedModel, AHugeContextIsOnlyALimit) {
  const TemporaryFolder folder;
  TinyModel m = make_tiny_model(TinyArchitecture::kQwen3);
  m.set_u32(m.key("context_length"), kMax);
  const std::string path = folder.write(m);
  const Engine engine = testing_tiny::two_threads();
  const auto opened = engine.open(path, {}, {}, {});
  ASSERT_TRUE(opened.ok()) << opened.error().message();
  EXPECT_LT(opened->context_size(), std::int64_t{kMax});
}

TEST(DamagedModel, AContextThatCannotFitIsRefusedWithNumbersAndAWayOut) {
  const TemporaryFolder folder;
  TinyModel m = make_tiny_model(TinyArchitecture::kQwen3);
  m.set_u32(m.key("context_length"), kMax);
  const std::string path = folder.write(m);
  const Engine engine = testing_tiny::two_threads();
  const auto opened = engine.open(path, {.context = (std::int64_t{1} << 31) - 1}, {}, {});
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code(), ErrorCode::kOutOfMemory);
  EXPECT_NE(opened.error().message().find("--ctx-size"), std::string::npos)
      << opened.error().message();
}

TEST(DamagedModel, ATrailingNoteDoesNotStopTheModel) {
  const TemporaryFolder folder;
  const std::string path = folder.write(make_tiny_model(TinyArchitecture::kQwen3));
  std::filesystem::resize_file(path, std::filesystem::file_size(path) + 4096);
  const Engine engine = testing_tiny::two_threads();
  const auto opened = engine.open(path, {}, {}, {});
  ASSERT_TRUE(opened.ok()) << opened.error().message();
  EXPECT_FALSE(opened->info().warnings.empty());
}

}  // namespace
}  // namespace tern
