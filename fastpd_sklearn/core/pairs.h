/* The inner loops of core/pair_walk: an explained row with the rows of the background that are still
 * paired with it, a bit each. All that is chosen by the instruction set is exact. */
#ifndef FASTPD_PAIRS_H
#define FASTPD_PAIRS_H

#include "kernels.h"

#if defined(__GNUC__)
#define INLINED static inline __attribute__((always_inline))
#else
#define INLINED static inline
#endif

/* Four numbers side by side, and what keeps those of them that belong to players in a set. */
enum { QUAD = 4, MOST_QUADS = 16 };

#if defined(__GNUC__)
typedef double quad __attribute__((vector_size(32), aligned(8), may_alias));
typedef int64_t quad_bits __attribute__((vector_size(32), aligned(8), may_alias));
#define QUAD_ADD(Y, W, KEPT)                                                               \
    do {                                                                                   \
        const quad all_ = {W, W, W, W};                                                    \
        (Y) += (quad)((quad_bits)all_ & *(const quad_bits *)(KEPT));                       \
    } while (0)
#else
typedef struct { double number[QUAD]; } quad;
#define QUAD_ADD(Y, W, KEPT)                                                               \
    for (int i_ = 0; i_ < QUAD; i_++)                                                      \
        (Y).number[i_] += (KEPT)[i_] ? (W) : 0.0
#endif

#define KEPT_1(K) {-(int64_t)((K) & 1), -(int64_t)((K) >> 1 & 1), -(int64_t)((K) >> 2 & 1), -(int64_t)((K) >> 3)}
#define KEPT_4(K) KEPT_1(K), KEPT_1(K + 1), KEPT_1(K + 2), KEPT_1(K + 3)
static const int64_t quad_kept[16][QUAD] = {KEPT_4(0), KEPT_4(4), KEPT_4(8), KEPT_4(12)};

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

/* One row's pairs at a leaf of at most QUAD * n_quads players, added to sums by player: z violates
 * b players, missed[z], and each of them is worth satisfied[b] times its share. Those that the row
 * itself violates are worth the sum of violated[b] times the shares, which is returned. */
INLINED double sum_pairs(const uint64_t *alive, int64_t n_words, const uint64_t *missed,
                         const double *share, const double *satisfied, const double *violated,
                         const int n_quads, quad *sums)
{
    double all = 0.0;
    quad sum[MOST_QUADS];
    for (int c = 0; c < n_quads; c++)
        sum[c] = sums[c];
    for (int64_t w = 0; w < n_words; w++) {
        uint64_t rest = alive[w];
        while (rest) {
            const int64_t z = 64 * w + lowest_bit_64(rest);
            const uint64_t players = missed[z];
            const int64_t b = popcount_64(players);
            const double worth = share[z] * satisfied[b];
            rest &= rest - 1;
            all += share[z] * violated[b];
            for (int c = 0; c < n_quads; c++)
                QUAD_ADD(sum[c], worth, quad_kept[players >> (QUAD * c) & 15]);
        }
    }
    for (int c = 0; c < n_quads; c++)
        sums[c] = sum[c];
    return all;
}

/* What each player of a leaf is worth to a row that violates those in `mask`, from all its pairs.
 * worth[(kind * n_sizes + a) * n_sizes + b] is for a players violated by the row and b by the other,
 * kind 0 for the latter and 1 for the former. */
CLONES static void single_values(uint64_t mask, const uint64_t *alive, int64_t n_words,
                                 const uint64_t *missed, const double *share, const double *worth,
                                 int64_t n_sizes, int64_t n_quads, double *values)
{
    const double *const satisfied = worth + popcount_64(mask) * n_sizes;
    const double *const violated = satisfied + n_sizes * n_sizes;
    quad *const sums = (quad *)values;
    double total;
    memset(values, 0, QUAD * n_quads * sizeof(double));
#define SUM(N) sum_pairs(alive, n_words, missed, share, satisfied, violated, N, sums)
    if (n_quads == 3)
        total = SUM(3);
    else if (n_quads == 2)
        total = SUM(2);
    else if (n_quads == 4)
        total = SUM(4);
    else
        total = SUM((int)n_quads);
#undef SUM
    for (int64_t c = 0; c < n_quads; c++)
        QUAD_ADD(sums[c], total, quad_kept[mask >> (QUAD * c) & 15]);
}

/* The same for two players j < k of the leaf: values[j * QUAD * n_quads + k]. The kinds are: both
 * violated by the other, both by the row, one by each. */
CLONES static void double_values(uint64_t mask, const uint64_t *alive, int64_t n_words,
                                 const uint64_t *missed, const double *share, const double *worth,
                                 int64_t n_sizes, int64_t n_quads, double *values)
{
    const double *const by_other = worth + popcount_64(mask) * n_sizes;
    const double *const by_row = by_other + n_sizes * n_sizes;
    const double *const by_each = by_row + n_sizes * n_sizes;
    memset(values, 0, (QUAD * n_quads) * (QUAD * n_quads) * sizeof(double));
    for (int64_t w = 0; w < n_words; w++)
        for (uint64_t rest = alive[w]; rest; rest &= rest - 1) {
            const int64_t z = 64 * w + lowest_bit_64(rest);
            const uint64_t others = missed[z];
            const int64_t b = popcount_64(others);
            const double alike_row = share[z] * by_row[b], alike_other = share[z] * by_other[b];
            const double unlike = share[z] * by_each[b];
            for (uint64_t left = mask | others; left; left &= left - 1) {
                const int j = lowest_bit_64(left);
                const uint64_t later = left & (left - 1);
                const int is_others = (int)(others >> j & 1);
                const double alike = is_others ? alike_other : alike_row;
                const uint64_t same = later & (is_others ? others : mask);
                quad *const row = (quad *)(values + j * QUAD * n_quads);
                for (int64_t c = j / QUAD; c < n_quads; c++) {
                    QUAD_ADD(row[c], alike, quad_kept[same >> (QUAD * c) & 15]);
                    QUAD_ADD(row[c], unlike, quad_kept[(later & ~same) >> (QUAD * c) & 15]);
                }
            }
        }
}

#endif
