// The profiles that ship, and what a file may say.
#include "backend/gpu/profiles/profiles.h"

#include <gtest/gtest.h>

#include <fstream>

namespace tern::gpu {
namespace {

TEST(Profiles, EveryOneThatShipsIsWhole) {
  EXPECT_EQ(profile_names(), (std::vector<std::string_view>{"h200", "m4-pro", "rtx4090"}));
  for (const std::string_view name : profile_names()) {
    const auto profile = load_profile(name);
    ASSERT_TRUE(profile.ok()) << profile.error().message();
    EXPECT_EQ(profile->name, name);
    EXPECT_GT(profile->memory_bytes, std::uint64_t{1} << 33);
    EXPECT_GT(profile->read_gbps, 200);
    EXPECT_GT(profile->fused_multiply_adds, 1e12);
    EXPECT_GT(profile->cores, 8);
  }
  EXPECT_EQ(load_profile("h200")->architecture, "sm_90");
  EXPECT_EQ(load_profile("m4-pro")->kind, backend::DeviceKind::kMetal);
}

TEST(Profiles, AFileIsReadAndAnUnknownNameListsWhatThereIs) {
  const auto path = std::filesystem::temp_directory_path() /
                    ("tern-profile-" + std::to_string(::getpid()) + ".profile");
  std::ofstream(path)
      << "name = mine # a comment\n\nkind = cuda\narchitecture = sm_80\ncores = 108\n";
  const auto profile = load_profile(path.string()).value();
  EXPECT_EQ(profile.name, "mine");
  EXPECT_EQ(profile.cores, 108);
  EXPECT_EQ(profile.memory_bytes, 0U) << "unknown";
  std::filesystem::remove(path);
  const auto none = load_profile(path.string());
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().code(), ErrorCode::kNotFound);
  EXPECT_NE(none.error().message().find("h200, m4-pro, rtx4090"), std::string::npos);
}

TEST(Profiles, AMistakeIsNamedWithItsLine) {
  const auto message = [](std::string_view text) {
    const auto result = parse_profile(text, "p");
    return result.ok() ? std::string("no error") : result.error().message();
  };
  const std::string head = "name = x\nkind = cuda\narchitecture = sm_90\n";
  EXPECT_EQ(message(head), "no error");
  EXPECT_NE(message(head + "speed = 3").find("line 4 has the key 'speed'"), std::string::npos);
  EXPECT_NE(message(head + "cores = 1.5").find("line 4 sets 'cores' to '1.5'"), std::string::npos);
  EXPECT_NE(message(head + "cores = -1").find("'-1'"), std::string::npos);
  EXPECT_NE(message(head + "cores = 99999999999").find("no value"), std::string::npos);
  EXPECT_NE(message(head + "read_gbps = nan").find("'nan'"), std::string::npos);
  EXPECT_NE(message(head + "memory_gib = 1e30").find("no value"), std::string::npos);
  EXPECT_NE(message(head + "name = y").find("second time"), std::string::npos);
  EXPECT_NE(message("kind = cuda\n").find("'name = ...'"), std::string::npos);
  EXPECT_NE(message("kind = gpu\n").find("'gpu'"), std::string::npos);
  EXPECT_NE(message("just words").find("line 1"), std::string::npos);
}

}  // namespace
}  // namespace tern::gpu
