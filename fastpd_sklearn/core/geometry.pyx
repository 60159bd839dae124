"""What the leaves of a forest are made of, as far as the game between players is concerned.

A *player* is a group of input columns (one column, where nobody made groups). A leaf is a box; its
players are those whose columns are tested on the way to it, each once. The *mask* of a row at a
leaf has bit i set where the row satisfies every test of the leaf's i-th player.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport free, realloc

import numpy as np

cdef enum:
    DENSE_BITS = 12  # the longest pattern for which a table over all patterns is ever made
    CHUNK_NODES = 7  # three full levels: 7 node bits and few others keep a table in the first-level cache


cdef class _Column:
    """A growing array of int64."""

    cdef int64_t* items
    cdef int64_t size, room

    def __dealloc__(self):
        free(self.items)

    cdef int push(self, int64_t item) except -1:
        cdef int64_t* grown
        if self.size == self.room:
            grown = <int64_t*> realloc(self.items, (2 * self.room + 64) * sizeof(int64_t))
            if grown == NULL:
                raise MemoryError("no memory for the paths of a forest")
            self.items, self.room = grown, 2 * self.room + 64
        self.items[self.size] = item
        self.size += 1
        return 0

    cdef array(self, dtype):
        if self.size == 0:
            return np.empty(0, dtype)
        return np.asarray(<int64_t[:self.size]> self.items).astype(dtype)


class Geometry:
    """Leaves, their players and their paths.

    Leaves are numbered tree by tree, left before right.

    Attributes
    ----------
    n_players : int
    leaf_node : ndarray of shape (n_leaves,), int64
    tree_leaf : ndarray of shape (n_trees + 1,), int64
        The leaves of tree ``t`` are ``tree_leaf[t]`` up to ``tree_leaf[t + 1]``.
    player_start : ndarray of shape (n_leaves + 1,), int64
    player : ndarray of int32
        Players of leaf ``l``: ``player[player_start[l]:player_start[l + 1]]``, in the order in
        which the path meets them; bit ``i`` of a mask belongs to the ``i``-th.
    path_start : ndarray of shape (n_leaves + 1,), int64
    path_node, path_left, path_bit : ndarray of int32, uint8, int32
        The tests on the way to leaf ``l``, top down: node, wanted direction, local player.
    """

    def __init__(self, left, right, feature, tree_start, player_of_input, n_players):
        self.n_players = int(n_players)
        self.tree_start = tree_start
        self.left, self.right = left, right
        self.node_player = np.where(feature >= 0, player_of_input[feature], -1).astype(np.int32)
        _trace(self)

    @property
    def n_leaves(self):
        """Number of leaves."""
        return len(self.leaf_node)

    @property
    def n_trees(self):
        """Number of trees."""
        return len(self.tree_leaf) - 1

    @property
    def leaf_sizes(self):
        """Number of players of each leaf, ndarray of shape (n_leaves,)."""
        return np.diff(self.player_start)

    @property
    def n_words(self):
        """Number of 64-bit words that hold any leaf's mask."""
        return max(1, -(-int(self.leaf_sizes.max(initial=0)) // 64))


def _trace(geometry):
    cdef const int32_t[::1] left = geometry.left, right = geometry.right
    cdef const int32_t[::1] node_player = geometry.node_player
    cdef const int64_t[::1] tree_start = geometry.tree_start
    cdef _Column leaf_node = _Column(), tree_leaf = _Column(), player_start = _Column()
    cdef _Column player = _Column(), path_start = _Column(), path_node = _Column()
    cdef _Column path_left = _Column(), path_bit = _Column()
    # The path to the node at hand, and how often each branch of it was taken: 0, 1 or 2 times.
    cdef _Column path = _Column(), taken = _Column()
    cdef int64_t t, node, k, i, first
    cdef int32_t p
    for t in range(tree_start.shape[0] - 1):
        tree_leaf.push(leaf_node.size)
        path.size = taken.size = 0
        node = tree_start[t]
        while True:
            while left[node] >= 0:
                path.push(node)
                taken.push(1)
                node = left[node]
            leaf_node.push(node)
            player_start.push(player.size)
            path_start.push(path_node.size)
            first = player.size
            for k in range(path.size):
                p = node_player[path.items[k]]
                i = first
                while i < player.size and player.items[i] != p:
                    i += 1
                if i == player.size:
                    player.push(p)
                path_node.push(path.items[k])
                path_left.push(taken.items[k] == 1)
                path_bit.push(i - first)
            while path.size and taken.items[path.size - 1] == 2:
                path.size -= 1
                taken.size -= 1
            if path.size == 0:
                break
            taken.items[path.size - 1] = 2
            node = right[path.items[path.size - 1]]
    tree_leaf.push(leaf_node.size)
    player_start.push(player.size)
    path_start.push(path_node.size)
    geometry.leaf_node = leaf_node.array(np.int64)
    geometry.tree_leaf = tree_leaf.array(np.int64)
    geometry.player_start = player_start.array(np.int64)
    geometry.player = player.array(np.int32)
    geometry.path_start = path_start.array(np.int64)
    geometry.path_node = path_node.array(np.int32)
    geometry.path_left = path_left.array(np.uint8)
    geometry.path_bit = path_bit.array(np.int32)


class Units:
    """Pieces of trees whose leaves are looked up by one integer a row, the row's *pattern*.

    A unit is either a *chunk* or a *single* leaf. A chunk is a few connected inner nodes with
    the leaves that hang from them. Its pattern has a bit a node ("goes left") and a bit for
    every player tested above ("satisfies all of those tests"), so it is short, and the masks
    of all the chunk's leaves follow from it::

              above:  x0 < 3, x1 < 5            bits:  0  node a goes left
                 a                                     1  node b goes left
               /   \\                                   2  x0 is within the path above
              b     leaf 2                             3  x1 is within the path above
            /   \\                               pattern 0b1011: mask of leaf 1 from
         leaf 0  leaf 1                         bit 0 = 1, bit 1 = 0, bits 2 and 3

    The pattern of a single leaf is its mask, of as many words as that needs.

    Parameters
    ----------
    geometry : Geometry
    chunk_nodes : int
        Most inner nodes of a chunk. With 0 all units are single leaves.

    Attributes
    ----------
    tree_unit : ndarray of shape (n_trees + 1,), int64
    bit_start : ndarray of shape (n_units + 1,), int64
        Bits of unit ``u``: ``bit_start[u]`` up to ``bit_start[u + 1]``.
    test_start : ndarray of shape (n_bits + 1,), int64
    test_node, test_left : ndarray of int32, uint8
        A bit is set where all of its tests go the wanted way.
    leaf_start : ndarray of shape (n_units + 1,), int64
    leaf : ndarray of shape (n_leaves,), int64
    care, want : ndarray of shape (len(geometry.player),), uint64
        Local player ``i`` of leaf ``l`` is satisfied where ``pattern & care == want``, at
        position ``geometry.player_start[l] + i``. Unused for single leaves.
    is_dense : ndarray of shape (n_units,), uint8
        Whether the pattern is short enough for tables over all patterns.
    """

    def __init__(self, geometry, int chunk_nodes=CHUNK_NODES):
        _cut(self, geometry, chunk_nodes)

    @property
    def n_units(self):
        """Number of units."""
        return len(self.bit_start) - 1

    @property
    def n_bits(self):
        """Bits of each unit's pattern, ndarray of shape (n_units,)."""
        return np.diff(self.bit_start)


def _cut(units, geometry, int chunk_nodes):
    cdef const int32_t[::1] left = geometry.left, right = geometry.right
    cdef const int64_t[::1] tree_start = geometry.tree_start, leaf_node = geometry.leaf_node
    cdef const int64_t[::1] player_start = geometry.player_start, path_start = geometry.path_start
    cdef const int32_t[::1] path_node = geometry.path_node, path_bit = geometry.path_bit
    cdef const uint8_t[::1] path_left = geometry.path_left
    cdef const int64_t[::1] tree_leaf = geometry.tree_leaf
    cdef _Column tree_unit = _Column(), bit_start = _Column(), test_start = _Column()
    cdef _Column test_node = _Column(), test_left = _Column(), leaf_start = _Column()
    cdef _Column leaves = _Column()
    care_array = np.zeros(len(geometry.player), np.uint64)
    want_array = np.zeros(len(geometry.player), np.uint64)
    cdef uint64_t[::1] care = care_array, want = want_array
    cdef int64_t n_nodes = left.shape[0]
    first_array, last_array = _leaf_ranges(geometry)
    cdef const int64_t[::1] first_leaf = first_array, last_leaf = last_array
    place_array = np.full(n_nodes, -1, np.int64)  # the node's bit in the chunk at hand
    cdef int64_t[::1] place = place_array
    cdef _Column roots = _Column(), members = _Column()
    cdef int64_t t, head, root, node, child, l, i, k, j, depth, n_above, most, n_leaves, bit
    for t in range(tree_start.shape[0] - 1):
        tree_unit.push(bit_start.size)
        roots.size = 0
        roots.push(tree_start[t])
        head = 0
        while head < roots.size:
            root = roots.items[head]
            head += 1
            depth, n_above = _above(path_start, path_node, path_bit, first_leaf[root], root)
            most = min(<int64_t> chunk_nodes, DENSE_BITS - n_above)
            if most < 1 or left[root] < 0:
                for l in range(first_leaf[root], last_leaf[root]):
                    bit_start.push(test_start.size)
                    leaf_start.push(leaves.size)
                    leaves.push(l)
                    for bit in range(player_start[l + 1] - player_start[l]):
                        _add_bit(test_start, test_node, test_left, path_start[l],
                                 path_start[l + 1], path_node, path_left, path_bit, bit)
                        if bit < 64:
                            care[player_start[l] + bit] = <uint64_t> 1 << bit
                            want[player_start[l] + bit] = <uint64_t> 1 << bit
                continue
            # Breadth first, so that a chunk is as balanced as the tree lets it be.
            members.size = 0
            members.push(root)
            i = 0
            while i < members.size:
                for child in (left[members.items[i]], right[members.items[i]]):
                    if left[child] >= 0:
                        if members.size < most:
                            members.push(child)
                        else:
                            roots.push(child)
                i += 1
            n_leaves = 0
            for i in range(members.size):
                place[members.items[i]] = i
                for child in (left[members.items[i]], right[members.items[i]]):
                    if left[child] < 0:
                        n_leaves += 1
            if n_leaves:
                bit_start.push(test_start.size)
                leaf_start.push(leaves.size)
                for i in range(members.size):
                    test_start.push(test_node.size)
                    test_node.push(members.items[i])
                    test_left.push(1)
                # All leaves below share the path above the root, so any of them tells its bits.
                l = first_leaf[root]
                for bit in range(n_above):
                    _add_bit(test_start, test_node, test_left, path_start[l],
                             path_start[l] + depth, path_node, path_left, path_bit, bit)
                for i in range(members.size):
                    for child in (left[members.items[i]], right[members.items[i]]):
                        if left[child] >= 0:
                            continue
                        l = first_leaf[child]
                        leaves.push(l)
                        for k in range(path_start[l], path_start[l + 1]):
                            j = player_start[l] + path_bit[k]
                            if k - path_start[l] < depth:
                                bit = members.size + path_bit[k]
                                want[j] |= <uint64_t> 1 << bit
                            else:
                                bit = place[path_node[k]]
                                want[j] |= <uint64_t> path_left[k] << bit
                            care[j] |= <uint64_t> 1 << bit
    tree_unit.push(bit_start.size)
    bit_start.push(test_start.size)
    test_start.push(test_node.size)
    leaf_start.push(leaves.size)
    units.tree_unit = tree_unit.array(np.int64)
    units.bit_start = bit_start.array(np.int64)
    units.test_start = test_start.array(np.int64)
    units.test_node = test_node.array(np.int32)
    units.test_left = test_left.array(np.uint8)
    units.leaf_start = leaf_start.array(np.int64)
    units.leaf = leaves.array(np.int64)
    units.is_dense = (np.diff(units.bit_start) <= DENSE_BITS).astype(np.uint8)
    units.care, units.want = care_array, want_array


cdef int _add_bit(
    _Column test_start, _Column test_node, _Column test_left, int64_t start, int64_t stop,
    const int32_t[::1] path_node, const uint8_t[::1] path_left, const int32_t[::1] path_bit,
    int64_t bit,
) except -1:
    """Append the pattern bit "every test of local player `bit` on this path is passed"."""
    cdef int64_t k
    test_start.push(test_node.size)
    for k in range(start, stop):
        if path_bit[k] == bit:
            test_node.push(path_node[k])
            test_left.push(path_left[k])
    return 0


def _leaf_ranges(geometry):
    """The leaves below every node: from first[node] up to last[node]."""
    cdef const int32_t[::1] left = geometry.left, right = geometry.right
    first_array = np.empty(len(geometry.left), np.int64)
    last_array = np.empty(len(geometry.left), np.int64)
    first_array[geometry.leaf_node] = np.arange(geometry.n_leaves)
    last_array[geometry.leaf_node] = np.arange(1, geometry.n_leaves + 1)
    cdef int64_t[::1] first = first_array, last = last_array
    cdef int64_t node
    for node in range(left.shape[0] - 1, -1, -1):
        if left[node] >= 0:
            first[node] = first[left[node]]
            last[node] = last[right[node]]
    return first_array, last_array


cdef (int64_t, int64_t) _above(
    const int64_t[::1] path_start, const int32_t[::1] path_node, const int32_t[::1] path_bit,
    int64_t leaf, int64_t root,
) noexcept:
    """Depth of a node above a leaf, and the number of players tested above the node."""
    cdef int64_t k = path_start[leaf], n_players = 0
    while k < path_start[leaf + 1] and path_node[k] != root:
        n_players = max(n_players, <int64_t> path_bit[k] + 1)
        k += 1
    return k - path_start[leaf], n_players
