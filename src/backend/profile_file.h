// Device profiles as text, so that a plan can be made for a machine that nobody has here.
//
//   name = h200            # of the profile
//   kind = cuda            # cpu, cuda, metal
//   architecture = sm_90
//   maker_name = NVIDIA H200
//   memory_gib = 139
//   cores = 132            # multiprocessors; CPU: threads
//   isa = avx2             # CPU only: avx512, avx2, portable
//   launch_us = 0.546      # one launch
//   read_gbps = 4560       # the rates stand together or not at all
//   f32_tflops = 67
//   f16_tflops = 788
//   bf16_tflops = 788
//   integer_tops = 1224
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "backend/profile.h"
#include "base/error.h"

namespace tern::backend {

// "cpu", "cuda", "metal": also the name of the backend.
[[nodiscard]] std::string_view to_string(DeviceKind kind);

// Errors: kInvalidFile naming the line and what was expected.
[[nodiscard]] Result<DeviceProfile> parse_profile(std::string_view text);

// Names of the profiles that this build brings along.
[[nodiscard]] std::vector<std::string_view> shipped_profiles();

// A shipped profile by its name, else a file. Errors: kNotFound naming those that ship; those of
// parse_profile with the path in front.
[[nodiscard]] Result<DeviceProfile> find_profile(const std::string& name_or_path);

}  // namespace tern::backend
