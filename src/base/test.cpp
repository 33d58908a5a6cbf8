// The small units of the base layer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>
#include <set>
#include <vector>

#include "base/aligned_buffer.h"
#include "base/cancellation.h"
#include "base/checked.h"
#include "base/cpu_features.h"
#include "base/env.h"
#include "base/hash.h"
#include "base/limits.h"
#include "base/progress.h"
#include "tern/limits.h"

namespace tern {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::uint64_t kMax64 = std::numeric_limits<std::uint64_t>::max();

TEST(Checked, SumsAndProductsThatDoNotFitAreNothing) {
  EXPECT_EQ(checked_add(kMax64 - 1, 1), kMax64);
  EXPECT_FALSE(checked_add(kMax64, 1));
  EXPECT_EQ(checked_mul(std::uint64_t{1} << 32, (std::uint64_t{1} << 32) - 1), 0xffffffff00000000u);
  EXPECT_FALSE(checked_mul(std::uint64_t{1} << 32, std::uint64_t{1} << 32));
  EXPECT_EQ(checked_mul(0, kMax64), 0u);
  EXPECT_EQ(checked_align(33, 32), 64u);
  EXPECT_EQ(checked_align(64, 32), 64u);
  EXPECT_FALSE(checked_align(kMax64 - 16, 32));
}

TEST(Checked, CastsKeepTheValueOrAreNothing) {
  EXPECT_EQ(checked_cast<std::int32_t>(std::uint64_t{0x7fffffff}), 0x7fffffff);
  EXPECT_FALSE(checked_cast<std::int32_t>(std::uint64_t{0x80000000}));
  EXPECT_FALSE(checked_cast<std::uint32_t>(-1));
  EXPECT_FALSE(checked_cast<std::int64_t>(kMax64));
  EXPECT_FALSE(checked_cast<std::uint8_t>(256));
  EXPECT_EQ(checked_cast<std::int8_t>(-128), std::int8_t{-128});
}

TEST(CpuFeatures, SetsBehaveAsSets) {
  const CpuFeatures have = {CpuFeature::kAvx2, CpuFeature::kFma};
  EXPECT_TRUE(have.contains({CpuFeature::kAvx2}));
  EXPECT_TRUE(have.contains({}));
  EXPECT_FALSE(have.contains({CpuFeature::kAvx2, CpuFeature::kF16c}));
  EXPECT_TRUE(have.with({CpuFeature::kF16c}).contains({CpuFeature::kAvx2, CpuFeature::kF16c}));
  EXPECT_EQ(have.without({CpuFeature::kAvx2}), CpuFeatures({CpuFeature::kFma}));
  EXPECT_EQ(to_string(have), "AVX2 FMA");
  EXPECT_EQ(to_string(CpuFeatures{}), "");
}

#if defined(__x86_64__)
TEST(CpuFeatures, AgreeWithTheCompilersOwnProbe) {
  const CpuFeatures have = cpu_features();
  EXPECT_EQ(have.contains({CpuFeature::kAvx2}), __builtin_cpu_supports("avx2") != 0);
  EXPECT_EQ(have.contains({CpuFeature::kFma}), __builtin_cpu_supports("fma") != 0);
  EXPECT_EQ(have.contains({CpuFeature::kAvx512f}), __builtin_cpu_supports("avx512f") != 0);
  EXPECT_EQ(have.contains({CpuFeature::kAvx512bw}), __builtin_cpu_supports("avx512bw") != 0);
  EXPECT_EQ(have.contains({CpuFeature::kAvx512dq}), __builtin_cpu_supports("avx512dq") != 0);
  EXPECT_EQ(have.contains({CpuFeature::kAvx512vl}), __builtin_cpu_supports("avx512vl") != 0);
  EXPECT_EQ(have.contains({CpuFeature::kAvx512vnni}), __builtin_cpu_supports("avx512vnni") != 0);
  EXPECT_EQ(have.contains({CpuFeature::kAvx512vbmi}), __builtin_cpu_supports("avx512vbmi") != 0);
  EXPECT_FALSE(have.contains({CpuFeature::kNeon}));
}
#endif

TEST(AlignedBuffer, IsZeroedAlignedAndOwned) {
  for (const std::uint64_t bytes : {1u, 63u, 64u, 4097u, 1u << 20, (3u << 20) + 5u}) {
    for (const std::size_t alignment : {1u, 64u, 4096u, 65536u}) {
      AlignedBuffer buffer = AlignedBuffer::allocate(bytes, {.alignment = alignment}).value();
      ASSERT_EQ(buffer.size(), bytes);
      ASSERT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % alignment, 0u);
      for (const std::byte b : buffer.bytes()) ASSERT_EQ(b, std::byte{0});
      std::memset(buffer.data(), 0xff, buffer.size());
      AlignedBuffer other = std::move(buffer);
      EXPECT_EQ(buffer.size(),
                0u);  // NOLINT(bugprone-use-after-move): a moved-from buffer is empty
      EXPECT_EQ(other.bytes().back(), std::byte{0xff});
      other = AlignedBuffer();
      EXPECT_TRUE(other.empty());
    }
  }
}

TEST(AlignedBuffer, HugePagesAreAlignedToTheirSize) {
  const AlignedBuffer buffer = AlignedBuffer::allocate(5'000'000, {.huge_pages = true}).value();
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % (2u << 20), 0u);
  EXPECT_EQ(buffer.as<float>().size(), 1'250'000u);
  EXPECT_EQ(buffer.as<float>().back(), 0.0F);
}

TEST(AlignedBuffer, NamesTheNeedWhenMemoryIsShort) {
  for (const std::uint64_t bytes : {std::uint64_t{1} << 60, kMax64}) {
    const auto result = AlignedBuffer::allocate(bytes, {.what = "the KV cache"});
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().code(), ErrorCode::kOutOfMemory);
    EXPECT_THAT(result.error().message(),
                HasSubstr("the KV cache needs " + std::to_string(bytes) + " bytes ("));
  }
  EXPECT_THAT(AlignedBuffer::allocate(std::uint64_t{1} << 60).error().message(),
              HasSubstr("(1099511627776 MiB)"));
  EXPECT_TRUE(AlignedBuffer::allocate(0).value().empty());
}

TEST(Hash, KnownDigests) {
  // FIPS 180-4, examples.
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  Sha256 hash;
  for (int i = 0; i < 1000; ++i) hash.update(std::string(1000, 'a'));
  EXPECT_EQ(hash.finish_hex(), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  hash.update("abc");  // afresh
  EXPECT_EQ(hash.finish_hex(), sha256_hex("abc"));
}

TEST(Hash, HashesAFileInPieces) {
  const std::string path = testing::TempDir() + "tern_hash_test";
  std::ofstream(path, std::ios::binary) << std::string(3'000'000, 'x') << "end";
  EXPECT_EQ(sha256_hex_of_file(path).value(), sha256_hex(std::string(3'000'000, 'x') + "end"));
  std::remove(path.c_str());
  const auto missing = sha256_hex_of_file(path);
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code(), ErrorCode::kNotFound);
}

TEST(Environment, ReadsKnownVariables) {
  ::setenv("TERN_ARG_TEST_B", "2", 1);
  ::setenv("TERN_ARG_TEST_A", "x=y", 1);
  ::setenv("TERN_CACHE_DIR", "", 1);
  EXPECT_EQ(environment_variable("TERN_ARG_TEST_A"), "x=y");
  EXPECT_EQ(environment_variable("TERN_CACHE_DIR"), "");
  EXPECT_FALSE(environment_variable("TERN_ARG_TEST_C"));
  const auto all = environment_with_prefix("TERN_ARG_TEST_");
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].name, "TERN_ARG_TEST_A");
  EXPECT_EQ(all[0].value, "x=y");
  EXPECT_EQ(all[1].name, "TERN_ARG_TEST_B");
  ::unsetenv("TERN_ARG_TEST_A");
  ::unsetenv("TERN_ARG_TEST_B");
  ::unsetenv("TERN_CACHE_DIR");
}

TEST(Environment, EveryVariableHasAMeaningAndIsListedOnce) {
  std::set<std::string_view> names;
  for (const EnvironmentVariable& v : kEnvironmentVariables) {
    EXPECT_FALSE(v.meaning.empty()) << v.name;
    EXPECT_TRUE(names.insert(v.name).second) << v.name;
  }
}

TEST(Progress, ComesAtMostTenTimesASecond) {
  ProgressMeter::Clock::time_point now{};
  std::vector<std::uint64_t> seen;
  int finished = 0;
  ProgressMeter meter(
      [&](const Progress& p) {
        EXPECT_EQ(p.what, "loading");
        EXPECT_EQ(p.unit, "bytes");
        EXPECT_EQ(p.total, 1000u);
        seen.push_back(p.done);
        finished += p.finished ? 1 : 0;
      },
      "loading", "bytes", 1000, [&] { return now; });
  for (int i = 0; i < 1000; ++i) {  // one second
    meter.add(1);
    now += std::chrono::milliseconds(1);
  }
  EXPECT_THAT(seen, ElementsAre(1, 101, 201, 301, 401, 501, 601, 701, 801, 901));
  EXPECT_EQ(finished, 0);
  meter.finish();
  meter.finish();
  meter.update(5);
  EXPECT_EQ(seen.size(), 11u);
  EXPECT_EQ(seen.back(), 1000u);
  EXPECT_EQ(finished, 1);
}

TEST(Progress, WhatTheCallbackThrowsReachesTheCaller) {
  ProgressMeter meter([](const Progress&) { throw std::runtime_error("stop"); }, "x", "", 0);
  EXPECT_THROW(meter.update(1), std::runtime_error);
  ProgressMeter silent({}, "x", "", 0);
  silent.update(1);
  silent.finish();
}

TEST(Cancellation, CopiesShareTheRequest) {
  const CancelToken token = CancelToken::make();
  const CancelToken copy = token;  // NOLINT(performance-unnecessary-copy-initialization)
  EXPECT_FALSE(copy.requested());
  token.flag()->store(true);  // as a signal handler does
  EXPECT_TRUE(copy.requested());
  EXPECT_FALSE(CancelToken().requested());
}

TEST(Limits, AreThoseOfTheTable) {
  EXPECT_EQ(limits::kGgufKeyBytes, 65535u);
  EXPECT_EQ(limits::kTensorElements, 9223372036854775807u);
  EXPECT_EQ(limits::kJsonStringBytes, 67108864u);
  std::set<std::string_view> names;
  for (const Limit& row : limit_table()) {
    EXPECT_GT(row.most, 0u) << row.what;
    EXPECT_TRUE(names.insert(row.what).second) << row.what;
  }
}

}  // namespace
}  // namespace tern
