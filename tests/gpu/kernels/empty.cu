// A kernel that does nothing: the price of a node.
extern "C" __global__ void empty() {}
