// A loaded model: everything that its sessions share.
#pragma once

#include <memory>
#include <string>

#include "backend/backend.h"
#include "base/file_map.h"
#include "io/gguf.h"
#include "models/text_model.h"
#include "runtime/executables.h"
#include "runtime/page_pool.h"
#include "tern/engine.h"

namespace tern {

struct Engine::Impl {
  EngineOptions options;
  std::unique_ptr<backend::Backend> backend;
  backend::DeviceProfile profile;
  std::unique_ptr<backend::Device> device;
  std::string processor;
  std::vector<std::string> warnings;
};

namespace runtime {
// kDevice for an engine that only plans.
[[nodiscard]] Result<void> check_device(const Engine::Impl& engine);
}  // namespace runtime

struct Model::Impl {
  std::shared_ptr<Engine::Impl> engine;
  std::shared_ptr<const FileMap> file;
  std::unique_ptr<io::GgufFile> gguf;
  std::unique_ptr<models::TextModel> model;
  ModelInfo info;
  std::optional<Tokenizer> tokenizer;
  SamplingOptions sampling;
  std::int64_t context = 0;
  std::string context_reason;
  std::unique_ptr<runtime::PagePool> pages;
  std::unique_ptr<runtime::Executables> executables;
};

}  // namespace tern
