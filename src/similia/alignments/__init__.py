"""Code shared by the kernels and distances of series: SIMD lanes of pairs, windows, and sums over all alignments."""
