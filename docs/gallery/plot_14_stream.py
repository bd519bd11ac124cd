"""
More objects than fit into memory
=================================

A file is encoded in chunks while it is read; memory stays the same whatever its length, and a run that is stopped
goes on where it was. The bits are those of the same objects in memory, each of them.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
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

# %%
# The file can be read in part. Each read begins ten letters after the one before it, so eight neighbours share letters
# with it. Their codes show this.
few = np.array(codes[:500])
del codes
folder.cleanup()
apart = np.arange(1, 16)
differing = sm.codes.hamming_distances(few) / 512
plt.figure(figsize=(6.4, 4.4))
plt.bar(10 * apart, [np.diagonal(differing, k).mean() for k in apart], width=8)
plt.axvline(75, color="0.5", ls="--", label="beyond, no letter is shared")
plt.legend(loc="upper left")
plt.gca().set(title="reads out of the file", xlabel="letters apart", ylabel="share of bits that differ", ylim=(0, 0.5))
plt.show()
