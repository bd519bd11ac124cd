"""
More objects than fit into memory
=================================

A file is encoded in chunks while it is read; memory stays the same whatever its length, and a run that is stopped
goes on where it was. The bits are those of the same objects in memory, each of them.
"""

import tempfile
from pathlib import Path

import numpy as np
from sklearn.pipeline import make_pipeline

import similia as sm

dna = "".join(sm.datasets.load_splice().data)
reads = [dna[i : i + 80] for i in range(0, len(dna) - 80, 10)]
encoder = make_pipeline(
    sm.Nystroem(sm.kernels.Spectrum(k=4), 128, random_state=0), sm.SignRandomProjection(512, random_state=0)
).fit(reads[:2000])

folder = tempfile.TemporaryDirectory()
fasta, output = Path(folder.name, "reads.fasta"), Path(folder.name, "reads.npy")
fasta.write_text("".join(f">read{i}\n{read}\n" for i, read in enumerate(reads)))
with sm.config(max_memory="64MiB"):
    n = sm.scale.encode_stream(encoder, fasta, output, chunk=4000)
print(f"{n:,} reads, {fasta.stat().st_size / 1e6:.1f} MB of letters, {output.stat().st_size / 1e6:.1f} MB of bits")

# %%
# The same, bit for bit.
codes = np.load(output, mmap_mode="r")
print(np.array_equal(codes, encoder.transform(reads)))
del codes
folder.cleanup()
