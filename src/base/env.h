// The one unit that reads environment variables, and the list of those that Tern knows.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tern {

struct EnvironmentVariable {
  std::string_view name;  // a name that ends in '*' is a prefix
  std::string_view meaning;
};

// Listed for people in docs/environment.md.
inline constexpr std::array kEnvironmentVariables = {
    EnvironmentVariable{
        "TERN_ARG_*",
        "the twin of a flag: TERN_ARG_CTX_SIZE stands for --ctx-size; the command line wins"},
    EnvironmentVariable{"LLAMA_ARG_*",
                        "llama.cpp's twin of a flag of the same meaning; TERN_ARG_ wins over it"},
    EnvironmentVariable{"TERN_CACHE_DIR", "folder for what is fetched once, as the model of demo"},
    EnvironmentVariable{"XDG_CACHE_HOME", "the user's cache folder, where TERN_CACHE_DIR is unset"},
    EnvironmentVariable{"HOME", "the user's home, where the folders above are unset"},
    EnvironmentVariable{"PATH", "where nvcc and its host compiler are looked for"},
    EnvironmentVariable{"CUDA_HOME", "a CUDA toolkit; its NVRTC is tried first"},
    EnvironmentVariable{"TERN_NVCC", "the path of nvcc; wins over PATH"},
    EnvironmentVariable{
        "TERN_KERNEL_TIERS",
        "where GPU code comes from, in order: embedded,disk,offline,runtime,driver"},
    EnvironmentVariable{"TERN_KERNEL_CACHE", "GPU code on disk: on, ro (only read) or off"},
    EnvironmentVariable{"TERN_KERNEL_SELFTEST",
                        "known-answer tests of GPU kernels: once, always or off"},
    EnvironmentVariable{"TERN_KERNEL_VERIFY",
                        "1: GPU code that is found is also rebuilt, and both must behave alike"},
    EnvironmentVariable{"NO_COLOR", "set and not empty: no colours on a terminal"},
    EnvironmentVariable{"TERM", "'dumb': no colours and no cursor movement on a terminal"},
};

// The value of a variable of the list (asserted), or nothing when it is unset. An empty value is a
// value.
[[nodiscard]] std::optional<std::string> environment_variable(const std::string& name);

struct EnvironmentSetting {
  std::string name;
  std::string value;
};
// All set variables whose names start with the prefix (such as "TERN_ARG_"), sorted by name: so
// that one that no flag answers to can be refused.
[[nodiscard]] std::vector<EnvironmentSetting> environment_with_prefix(std::string_view prefix);

}  // namespace tern
