// The named tensors of a model file, whatever its container. Nothing of models is known here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/file_map.h"
#include "io/gguf.h"
#include "io/safetensors.h"
#include "quant/format.h"

namespace tern::io {

// Views into the file.
struct WeightTensor {
  std::string_view name;
  quant::Format format = quant::Format::kF32;
  std::string_view type_name;        // for people: "Q2_0 (128, older)"
  std::vector<std::int64_t> shape;   // row-major, outermost first: [outputs, inputs]
  std::span<const std::byte> bytes;  // may be unaligned
  std::uint64_t file_offset = 0;     // for FileMap::drop_pages

  [[nodiscard]] std::int64_t elements() const;
};

// Move-only through its parts; keeps the file mapped. Any thread may read.
class WeightFile {
 public:
  // Decides by content, not by name (F01 where it is neither container). The message carries no
  // path. Parts of split models are refused.
  [[nodiscard]] static Result<WeightFile> open(std::shared_ptr<const FileMap> file,
                                               const GgufOptions& options = {});
  // Opens and maps the file; here messages start with "<path>: ".
  [[nodiscard]] static Result<WeightFile> open(const std::filesystem::path& path,
                                               const GgufOptions& options = {},
                                               FileMap::Mode mode = FileMap::Mode::kAuto);

  // In file order. Safetensors of other types than F32, F16 and BF16 are left out: safetensors()
  // has them.
  [[nodiscard]] std::span<const WeightTensor> tensors() const { return tensors_; }
  // nullptr when there is none.
  [[nodiscard]] const WeightTensor* find(std::string_view name) const;
  [[nodiscard]] std::span<const std::string> notes() const;

  // The container; the other one is nullptr.
  [[nodiscard]] const GgufFile* gguf() const { return gguf_.get(); }
  [[nodiscard]] const SafetensorsFile* safetensors() const { return safetensors_.get(); }
  [[nodiscard]] const FileMap& file() const { return *file_; }

 private:
  WeightFile() = default;
  void add(WeightTensor tensor);

  std::shared_ptr<const FileMap> file_;
  std::shared_ptr<const GgufFile> gguf_;
  std::shared_ptr<const SafetensorsFile> safetensors_;
  std::vector<WeightTensor> tensors_;
  std::map<std::string_view, std::size_t> index_;
};

}  // namespace tern::io
