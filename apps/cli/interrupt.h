// Ctrl+C and SIGTERM: the first trips a cancel token, a second Ctrl+C within two seconds leaves at
// once.
#pragma once

#include "tern/cancel.h"

namespace tern::cli {

// One object per process, alive in main. SIGPIPE and SIGXFSZ are ignored, so that a broken pipe and
// a file above the limit of its size are errors of write().
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  [[nodiscard]] const CancelToken& token() const { return token_; }
  [[nodiscard]] bool requested() const { return token_.requested(); }
  // 130 for Ctrl+C, 143 for SIGTERM.
  [[nodiscard]] int exit_code() const;

 private:
  CancelToken token_ = CancelToken::make();
};

}  // namespace tern::cli
