/* What the jumps of a block of rows take, see jump_program.pyx and jumps.h. */
#ifndef FASTPD_JUMP_PROGRAM_H
#define FASTPD_JUMP_PROGRAM_H

#include <stdint.h>

/* Rows of a block, a constant: loops of a length that is known are unrolled, and sums do not depend
 * on which curves are made together. */
enum { LANES = 64 };

/* mask[mask] = 255 where the code at `offset` lies in [low, low + span], a cyclic interval. */
typedef struct {
    int64_t offset;
    uint32_t low, span;
    int32_t mask, node;
} LaneTest;

/* way[left] = way[source] where the mask is set, way[right] where it is not. */
typedef struct {
    int32_t source, mask, left, right;
} LaneWay;

/* The value of a subtree: a register (0), a constant (1), or one of two constants, by a mask (2):
 * that of a node above two leaves is not worth a trip to memory. */
typedef struct {
    int32_t kind, place, left, right;
} LaneValue;

/* What a node does with the values of its children: value[target] = left where the mask is set,
 * else right; curve[cell] += right - left where the way is set. */
typedef struct {
    LaneValue left, right;
    int32_t mask, way, target, cell;
} LaneStep;

/* Steps of one kind: that of the left, of the right, whether there are values and jumps. */
static inline int lane_kind(int left, int right, int has_value, int has_jump)
{
    return left << 4 | right << 2 | has_value << 1 | has_jump;
}

#endif
