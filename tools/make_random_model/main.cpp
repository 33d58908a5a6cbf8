// make_random_model: a model file with the shape of a real model and random weights, to measure
// speed with.
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "base/file_map.h"
#include "random_model.h"

namespace {

using namespace tern;
using namespace tern::tools;

constexpr const char* kUsage =
    "usage: make_random_model --shape SHAPE --type TYPE -o OUT.gguf [--seed N] [--vocab FILE.gguf] "
    "[--yarn] [--force]\n"
    "\n"
    "Writes a GGUF file with random weights of the given type; norms are ones in F32. The same "
    "seed gives the same file.\n"
    "--vocab copies the tokenizer of another GGUF file; without it the vocabulary is made up.\n";

void print_help() {
  std::fputs(kUsage, stdout);
  std::fputs("\nSHAPE:", stdout);
  for (const Shape& shape : kShapes) std::fprintf(stdout, " %s", std::string(shape.name).c_str());
  std::fputs("\nTYPE:", stdout);
  for (const quant::FormatInfo& f : quant::kFormats) {
    std::fprintf(stdout, " %s", std::string(f.file_name).c_str());
  }
  std::fputs("\n", stdout);
}

struct Arguments {
  std::string shape;
  std::string type;
  std::string output;
  std::string vocabulary;
  std::uint64_t seed = 1;
  bool has_yarn = false;
  bool has_force = false;
  bool wants_help = false;
};

Result<Arguments> parse(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    if (flag == "--yarn") {
      arguments.has_yarn = true;
    } else if (flag == "--force") {
      arguments.has_force = true;
    } else if (flag == "-h" || flag == "--help") {
      arguments.wants_help = true;
      return arguments;
    } else if (flag != "--shape" && flag != "--type" && flag != "-o" && flag != "--vocab" &&
               flag != "--seed") {
      return fail(ErrorCode::kUsage, "'{}' is not a flag of this program", flag);
    } else if (i + 1 == argc) {
      return fail(ErrorCode::kUsage, "{} needs a value", flag);
    } else {
      const std::string value = argv[++i];
      if (flag == "--shape") arguments.shape = value;
      if (flag == "--type") arguments.type = value;
      if (flag == "-o") arguments.output = value;
      if (flag == "--vocab") arguments.vocabulary = value;
      if (flag == "--seed") {
        if (value.empty() || value.size() > 9 ||
            value.find_first_not_of("0123456789") != std::string::npos) {
          return fail(ErrorCode::kUsage, "--seed is '{}', expected a number from 0 to 999999999",
                      value);
        }
        arguments.seed = std::stoull(value);
      }
    }
  }
  for (const auto& [flag, value] :
       {std::pair("--shape", &arguments.shape), std::pair("--type", &arguments.type),
        std::pair("-o", &arguments.output)}) {
    if (value->empty()) return fail(ErrorCode::kUsage, "{} is missing", flag);
  }
  return arguments;
}

Result<void> run(const Arguments& arguments) {
  RandomModel model;
  model.shape = find_shape(arguments.shape);
  if (model.shape == nullptr) {
    return fail(ErrorCode::kUsage, "--shape is '{}', see --help for the known ones",
                arguments.shape);
  }
  const auto format = find_format(arguments.type);
  if (!format) {
    return fail(ErrorCode::kUsage, "--type is '{}', see --help for the known ones", arguments.type);
  }
  model.format = *format;
  model.seed = arguments.seed;
  model.has_yarn = arguments.has_yarn;
  std::unique_ptr<io::GgufFile> vocabulary;
  if (!arguments.vocabulary.empty()) {
    auto map = FileMap::open(arguments.vocabulary);
    if (!map.ok()) return map.error();
    auto file = io::GgufFile::open(std::make_shared<const FileMap>(std::move(*map)));
    if (!file.ok()) {
      return fail(file.error().code(), "{}: {}", arguments.vocabulary, file.error().message());
    }
    vocabulary = std::make_unique<io::GgufFile>(std::move(*file));
    model.vocabulary = vocabulary.get();
  }
  const auto start = std::chrono::steady_clock::now();
  const auto writer = make_random_model(model);
  if (!writer.ok()) return writer.error();
  TERN_TRY(writer->write(arguments.output, arguments.has_force));
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  std::printf("%s: %s, %s, %llu bytes in %.1f s\n", arguments.output.c_str(),
              arguments.shape.c_str(), std::string(quant::info(*format).file_name).c_str(),
              static_cast<unsigned long long>(writer->file_bytes()), seconds.count());
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const auto arguments = parse(argc, argv);
    if (arguments.ok() && arguments->wants_help) {
      print_help();
      return 0;
    }
    const auto done = arguments.ok() ? run(*arguments) : Result<void>(arguments.error());
    if (done.ok()) return 0;
    std::fprintf(stderr, "error: %s\n", done.error().message().c_str());
    if (done.error().code() != ErrorCode::kUsage) return 1;
    std::fputs(kUsage, stderr);
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
