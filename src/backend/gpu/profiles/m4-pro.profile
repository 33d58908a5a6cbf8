# Apple M4 Pro with 20 GPU cores, as stated by its maker; a process may take about three quarters of
# the 24 GiB.
name = m4-pro
kind = metal
architecture = apple9
memory_gib = 18
read_gbps = 273
fused_multiply_adds_per_s = 4.6e12
cores = 20
