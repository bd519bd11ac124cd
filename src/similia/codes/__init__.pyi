# Written by tools/stubs.py from the names in __init__.py.

from similia.codes.sign_projection import SignRandomProjection as SignRandomProjection
from similia.codes.bits import kernel_from_codes as kernel_from_codes
from similia.codes.bits import pack_signs as pack_signs
from similia.codes.bits import unpack_signs as unpack_signs
from similia.codes.bits import flip_bits as flip_bits
from similia.codes.bits import hamming_distances as hamming_distances
from similia.codes.bits import inner_products as inner_products
from similia.codes.hypervectors import bind as bind
from similia.codes.hypervectors import bundle as bundle
from similia.codes.hypervectors import permute as permute
from similia.codes.hypervectors import similarity as similarity
from similia.codes.hypervectors import random as random
from similia.codes.hypervectors import level as level
from similia.codes.minhash import MinHash as MinHash
from similia.codes.generalized_nystroem import GeneralizedNystroemPCA as GeneralizedNystroemPCA
from similia.codes.itq import ITQ as ITQ
from similia.codes.itq import SignCodes as SignCodes
from similia.codes.sequences import NGramEncoder as NGramEncoder
from similia.codes.graphhd import GraphHDEncoder as GraphHDEncoder
from similia.codes.records import RecordEncoder as RecordEncoder
from similia.codes.vectors import LevelEncoder as LevelEncoder
from similia.codes.sequences import SequenceEncoder as SequenceEncoder
from similia.codes.vectors import FractionalPowerEncoder as FractionalPowerEncoder
