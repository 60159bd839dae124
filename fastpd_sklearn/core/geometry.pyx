"""What the leaves of a forest are made of, as far as the game between players is concerned.

A *player* is a group of input columns (one column, where nobody made groups). A leaf is a box; its
players are those whose columns are tested on the way to it, each once. The *mask* of a row at a
leaf has bit i set where the row satisfies every test of the leaf's i-th player.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.stdlib cimport free, realloc

import numpy as np

cdef enum:
    DENSE_BITS = 16  # the longest pattern that is a number by itself, of 16 bits
    CHUNK_NODES = 7  # three full levels
    LEAST_NODES = 4  # of the limit, however deep
    CHUNK_BITS = 11  # of a pattern, about: making larger tables takes more than they save


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
    leaf_sizes : ndarray of shape (n_leaves,), int64
        Number of players of each leaf.
    n_words : int
        Number of 64-bit words that hold any leaf's mask.
    """

    def __init__(self, left, right, feature, tree_start, player_of_input, n_players):
        self.n_players = int(n_players)
        self.tree_start = tree_start
        self.left, self.right = left, right
        self.node_player = np.where(feature >= 0, player_of_input[feature], -1).astype(np.int32)
        _trace(self)
        self.leaf_sizes = np.diff(self.player_start)
        self.n_words = max(1, -(-int(self.leaf_sizes.max(initial=0)) // 64))

    @property
    def n_leaves(self):
        """Number of leaves."""
        return len(self.leaf_node)

    @property
    def n_trees(self):
        """Number of trees."""
        return len(self.tree_leaf) - 1


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
    """Trees cut into *chunks*, each looked up by one number a row.

    A chunk is a few connected inner nodes. What a row does there and above is its *pattern*: a
    bit a node of the chunk ("goes left"), and a bit for every player tested above ("satisfies
    all of those tests"). The masks of all leaves that hang from the chunk follow from it, and
    so does the part of the pattern of the chunks below that concerns what is above them::

              above:  x0 < 3, x1 < 5            bits:  0  node a goes left
                 a                                     1  node b goes left
               /   \\                                   2  x0 is within the path above
              b     leaf 2                             3  x1 is within the path above
            /   \\                               pattern 0b1011: mask of leaf 1 from
         leaf 0  leaf 1                         bit 0 = 1, bit 1 = 0, bits 2 and 3

    Parameters
    ----------
    geometry : Geometry
    chunk_nodes : int
        Most inner nodes of a chunk; of those far from the root it is fewer.

    Attributes
    ----------
    tree_unit : ndarray of shape (n_trees + 1,), int64
        The units of tree ``t``, each after its parent, and all that is below it next.
    node_start : ndarray of shape (n_units + 1,), int64
        Inner nodes of unit ``u``: ``node[node_start[u]:node_start[u + 1]]``, the root first.
        The unit of a tree that is a bare leaf has none.
    node : ndarray of int32
    place : ndarray of shape (n_nodes,), uint8
        The bit that an inner node has in the pattern of its unit.
    parent : ndarray of shape (n_units,), int64
        The unit above, -1 for the first of a tree.
    level : ndarray of shape (n_units,), int64
        Number of units above. As everything below a unit follows it at once, the last one of each
        level so far is above the next unit or will not be needed any more.
    first_leaf : ndarray of shape (n_units,), int64
        Some leaf below; its path leads through the unit's root.
    depth : ndarray of shape (n_units,), int64
        Number of tests above the root.
    n_above : ndarray of shape (n_units,), int64
        Number of players tested above the root. They are the first local players of all leaves
        below.
    leaf_start : ndarray of shape (n_units + 1,), int64
    leaf : ndarray of shape (n_leaves,), int64
        Leaves that hang from the unit.
    is_dense : ndarray of shape (n_units,), uint8
        Whether the pattern is short enough for tables over all patterns, as are those above.
    """

    def __init__(self, geometry, int chunk_nodes=CHUNK_NODES):
        _cut(self, geometry, chunk_nodes)

    @property
    def n_units(self):
        """Number of units."""
        return len(self.parent)

    @property
    def n_bits(self):
        """Bits of each unit's pattern, ndarray of shape (n_units,)."""
        return np.diff(self.node_start) + self.n_above


def _cut(units, geometry, int chunk_nodes):
    cdef const int32_t[::1] left = geometry.left, right = geometry.right
    cdef const int64_t[::1] tree_start = geometry.tree_start
    cdef const int64_t[::1] path_start = geometry.path_start
    cdef const int32_t[::1] path_node = geometry.path_node, path_bit = geometry.path_bit
    leaf_array = _some_leaf(geometry)
    cdef const int64_t[::1] some_leaf = leaf_array
    root_array = _chunk_roots(geometry, chunk_nodes)
    cdef const uint8_t[::1] is_root = root_array
    place_array = np.zeros(len(geometry.left), np.uint8)
    cdef uint8_t[::1] place = place_array
    cdef _Column tree_unit = _Column(), node_start = _Column(), nodes = _Column()
    cdef _Column parent = _Column(), level = _Column(), first_leaf = _Column()
    cdef _Column depths = _Column(), above = _Column()
    cdef _Column leaf_start = _Column(), leaves = _Column()
    cdef _Column roots = _Column(), parents = _Column()
    cdef int64_t t, root, up, child, i, first, depth, n_above, this
    for t in range(tree_start.shape[0] - 1):
        tree_unit.push(parent.size)
        roots.size = parents.size = 0
        roots.push(tree_start[t])
        parents.push(-1)
        while roots.size:
            roots.size -= 1
            parents.size -= 1
            root, up = roots.items[roots.size], parents.items[parents.size]
            this = parent.size
            depth, n_above = _above(path_start, path_node, path_bit, some_leaf[root], root)
            parent.push(up)
            level.push(level.items[up] + 1 if up >= 0 else 0)
            first_leaf.push(some_leaf[root])
            depths.push(depth)
            above.push(n_above)
            node_start.push(nodes.size)
            leaf_start.push(leaves.size)
            if left[root] < 0:
                leaves.push(some_leaf[root])
                continue
            first = i = nodes.size
            nodes.push(root)
            while i < nodes.size:
                place[nodes.items[i]] = <uint8_t> (i - first)
                for child in (left[nodes.items[i]], right[nodes.items[i]]):
                    if left[child] < 0:
                        leaves.push(some_leaf[child])
                    elif is_root[child]:
                        roots.push(child)
                        parents.push(this)
                    else:
                        nodes.push(child)
                i += 1
    tree_unit.push(parent.size)
    node_start.push(nodes.size)
    leaf_start.push(leaves.size)
    units.tree_unit = tree_unit.array(np.int64)
    units.node_start = node_start.array(np.int64)
    units.node = nodes.array(np.int32)
    units.place = place_array
    units.parent = parent.array(np.int64)
    units.level = level.array(np.int64)
    units.first_leaf = first_leaf.array(np.int64)
    units.depth = depths.array(np.int64)
    units.n_above = above.array(np.int64)
    units.leaf_start = leaf_start.array(np.int64)
    units.leaf = leaves.array(np.int64)
    units.is_dense = (units.n_bits <= DENSE_BITS).astype(np.uint8)
    _spread_deep(units.parent, units.is_dense)


cdef void _spread_deep(const int64_t[::1] parent, uint8_t[::1] is_dense) noexcept:
    """What hangs from a deep unit is deep."""
    cdef int64_t unit
    for unit in range(parent.shape[0]):
        if parent[unit] >= 0:
            is_dense[unit] &= is_dense[parent[unit]]


def _chunk_roots(geometry, int chunk_nodes):
    """Inner nodes at which a chunk begins, so that there are about as few chunks as can be.

    From the bottom up, a node takes its children's chunks along while they fit, and otherwise
    cuts off the larger one first (Kundu and Misra, "A linear tree partitioning algorithm", 1977).
    The deeper it lies, the more players are above it, whose bits lengthen the pattern, too: then
    two small tables are sooner looked up than a large one.
    """
    cdef const int32_t[::1] left = geometry.left, right = geometry.right
    root_array = np.zeros(len(geometry.left), np.uint8)
    size_array = np.zeros(len(geometry.left), np.int64)
    depth_array = np.zeros(len(geometry.left), np.int32)
    cdef uint8_t[::1] is_root = root_array
    cdef int64_t[::1] size = size_array
    cdef int32_t[::1] depth = depth_array
    cdef int64_t node, large, small, child, most
    for node in range(left.shape[0]):
        if left[node] >= 0:
            depth[left[node]] = depth[right[node]] = depth[node] + 1
    for node in range(left.shape[0] - 1, -1, -1):
        if left[node] < 0:
            continue
        large, small = left[node], right[node]
        if size[large] < size[small]:
            large, small = small, large
        size[node] = 1 + size[large] + size[small]
        most = min(chunk_nodes, max(<int64_t> LEAST_NODES, CHUNK_BITS - depth[node]))
        for child in (large, small):
            if size[node] > most:
                is_root[child] = 1
                size[node] -= size[child]
    return root_array


def _some_leaf(geometry):
    """A leaf below every node: the first one."""
    cdef const int32_t[::1] left = geometry.left
    first_array = np.empty(len(geometry.left), np.int64)
    first_array[geometry.leaf_node] = np.arange(geometry.n_leaves)
    cdef int64_t[::1] first = first_array
    cdef int64_t node
    for node in range(left.shape[0] - 1, -1, -1):
        if left[node] >= 0:
            first[node] = first[left[node]]
    return first_array


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
