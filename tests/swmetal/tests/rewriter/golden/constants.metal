// Function constants, what is computed from them, and which kernels cannot do without which.
constant bool kA [[function_constant(0)]];
constant uint kB [[function_constant(7)]];
constant float kC [[function_constant(2)]];
constant uint kTwice = kB * 2;
constant float kOr = is_function_constant_defined(kC) ? kC : 1.0f;
constant float kTable[2] = {1.0f, 2.0f};

uint helper() { return kTwice; }
kernel void reads_a(device uint* o [[buffer(0)]]) { o[0] = kA ? 1 : 2; }
kernel void reads_b_in_a_helper(device uint* o [[buffer(0)]]) { o[0] = helper(); }
kernel void optional(device float* o [[buffer(0)]]) { o[0] = kOr + kTable[1]; }
kernel void member(device uint* o [[buffer(0)]], constant Sizes& s [[buffer(1)]]) { o[0] = s.kA; }
kernel void conditional(device uint* o [[buffer(0)]],
                        device uint* x [[buffer(1), function_constant(kA)]]) {
}
