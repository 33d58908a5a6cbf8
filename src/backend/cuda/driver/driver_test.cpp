// Loading and checking a driver: absence, age, missing libraries, and what the messages say.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "backend/cuda/driver/cublaslt_api.h"
#include "backend/cuda/fake/fake_driver_test.h"

namespace tern::cuda {
namespace {

TEST(CudaDriver, AMachineWithoutADriverIsToldInOneSentence) {
  const Result<DriverApi> api = load_driver_api();
  if (api.ok()) GTEST_SKIP() << "this machine has a driver";
  EXPECT_EQ(api.error().code(), ErrorCode::kDevice);
  EXPECT_NE(api.error().message().find("there is no NVIDIA driver"), std::string::npos);
}

TEST(CudaDriver, TooOldADriverNamesWhatWasFoundAndWhatIsNeeded) {
  FakeDriver fake;
  fake.version = 11080;
  const Result<void> result = start_driver(*fake.api());
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code(), ErrorCode::kDevice);
  EXPECT_NE(result.error().message().find("supports CUDA 11.8"), std::string::npos);
  EXPECT_NE(result.error().message().find("needs 12.0"), std::string::npos);
  EXPECT_EQ(fake.calls("cuInit"), 0) << "an old driver is not started";
}

TEST(CudaDriver, ADriverWithoutADeviceSaysSo) {
  FakeDriver fake;
  fake.init_status = kNoDevice;
  const Result<void> result = start_driver(*fake.api());
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.error().message().find("shows no device"), std::string::npos);
}

TEST(CudaDriver, AnErrorCarriesCallNameAndSentence) {
  FakeDriver fake;
  const Result<void> result = check(*fake.api(), 719, "cuGraphLaunch");
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().message(),
            "[cuda] cuGraphLaunch failed with FAKE_ERROR (719): the fake was told to fail");
  EXPECT_EQ(check(*fake.api(), kOutOfMemoryStatus, "x").error().code(), ErrorCode::kOutOfMemory);
}

TEST(LibrarySearch, RelativeFoldersAreNeverSearched) {
  const LibrarySearch search = library_search("cuda", ".:bin::/usr/bin:");
  EXPECT_EQ(search.cuda_home, "");
  ASSERT_EQ(search.program_path.size(), 1U);
  EXPECT_EQ(search.program_path[0], "/usr/bin");
}

TEST(LibrarySearch, CudaHomeThenTheLoaderThenPythonPackages) {
  const std::filesystem::path root =
      std::filesystem::temp_directory_path() / ("tern-libraries-" + std::to_string(::getpid()));
  const auto package = root / "lib/python3.12/site-packages/nvidia/cu13/lib";
  std::filesystem::create_directories(package);
  std::filesystem::create_directories(root / "bin");
  std::ofstream(root / "bin/python3") << "x";
  std::ofstream(package / "libcublasLt.so.13") << "no library";
  const LibrarySearch search = library_search("/opt/cuda", (root / "bin").string());
  const auto found = library_candidates(search, "cublasLt", {13, 12});
  const std::vector<std::string> expected = {"/opt/cuda/lib64/libcublasLt.so.13",
                                             "/opt/cuda/lib/libcublasLt.so.13",
                                             "libcublasLt.so.13",
                                             "/opt/cuda/lib64/libcublasLt.so.12",
                                             "/opt/cuda/lib/libcublasLt.so.12",
                                             "libcublasLt.so.12",
                                             (package / "libcublasLt.so.13").string()};
  EXPECT_EQ(found, expected);
  // A file that is no library is passed over, and the sentence says where was looked.
  const Result<Library> none = load_library({(package / "libcublasLt.so.13").string()}, "cublasLt");
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().code(), ErrorCode::kNotFound);
  EXPECT_NE(none.error().message().find("CUDA_HOME"), std::string::npos);
  std::filesystem::remove_all(root);
}

}  // namespace
}  // namespace tern::cuda
