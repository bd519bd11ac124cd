"""Code shared by kernels and distances of series: pairs in lanes, bands, and sums over all alignments."""
