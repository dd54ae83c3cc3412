"""What stores keep of people, computed once more."""

from hashlib import blake2b

import numpy as np


def hashes_of(names):
    """Return what a store keeps of each text: 127 bits and a 1, as two numbers."""
    digests = (blake2b(str(name).encode(), digest_size=16).digest() for name in names)
    return np.frombuffer(b"".join(digests), "<i8").reshape(-1, 2) | [0, 1]
