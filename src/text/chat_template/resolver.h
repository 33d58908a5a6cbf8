// Decides once, before any rendering, which variable every name means.
#pragma once

#include "text/chat_template/ast.h"

namespace tern::text::jinja {

// Fills in the references, scopes and functions of a parsed template. Throws TemplateFault.
//
// The rules are those of the reference: a name that a scope sets belongs to that scope, starts as
// a copy of the outer variable of that name (so loops forget what a round has set), and a name
// that nobody sets comes from outside. `if` is no scope, but a name set in one branch only keeps
// its outside value otherwise. Macros see the variables around their definition as they are at
// the time of the call.
void resolve_names(Template& tree);

}  // namespace tern::text::jinja
