// From flags to the options of the library, and the lines that say what was set up.
#pragma once

#include <string>
#include <vector>

#include "cli/commands.h"
#include "tern/engine.h"

namespace tern::cli {

// Errors of these: kUsage (kDevice for a device that is not there), beginning with the flag.
[[nodiscard]] EngineOptions engine_options(const Arguments& arguments);
[[nodiscard]] ModelOptions model_options(const Arguments& arguments);
// The model's own defaults, with what the user said on top. A seed of -1 becomes a random one.
[[nodiscard]] SamplingOptions sampling_options(const Arguments& arguments, SamplingOptions base);

// The device (flags --device and --flash-attn), for commands with lists of their own.
void check_device(const Arguments& arguments);
[[nodiscard]] LoadMode load_mode(const Arguments& arguments);
[[nodiscard]] CacheType cache_type(std::string_view spelling, std::string_view name);

// Model, format, device, kernels, context and memory, on stderr; and all warnings.
void print_start(const Context& context, const Engine& engine, const Model& model);
void print_warnings(const std::vector<std::string>& warnings);
// --verbose: every setting and where it came from.
void print_settings(const Context& context);
// The last part of a path.
[[nodiscard]] std::string base_name(const std::string& path);
// "qwen3 8B Q1_0".
[[nodiscard]] std::string model_type(const ModelInfo& info);

}  // namespace tern::cli
