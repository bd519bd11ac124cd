"""Turn vectors and objects into binary codes and compute with them; codes are packed uint8 rows, bit 1 for +1."""

from similia.core import attach

_NAMES = {
    "SignRandomProjection": "sign_projection", "kernel_from_codes": "bits",
    "pack_signs": "bits", "unpack_signs": "bits", "flip_bits": "bits",
    "hamming_distances": "bits", "inner_products": "bits",
    "bind": "hypervectors", "bundle": "hypervectors", "permute": "hypervectors",
    "similarity": "hypervectors", "random": "hypervectors", "level": "hypervectors",
    "MinHash": "minhash",
    "GeneralizedNystroemPCA": "generalized_nystroem", "ITQ": "itq", "SignCodes": "itq",
    "NGramEncoder": "sequences", "GraphHDEncoder": "graphhd", "RecordEncoder": "records",
    "LevelEncoder": "vectors", "SequenceEncoder": "sequences", "FractionalPowerEncoder": "vectors",
}  # fmt: skip
__all__ = [*_NAMES]
__getattr__, __dir__ = attach(__name__, _NAMES)
