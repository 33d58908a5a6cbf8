# NVIDIA GeForce RTX 4090, as stated by its maker.
name = rtx4090
kind = cuda
architecture = sm_89
memory_gib = 24
read_gbps = 1008
fused_multiply_adds_per_s = 41.3e12
cores = 128
