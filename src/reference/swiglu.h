// swiglu: silu(gate) * up, silu(g) = g / (1 + exp(-g)).
#pragma once

namespace tern::reference {

[[nodiscard]] float silu(float g);
[[nodiscard]] float swiglu(float gate, float up);

}  // namespace tern::reference
