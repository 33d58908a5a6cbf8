#include "backend/gpu/pipeline_store/report.h"

namespace tern::gpu {

std::string_view name_of(SelfTestState state) {
  switch (state) {
    case SelfTestState::kNone:
      return "none";
    case SelfTestState::kOff:
      return "off";
    case SelfTestState::kRecorded:
      return "passed before";
    case SelfTestState::kPassed:
      return "passed";
  }
  return "unknown";
}

}  // namespace tern::gpu
