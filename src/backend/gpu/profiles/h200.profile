# NVIDIA H200 SXM, read and copy rates as measured, arithmetic as stated by its maker.
name = h200
kind = cuda
architecture = sm_90
memory_gib = 139
read_gbps = 4560
fused_multiply_adds_per_s = 33.5e12
cores = 132
