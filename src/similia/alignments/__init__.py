"""What kernels and distances of series share: pairs in lanes, bands, and sums over all alignments."""
