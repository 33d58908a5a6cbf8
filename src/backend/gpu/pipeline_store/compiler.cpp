#include "backend/gpu/pipeline_store/compiler.h"

#include "base/error.h"

namespace tern::gpu {

std::string_view name_of(Tier tier) {
  switch (tier) {
    case Tier::kEmbedded:
      return "embedded";
    case Tier::kDisk:
      return "disk";
    case Tier::kOffline:
      return "offline";
    case Tier::kRuntime:
      return "runtime";
    case Tier::kDriver:
      return "driver";
  }
  return "unknown";
}

std::string cut_diagnostics(std::string_view text, std::size_t most) {
  if (text.size() <= most) return std::string(text);
  std::size_t end = most;
  // Back to the start of the character that would be cut.
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return fmt::format("{}\n[{} more bytes]", text.substr(0, end), text.size() - end);
}

}  // namespace tern::gpu
