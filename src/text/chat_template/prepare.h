// What happens to the messages before a template sees them, and to the text after it.
#pragma once

#include <string>

#include "text/chat_template/chat_template.h"

namespace tern::text {

struct PreparedMessages {
  Value messages;
  std::string continued;  // the text that goes on, without white space around it
};

// kInvalidArgument for a conversation that cannot be rendered or continued. `mentions_content`:
// the template reads contents at all.
[[nodiscard]] Result<PreparedMessages> prepare_messages(const ChatRequest& request,
                                                        bool mentions_content);

// The prompt up to where the continued message ends. An error when the template dropped it.
[[nodiscard]] Result<RenderedPrompt> cut_at_tag(RenderedPrompt prompt,
                                                const std::string& continued);

}  // namespace tern::text
