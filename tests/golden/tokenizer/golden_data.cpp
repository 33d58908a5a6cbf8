#include "golden_data.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>

#include "base/file_map.h"
#include "io/gguf.h"
#include "io/gguf_tokenizer.h"
#include "io/tokenizer_json.h"

namespace tern::text {
namespace {

constexpr const char* kHere = TERN_SOURCE_DIR "/tests/golden/tokenizer/";
constexpr const char* kUnpacked = TERN_UNPACKED_DIR "/";

}  // namespace

std::string golden_text(const std::string& file) {
  const std::string here = kHere + file;
  std::ifstream in(std::filesystem::exists(here) ? here : kUnpacked + file, std::ios::binary);
  if (!in) throw std::runtime_error("cannot read " + file);
  return {std::istreambuf_iterator<char>(in), {}};
}

TokenizerData golden_tokenizer_data(const std::string& name) {
  if (name == "qwen3") {
    const std::string tokenizer = golden_text("qwen3_tokenizer.json");
    const std::string config = golden_text("qwen3_tokenizer_config.json");
    return io::parse_tokenizer_json({.tokenizer = tokenizer,
                                     .config = config,
                                     .generation_config = std::nullopt,
                                     .chat_template = std::nullopt})
        .value();
  }
  const std::string path = kUnpacked + ("ggml-vocab-" + name + ".gguf");
  const auto map = std::make_shared<const FileMap>(FileMap::open(path).value());
  const io::GgufFile file = io::GgufFile::open(map).value();
  return io::read_gguf_tokenizer(file).value();
}

Tokenizer golden_tokenizer(const std::string& name) {
  return Tokenizer::create(golden_tokenizer_data(name)).value();
}

std::vector<nlohmann::json> golden_lines(const std::string& file) {
  const std::string text = golden_text(file);
  std::vector<nlohmann::json> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    if (end > at) lines.push_back(nlohmann::json::parse(text.substr(at, end - at)));
    at = end + 1;
  }
  return lines;
}

}  // namespace tern::text
