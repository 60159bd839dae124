/* The inner loops of core/pair_walk: an explained row with the rows of the background that are still
 * paired with it, a bit each. All that is chosen by the instruction set is exact. */
#ifndef FASTPD_PAIRS_H
#define FASTPD_PAIRS_H

#include "quads.h"

/* Bit r of words is bytes[r], 0 or 1: a product brings eight of them together. */
static inline void pack_bits(const uint8_t *bytes, int64_t n_words, uint64_t *words)
{
    for (int64_t w = 0; w < n_words; w++) {
        uint64_t word = 0;
        for (int i = 0; i < 64; i += 8, bytes += 8) {
            uint64_t eight;
#if !defined(__BYTE_ORDER__) || __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
            memcpy(&eight, bytes, sizeof eight);
#else
            eight = 0;
            for (int k = 0; k < 8; k++)
                eight |= (uint64_t)bytes[k] << 8 * k;
#endif
            word |= (eight * 0x0102040810204080u >> 56) << i;
        }
        words[w] = word;
    }
}

/* below[r] = at[r] with a bit set where the row does not go the wanted way. */
CLONES static void violate(int64_t m, const uint64_t *at, const uint8_t *left, uint8_t wanted, int bit,
                           uint64_t *below)
{
    for (int64_t r = 0; r < m; r++)
        below[r] = at[r] | (uint64_t)(left[r] ^ wanted) << bit;
}

INLINED int64_t keep_some(int64_t n, const int32_t *who, const uint64_t *mask, const uint64_t *alive,
                          const uint8_t *left, uint8_t wanted, int bit, const uint64_t *failed,
                          const int n_words, int32_t *who_below, uint64_t *mask_below,
                          uint64_t *alive_below)
{
    int64_t k = 0;
    for (int64_t e = 0; e < n; e++) {
        const uint64_t violated = mask[e] | (uint64_t)(left[who[e]] ^ wanted) << bit;
        const uint64_t apart = 0 - (violated >> bit & 1);
        uint64_t any = 0;
        for (int w = 0; w < n_words; w++) {
            const uint64_t left_over = alive[e * n_words + w] & ~(failed[w] & apart);
            alive_below[k * n_words + w] = left_over;
            any |= left_over;
        }
        who_below[k] = who[e];
        mask_below[k] = violated;
        k += any != 0;
    }
    return k;
}

/* One side of a split. Explained row e, number who[e], violates the players mask[e] and is paired
 * with the rows in alive[e * n_words:]; those in `failed` violate the split's player. A pair whose
 * rows both do is dropped, and so is an explained row that has no pair. How many are left. */
CLONES static int64_t pair_step(int64_t n, const int32_t *who, const uint64_t *mask,
                                const uint64_t *alive, const uint8_t *left, uint8_t wanted, int bit,
                                const uint64_t *failed, int64_t n_words, int32_t *who_below,
                                uint64_t *mask_below, uint64_t *alive_below)
{
#define KEEP(N) keep_some(n, who, mask, alive, left, wanted, bit, failed, N, who_below, mask_below, alive_below)
    if (n_words == 16)
        return KEEP(16);
    if (n_words == 8)
        return KEEP(8);
    if (n_words == 4)
        return KEEP(4);
    return KEEP((int)n_words);
#undef KEEP
}

/* Explained rows at a leaf: row e, number who[e] of its block, violates the players mask[e] of the path
 * and is paired with the rows in alive[e * n_words:], z of which violates missed[z]. */
typedef struct {
    int64_t n;
    const int32_t *who;
    const uint64_t *mask, *alive;
    int64_t n_words;
    const uint64_t *missed;
    const double *share;        /* by z */
    /* worth[(kind * n_sizes + a) * n_sizes + b] to players of a pair whose rows violate a and b. For
     * one player: violated by z, by the explained row. For two: both by z, both by the explained row,
     * one by each. */
    const double *worth;
    int64_t n_sizes;
    int64_t n_quads;            /* QUAD * n_quads is at least the number of players */
    double *values;             /* room for a number each player, or each two of them */
    int64_t n_found;            /* values that are wanted: number place[i] goes to column[i] */
    const int64_t *place, *column;
    const double *leaf_value;
    int64_t n_leaf_values;
    double *gained;             /* gained[who * row_size + column + k], for value k of the leaf */
    int64_t row_size;
} PairLeaf;

/* Add the values of row e, times those of the leaf, to what it has gained. */
INLINED void add_values(const PairLeaf *leaf, int64_t e)
{
    double *const gained = leaf->gained + leaf->who[e] * leaf->row_size;
    const double *const values = leaf->values;
    const int64_t *const place = leaf->place, *const column = leaf->column;
    const int64_t n_found = leaf->n_found;
    for (int64_t k = 0; k < leaf->n_leaf_values; k++) {
        const double factor = leaf->leaf_value[k];
        for (int64_t i = 0; i < n_found; i++)
            gained[column[i] + k] += factor * values[place[i]];
    }
}

/* Those of at most 64 words that are not zero, a bit each: most are, and to find out one by one costs
 * a wrong guess each. */
INLINED uint64_t words_in_use(const uint64_t *words, int64_t n_words)
{
    uint64_t used = 0;
    for (int64_t w = 0; w < n_words; w++)
        used |= (uint64_t)(words[w] != 0) << w;
    return used;
}

/* The value of each player for row e, from all its pairs: those that z violates are worth something
 * pair by pair, those that the row itself violates the same to each. */
INLINED void single_values(const PairLeaf *leaf, int64_t e, const int n_quads)
{
    const uint64_t *const alive = leaf->alive + e * leaf->n_words, *const missed = leaf->missed;
    const uint64_t mask = leaf->mask[e];
    const double *const by_other = leaf->worth + popcount_64(mask) * leaf->n_sizes;
    const double *const by_row = by_other + leaf->n_sizes * leaf->n_sizes;
    const double *const share = leaf->share;
    quad sum[MOST_QUADS];
    double total = 0.0;
    memset(sum, 0, n_quads * sizeof(quad));
    for (uint64_t words = words_in_use(alive, leaf->n_words); words; words &= words - 1) {
        const int64_t w = lowest_bit_64(words);
        uint64_t rest = alive[w];
        do {
            const int64_t z = 64 * w + lowest_bit_64(rest);
            const uint64_t others = missed[z];
            const int64_t b = popcount_64(others);
            const double worth = share[z] * by_other[b];
            total += share[z] * by_row[b];
            for (int c = 0; c < n_quads; c++)
                QUAD_ADD(sum[c], worth, quad_kept[others >> (QUAD * c) & 15]);
            rest &= rest - 1;
        } while (rest);
    }
    for (int c = 0; c < n_quads; c++) {
        QUAD_ADD(sum[c], total, quad_kept[mask >> (QUAD * c) & 15]);
        ((quad *)leaf->values)[c] = sum[c];
    }
}

/* The values of two players j < k for row e: values[j * QUAD * n_quads + k]. */
INLINED void double_values(const PairLeaf *leaf, int64_t e)
{
    const uint64_t *const alive = leaf->alive + e * leaf->n_words;
    const uint64_t mask = leaf->mask[e];
    const int64_t n_quads = leaf->n_quads, size = leaf->n_sizes * leaf->n_sizes;
    const double *const by_other = leaf->worth + popcount_64(mask) * leaf->n_sizes;
    const double *const by_row = by_other + size, *const by_each = by_row + size;
    memset(leaf->values, 0, (QUAD * n_quads) * (QUAD * n_quads) * sizeof(double));
    for (int64_t w = 0; w < leaf->n_words; w++)
        for (uint64_t rest = alive[w]; rest; rest &= rest - 1) {
            const int64_t z = 64 * w + lowest_bit_64(rest);
            const uint64_t others = leaf->missed[z];
            const int64_t b = popcount_64(others);
            const double both_other = leaf->share[z] * by_other[b];
            const double both_row = leaf->share[z] * by_row[b];
            const double unlike = leaf->share[z] * by_each[b];
            for (uint64_t left = mask | others; left; left &= left - 1) {
                const int j = lowest_bit_64(left);
                const int is_others = (int)(others >> j & 1);
                const double alike = is_others ? both_other : both_row;
                const uint64_t later = left & (left - 1);
                const uint64_t same = later & (is_others ? others : mask);
                quad *const row = (quad *)(leaf->values + j * QUAD * n_quads);
                for (int64_t c = j / QUAD; c < n_quads; c++) {
                    QUAD_ADD(row[c], alike, quad_kept[same >> (QUAD * c) & 15]);
                    QUAD_ADD(row[c], unlike, quad_kept[(later & ~same) >> (QUAD * c) & 15]);
                }
            }
        }
}

INLINED void add_singles_of(const PairLeaf *leaf, const int n_quads)
{
    for (int64_t e = 0; e < leaf->n; e++) {
        single_values(leaf, e, n_quads);
        add_values(leaf, e);
    }
}

/* Add what the leaf is worth to single players. */
CLONES static void add_singles(const PairLeaf *leaf)
{
    if (leaf->n_quads == 3)
        add_singles_of(leaf, 3);
    else if (leaf->n_quads == 2)
        add_singles_of(leaf, 2);
    else if (leaf->n_quads == 4)
        add_singles_of(leaf, 4);
    else
        add_singles_of(leaf, (int)leaf->n_quads);
}

/* Add what the leaf is worth to two players each. */
CLONES static void add_doubles(const PairLeaf *leaf)
{
    for (int64_t e = 0; e < leaf->n; e++) {
        double_values(leaf, e);
        add_values(leaf, e);
    }
}

#endif
