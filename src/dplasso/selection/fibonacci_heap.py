"""A Fibonacci heap of upper bounds: the paper's Algorithm 3, without privacy.

The heap orders coordinates by a bound ``key[k] >= |alpha_k|``. When a gradient grows, its key is
raised at once (decrease-key in the min-heap of negative magnitudes of arXiv 2310.19978). When it
shrinks, it keeps the old key, which is still a bound. A selection pops coordinates until the
largest true magnitude exceeds all bounds in the heap, and then reinserts the popped coordinates
with their true magnitudes as keys.

Coordinates are ordered by key, and by index in a tie. The loop stops as soon as the rest cannot win
even a tie, so the choice is exactly that of a brute-force argmax, also if many gradients are equal.
A missing neighbour is -1, and the children of a node, like the roots, form a ring.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dplasso.runtime.compilation import kernel
from dplasso.selection.log_weights import descent_sign
from dplasso.selection.selector import POPS, new_counters, register

# A node of degree d has at least the d-th Fibonacci number of descendants, so 92 covers int64.
_DEGREES = 92


class HeapState(NamedTuple):
    """State of the heap selection; coordinate j is node j.

    `key`, shape (D,): upper bounds of ``|alpha_k|``, in fixed-point units.
    `child`, shape (D,): any of the children. `left`, `right`: neighbours in the ring of siblings.
    `mark`, shape (D,): whether the node has lost a child since it got its parent.
    `first`, shape (1,): the root with the largest key, -1 for an empty heap.
    `by_degree`, shape (92,): scratch for the root of each degree while roots are merged.
    """

    key: NDArray[np.int64]
    parent: NDArray[np.integer]
    child: NDArray[np.integer]
    left: NDArray[np.integer]
    right: NDArray[np.integer]
    degree: NDArray[np.int8]
    mark: NDArray[np.bool_]
    first: NDArray[np.int64]
    by_degree: NDArray[np.int64]
    counters: NDArray[np.int64]
    shift: int = 0


def heap_state(n_columns: int) -> HeapState:
    """Return an empty structure for `n_columns` coordinates; `rebuild` fills it."""
    index = np.int32 if n_columns < 2**31 else np.int64
    return HeapState(
        np.zeros(n_columns, dtype=np.int64),
        np.full(n_columns, -1, dtype=index),
        np.full(n_columns, -1, dtype=index),
        np.full(n_columns, -1, dtype=index),
        np.full(n_columns, -1, dtype=index),
        np.zeros(n_columns, dtype=np.int8),
        np.zeros(n_columns, dtype=np.bool_),
        np.full(1, -1, dtype=np.int64),
        np.full(_DEGREES, -1, dtype=np.int64),
        new_counters(),
    )


@kernel
def precedes(heap, a, b):
    """Return whether node a is popped before node b."""
    return heap.key[a] > heap.key[b] or (heap.key[a] == heap.key[b] and a < b)


@kernel
def put_beside(heap, node, other):
    """Insert a node into the ring of another."""
    after = heap.right[other]
    heap.left[node] = other
    heap.right[node] = after
    heap.right[other] = node
    heap.left[after] = node


@kernel
def take_out(heap, node):
    """Remove a node from its ring."""
    heap.right[heap.left[node]] = heap.right[node]
    heap.left[heap.right[node]] = heap.left[node]


@kernel
def add_root(heap, node):
    """Make a node a root; it keeps its children."""
    heap.parent[node] = -1
    heap.mark[node] = False
    first = heap.first[0]
    if first < 0:
        heap.left[node] = node
        heap.right[node] = node
        heap.first[0] = node
        return
    put_beside(heap, node, first)
    if precedes(heap, node, first):
        heap.first[0] = node


@kernel
def hang(heap, node, parent):
    """Make a former root the child of another root."""
    child = heap.child[parent]
    if child < 0:
        heap.left[node] = node
        heap.right[node] = node
        heap.child[parent] = node
    else:
        put_beside(heap, node, child)
    heap.parent[node] = parent
    heap.mark[node] = False
    heap.degree[parent] += 1


@kernel
def consolidate(heap, start):
    """Merge the ring of roots that begins at `start` until no two have the same degree."""
    table = heap.by_degree
    # Open the ring to a list, because merging changes the neighbours of nodes already passed.
    heap.right[heap.left[start]] = -1
    node = np.int64(start)
    while node >= 0:
        following = np.int64(heap.right[node])
        root = node
        degree = np.int64(heap.degree[root])
        while table[degree] >= 0:
            other = table[degree]
            if precedes(heap, other, root):
                root, other = other, root
            hang(heap, other, root)
            table[degree] = -1
            degree += 1
        table[degree] = root
        node = following
    heap.first[0] = -1
    for degree in range(table.size):
        if table[degree] >= 0:
            add_root(heap, table[degree])
            table[degree] = -1


@kernel
def pop(heap):
    """Remove and return the node with the largest key."""
    node = heap.first[0]
    child = np.int64(heap.child[node])
    for _ in range(heap.degree[node]):
        following = np.int64(heap.right[child])
        heap.parent[child] = -1
        heap.mark[child] = False
        put_beside(heap, child, node)
        child = following
    heap.child[node] = -1
    heap.degree[node] = 0
    start = np.int64(heap.right[node])
    take_out(heap, node)
    if start == node:
        heap.first[0] = -1
    else:
        consolidate(heap, start)
    heap.counters[POPS] += 1
    return node


@kernel
def cut(heap, node, parent):
    """Move a child to the roots."""
    if heap.degree[parent] == 1:
        heap.child[parent] = -1
    else:
        if heap.child[parent] == node:
            heap.child[parent] = heap.right[node]
        take_out(heap, node)
    heap.degree[parent] -= 1
    add_root(heap, node)


@kernel
def raise_key(heap, node, key):
    """Raise a node's key, and cut the node off if it exceeds its parent."""
    heap.key[node] = key
    parent = np.int64(heap.parent[node])
    if parent < 0:
        if precedes(heap, node, heap.first[0]):
            heap.first[0] = node
        return
    if not precedes(heap, node, parent):
        return
    cut(heap, node, parent)
    # A node that loses a second child is cut off too, which keeps the degrees logarithmic.
    node = parent
    parent = np.int64(heap.parent[node])
    while parent >= 0:
        if not heap.mark[node]:
            heap.mark[node] = True
            break
        cut(heap, node, parent)
        node = parent
        parent = np.int64(heap.parent[node])


@kernel
def rebuild_heap(heap, alpha):
    """Make every coordinate a root with its true magnitude as key."""
    last = alpha.size - 1
    first = 0
    for j in range(alpha.size):
        heap.key[j] = abs(alpha[j])
        heap.parent[j] = -1
        heap.child[j] = -1
        heap.left[j] = j - 1 if j > 0 else last
        heap.right[j] = j + 1 if j < last else 0
        heap.degree[j] = 0
        heap.mark[j] = False
        if heap.key[j] > heap.key[first]:
            first = j
    heap.first[0] = first


@kernel
def update_many_heap(heap, alpha, changed, old, count):
    """Raise the keys of gradients that exceed them."""
    for m in range(count):
        k = np.int64(changed[m])
        magnitude = abs(alpha[k])
        if magnitude > heap.key[k]:
            raise_key(heap, k, magnitude)


@kernel
def select_heap(heap, alpha, stream):
    """Return the first coordinate with the largest magnitude, and the descent sign."""
    best = np.int64(-1)
    largest = np.int64(-1)
    # The popped nodes form a list linked by `right`.
    popped = np.int64(-1)
    while heap.first[0] >= 0:
        first = heap.first[0]
        if heap.key[first] < largest or (heap.key[first] == largest and first > best):
            break
        node = pop(heap)
        magnitude = abs(alpha[node])
        heap.key[node] = magnitude
        heap.right[node] = popped
        popped = node
        if magnitude > largest or (magnitude == largest and node < best):
            best, largest = node, magnitude
    while popped >= 0:
        following = np.int64(heap.right[popped])
        heap.child[popped] = -1
        heap.degree[popped] = 0
        add_root(heap, popped)
        popped = following
    return best, descent_sign(alpha[best])


register(HeapState, select_heap, update_many_heap, rebuild_heap)
