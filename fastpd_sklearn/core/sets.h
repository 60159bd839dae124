/* The inner loops of core/set_walk: rows of two sides in sets that have violated the same players, and
 * their meeting. What the instruction set decides is exact. */
#ifndef FASTPD_SETS_H
#define FASTPD_SETS_H

#include "quads.h"

/* Rows in sets that violate the same players: set s, row[first[s]:] and size[s] of them, violates
 * mask[s]. Sets are in the order of their first rows. */
typedef struct {
    int64_t n;
    uint64_t *mask;
    int32_t *first, *size, *row;
} Sets;

/* Numbers of masks by their value, or by a hash of it where masks have more bits than DIRECT_BITS.
 * All are zero between two uses. */
enum { DIRECT_BITS = 14 };
typedef struct {
    int32_t *number;            /* one more than the number of a mask; 0: none so far */
    uint64_t *key;              /* by slot, of a hash */
    int shift;                  /* 64 - log2 of the hash's slots, twice as many as there are rows */
} Numbers;

INLINED int64_t slot_of(const Numbers *numbers, uint64_t mask, const int is_direct)
{
    if (is_direct)
        return (int64_t)mask;
    int64_t slot = (int64_t)(mask * 0x9E3779B97F4A7C15u >> numbers->shift);
    const int64_t last = ((int64_t)1 << (64 - numbers->shift)) - 1;
    while (numbers->number[slot] && numbers->key[slot] != mask)
        slot = (slot + 1) & last;
    numbers->key[slot] = mask;
    return slot;
}

INLINED void forget(const Numbers *numbers, const uint64_t *mask, int64_t n, const int is_direct)
{
    if (is_direct) {
        for (int64_t s = 0; s < n; s++)
            numbers->number[mask[s]] = 0;
    } else {
        memset(numbers->number, 0, ((size_t)1 << (64 - numbers->shift)) * sizeof(int32_t));
    }
}

#define VIOLATED(R) (at[R] | (uint64_t)(left[R] ^ wanted) << bit)

/* For masks of so many bits: those below a split, of rows that violate at[r] above it; the sets of the
 * rows there, with the number of each row's set; and the sets with nothing but their sizes. */
#define DEFINE_MASKS(NAME, MASK)                                                           \
    CLONES static void violate_##NAME(int64_t n, const MASK *at, const uint8_t *left,      \
                                      uint8_t wanted, int bit, MASK *below)                \
    {                                                                                      \
        for (int64_t r = 0; r < n; r++)                                                    \
            below[r] = at[r] | (MASK)((MASK)(left[r] ^ wanted) << bit);                    \
    }                                                                                      \
    INLINED void number_of_##NAME(int64_t n, const MASK *at, const uint8_t *left, uint8_t wanted, \
                                  int bit, const Numbers *numbers, Sets *sets, int32_t *set_of, \
                                  const int is_direct)                                     \
    {                                                                                      \
        int32_t k = 0;                                                                     \
        for (int64_t r = 0; r < n; r++) {                                                  \
            const uint64_t mask = VIOLATED(r);                                             \
            int32_t *const number = numbers->number + slot_of(numbers, mask, is_direct);   \
            const int32_t is_new = *number == 0;                                           \
            const int32_t s = is_new ? k : *number - 1;                                    \
            *number = s + 1;                                                               \
            sets->mask[k] = mask;                                                          \
            sets->size[k] = 0;                                                             \
            k += is_new;                                                                   \
            sets->size[s] += 1;                                                            \
            set_of[r] = s;                                                                 \
        }                                                                                  \
        sets->n = k;                                                                       \
        forget(numbers, sets->mask, k, is_direct);                                         \
    }                                                                                      \
    static void number_##NAME(int64_t n, const MASK *at, const uint8_t *left, uint8_t wanted, \
                              int bit, int n_bits, const Numbers *numbers, Sets *sets,     \
                              int32_t *set_of)                                             \
    {                                                                                      \
        if (n_bits <= DIRECT_BITS)                                                         \
            number_of_##NAME(n, at, left, wanted, bit, numbers, sets, set_of, 1);          \
        else                                                                               \
            number_of_##NAME(n, at, left, wanted, bit, numbers, sets, set_of, 0);          \
    }                                                                                      \
    static void count_##NAME(int64_t n, const MASK *at, const uint8_t *left, uint8_t wanted, \
                             int bit, const Numbers *numbers, Sets *sets)                  \
    {                                                                                      \
        int64_t k = 0;                                                                     \
        for (int64_t r = 0; r < n; r++) {                                                  \
            const uint64_t mask = VIOLATED(r);                                             \
            const int32_t size = numbers->number[mask];                                    \
            sets->mask[k] = mask;                                                          \
            k += size == 0;                                                                \
            numbers->number[mask] = size + 1;                                              \
        }                                                                                  \
        sets->n = k;                                                                       \
        for (int64_t s = 0; s < k; s++)                                                    \
            sets->size[s] = numbers->number[sets->mask[s]];                                \
        forget(numbers, sets->mask, k, 1);                                                 \
    }

DEFINE_MASKS(32, uint32_t)
DEFINE_MASKS(64, uint64_t)
#undef VIOLATED

/* Bring the rows of each set together. */
static inline void sort_rows(int64_t n, const int32_t *set_of, const int32_t *row, Sets *sets)
{
    int32_t end = 0;
    for (int64_t s = 0; s < sets->n; s++) {
        sets->first[s] = end;
        end += sets->size[s];
    }
    for (int64_t r = 0; r < n; r++)
        sets->row[sets->first[set_of[r]]++] = row[r];
    for (int64_t s = 0; s < sets->n; s++)
        sets->first[s] -= sets->size[s];
}

/* out[i] = in[index[i]] */
#define DEFINE_TAKE(NAME, CODE)                                                            \
    static inline void take_##NAME(const CODE *in, const int32_t *index, int64_t n, CODE *out) \
    {                                                                                      \
        for (int64_t i = 0; i < n; i++)                                                    \
            out[i] = in[index[i]];                                                         \
    }
DEFINE_TAKE(8, uint8_t)
DEFINE_TAKE(16, uint16_t)
DEFINE_TAKE(32, uint32_t)
DEFINE_TAKE(64, uint64_t)

/* Rows whose set is kept; how many they are. */
static inline int64_t kept_rows(int64_t n, const int32_t *set_of, const uint8_t *is_kept, int32_t *index)
{
    int64_t k = 0;
    for (int64_t r = 0; r < n; r++) {
        index[k] = (int32_t)r;
        k += is_kept[set_of[r]];
    }
    return k;
}

/* Turn 64 words of 64 bits over: bit i of word k becomes bit k of word i. */
INLINED void transpose_64(uint64_t *word)
{
    uint64_t mask = 0x00000000FFFFFFFFu;
    for (int j = 32; j; j >>= 1, mask ^= mask << j)
        for (int base = 0; base < 64; base += 2 * j)
            for (int k = base; k < base + j; k++) {
                const uint64_t moved = (word[k] >> j ^ word[k + j]) & mask;
                word[k] ^= moved << j;
                word[k + j] ^= moved;
            }
}

/* Words for a bit each of so many sets: a whole number of fours. */
enum { WORDS = 4 };
INLINED int64_t words_of(int64_t n) { return (n + 64 * WORDS - 1) / (64 * WORDS) * WORDS; }

/* Which sets of the other side have violated a player, a bit each: has[bit * n_words:]. The bits of no
 * set are all there is at has[n_bits * n_words:]. */
CLONES static void list_violations(const Sets *others, int n_bits, uint64_t *has)
{
    const int64_t n_words = words_of(others->n);
    for (int64_t w = 0; w < n_words; w++) {
        const int64_t n = others->n - 64 * w;
        uint64_t word[64] = {0};
        if (n > 0) {
            memcpy(word, others->mask + 64 * w, (n < 64 ? n : 64) * sizeof(uint64_t));
            transpose_64(word);
        }
        for (int bit = 0; bit < n_bits; bit++)
            has[bit * n_words + w] = word[bit];
        has[n_bits * n_words + w] = n >= 64 ? 0 : n > 0 ? (uint64_t)-1 << n : (uint64_t)-1;
    }
}

/* The sets of the other side that have violated nobody of a mask, a bit each; whether any. */
INLINED uint64_t apart_from(uint64_t mask, const uint64_t *has, int n_bits, int64_t n_words,
                            uint64_t *apart)
{
    uint64_t any[WORDS] = {0};
    for (int64_t w = 0; w < n_words; w += WORDS) {
        uint64_t met[WORDS];
        memcpy(met, has + n_bits * n_words + w, sizeof met);
        for (uint64_t rest = mask; rest; rest &= rest - 1) {
            const uint64_t *const violate = has + lowest_bit_64(rest) * n_words + w;
            for (int i = 0; i < WORDS; i++)
                met[i] |= violate[i];
        }
        for (int i = 0; i < WORDS; i++) {
            apart[w + i] = ~met[i];
            any[i] |= ~met[i];
        }
    }
    return any[0] | any[1] | any[2] | any[3];
}

/* Which sets of both sides have a partner, that has violated nobody that they have; `room` is for
 * n_bits + 3 bits each other set. */
CLONES static void find_partners(const Sets *sets, const Sets *others, int n_bits, uint64_t *room,
                                 uint8_t *is_kept, uint8_t *is_other_kept)
{
    const int64_t n_words = words_of(others->n);
    uint64_t *const has = room + 2 * n_words, *const met = room, *const apart = room + n_words;
    list_violations(others, n_bits, has);
    memset(met, 0, n_words * sizeof(uint64_t));
    for (int64_t s = 0; s < sets->n; s++) {
        is_kept[s] = apart_from(sets->mask[s], has, n_bits, n_words, apart) != 0;
        for (int64_t w = 0; w < n_words; w++)
            met[w] |= apart[w];
    }
    for (int64_t s = 0; s < others->n; s++)
        is_other_kept[s] = met[s / 64] >> s % 64 & 1;
}

/* What has come to a leaf. Between an explained row that violates the players A and another one that
 * violates B there is something to add where they have nobody in common. */
typedef struct {
    const Sets *explained, *others;
    const double *share;        /* of each set of others */
    const uint64_t *has;        /* see list_violations */
    uint64_t *apart;            /* room for a bit each set of others */
    int32_t *met;               /* room for their numbers, and LISTED more */
    int n_bits;
    int64_t n_words;
    /* worth[(kind * n_sizes + a) * n_sizes + b] to players of a pair whose rows violate a and b. For
     * one player: violated by the other row, by the explained row. For two: both by the other, both by
     * the explained row, one by each. */
    const double *worth;
    int64_t n_sizes;
    int64_t n_quads;            /* QUAD * n_quads is at least the number of players */
    double *values;             /* room for a number each player, or each two of them */
    int64_t n_found;            /* values that are wanted: number place[i] goes to column[i] */
    const int64_t *place, *column;
    const double *leaf_value;
    int64_t n_leaf_values;
    double *gained;             /* gained[row * row_size + column + k], for value k of the leaf */
    int64_t row_size;
} SetLeaf;

/* Add the values of a set, times those of the leaf, to what its rows have gained. */
INLINED void add_values(const SetLeaf *leaf, int64_t s)
{
    const double *const values = leaf->values;
    const int64_t *const place = leaf->place, *const column = leaf->column;
    const int32_t *const row = leaf->explained->row + leaf->explained->first[s];
    const int64_t n_found = leaf->n_found;
    for (int32_t r = 0; r < leaf->explained->size[s]; r++) {
        double *const gained = leaf->gained + row[r] * leaf->row_size;
        for (int64_t k = 0; k < leaf->n_leaf_values; k++) {
            const double factor = leaf->leaf_value[k];
            for (int64_t i = 0; i < n_found; i++)
                gained[column[i] + k] += factor * values[place[i]];
        }
    }
}

/* List the bits of some words; how many they are. Most words have few: LISTED of them are written
 * whether or not there are so many, since nobody could foretell how many there are. */
enum { LISTED = 4 };
INLINED int64_t list_bits(const uint64_t *words, int64_t n_words, int32_t *out)
{
    int64_t n = 0;
    for (int64_t w = 0; w < n_words; w++) {
        uint64_t rest = words[w];
        const int64_t end = n + popcount_64(rest);
        do {
            for (int i = 0; i < LISTED; i++) {
                out[n + i] = (int32_t)(64 * w + lowest_bit_64(rest | (uint64_t)1 << 63));
                rest &= rest - 1;
            }
            n += LISTED;
        } while (n < end);
        n = end;
    }
    return n;
}

/* The value of each player for set s, from the others in leaf->met. Those that the others violate are
 * worth something set by set, those that the row itself violates the same to each. */
INLINED void single_values(const SetLeaf *leaf, int64_t s, int64_t n_met, const int n_quads)
{
    const uint64_t mask = leaf->explained->mask[s], *const missed = leaf->others->mask;
    const double *const by_other = leaf->worth + popcount_64(mask) * leaf->n_sizes;
    const double *const by_row = by_other + leaf->n_sizes * leaf->n_sizes;
    const double *const share = leaf->share;
    quad sum[MOST_QUADS];
    double total = 0.0;
    memset(sum, 0, n_quads * sizeof(quad));
    for (int64_t i = 0; i < n_met; i++) {
        const int32_t z = leaf->met[i];
        const uint64_t others = missed[z];
        const int64_t b = popcount_64(others);
        const double worth = share[z] * by_other[b];
        total += share[z] * by_row[b];
        for (int c = 0; c < n_quads; c++)
            QUAD_ADD(sum[c], worth, quad_kept[others >> (QUAD * c) & 15]);
    }
    for (int c = 0; c < n_quads; c++) {
        QUAD_ADD(sum[c], total, quad_kept[mask >> (QUAD * c) & 15]);
        ((quad *)leaf->values)[c] = sum[c];
    }
}

/* The values of two players j < k for set s: values[j * QUAD * n_quads + k]. To two that the others
 * violate a set is worth something of its own; to one of them and one that the row violates the same
 * whichever this is, and to two that the row violates the same to all. */
INLINED void double_values(const SetLeaf *leaf, int64_t s, int64_t n_met)
{
    const uint64_t mask = leaf->explained->mask[s];
    const int64_t n_quads = leaf->n_quads, size = leaf->n_sizes * leaf->n_sizes;
    const double *const by_other = leaf->worth + popcount_64(mask) * leaf->n_sizes;
    const double *const by_row = by_other + size, *const by_each = by_row + size;
    quad sum[MOST_QUADS];
    double total = 0.0;
    memset(sum, 0, n_quads * sizeof(quad));
    memset(leaf->values, 0, (QUAD * n_quads) * (QUAD * n_quads) * sizeof(double));
    for (int64_t i = 0; i < n_met; i++) {
        const int32_t z = leaf->met[i];
        const uint64_t others = leaf->others->mask[z];
        const int64_t b = popcount_64(others);
        const double both = leaf->share[z] * by_other[b], one = leaf->share[z] * by_each[b];
        total += leaf->share[z] * by_row[b];
        for (int64_t c = 0; c < n_quads; c++)
            QUAD_ADD(sum[c], one, quad_kept[others >> (QUAD * c) & 15]);
        for (uint64_t left = others; left; left &= left - 1) {
            const int j = lowest_bit_64(left);
            quad *const row = (quad *)(leaf->values + j * QUAD * n_quads);
            for (int64_t c = j / QUAD; c < n_quads; c++)
                QUAD_ADD(row[c], both, quad_kept[others >> (QUAD * c) & 15]);
        }
    }
    for (uint64_t left = mask; left; left &= left - 1) {
        const int j = lowest_bit_64(left);
        quad *const row = (quad *)(leaf->values + j * QUAD * n_quads);
        for (int64_t c = 0; c < n_quads; c++) {
            row[c] = sum[c];
            QUAD_ADD(row[c], total, quad_kept[mask >> (QUAD * c) & 15]);
        }
        for (int k = 0; k < j; k++)
            if (!(mask >> k & 1))
                leaf->values[k * QUAD * n_quads + j] = ((double *)sum)[k];
    }
}

#define EACH_SET(VALUES)                                                                   \
    do {                                                                                   \
        int64_t n_pairs_ = 0;                                                              \
        for (int64_t s = 0; s < leaf->explained->n; s++) {                                 \
            const uint64_t mask_ = leaf->explained->mask[s];                               \
            if (!apart_from(mask_, leaf->has, leaf->n_bits, leaf->n_words, leaf->apart))   \
                continue;                                                                  \
            const int64_t n_met = list_bits(leaf->apart, (leaf->others->n + 63) / 64, leaf->met);        \
            VALUES;                                                                        \
            n_pairs_ += n_met;                                                             \
            add_values(leaf, s);                                                           \
        }                                                                                  \
        return n_pairs_;                                                                   \
    } while (0)

INLINED int64_t add_singles_of(const SetLeaf *leaf, const int n_quads)
{
    EACH_SET(single_values(leaf, s, n_met, n_quads));
}

/* Add what the leaf is worth to single players; how many pairs of sets there are. */
CLONES static int64_t add_singles(const SetLeaf *leaf)
{
    if (leaf->n_quads == 3)
        return add_singles_of(leaf, 3);
    if (leaf->n_quads == 2)
        return add_singles_of(leaf, 2);
    if (leaf->n_quads == 4)
        return add_singles_of(leaf, 4);
    return add_singles_of(leaf, (int)leaf->n_quads);
}

/* Add what the leaf is worth to two players each. */
CLONES static int64_t add_doubles(const SetLeaf *leaf)
{
    EACH_SET(double_values(leaf, s, n_met));
}

/* The nodes t of the quadrature for a leaf, and what they are worth: to a player that the other row
 * violates by_other[node * n_sizes + a] times the sums' difference, and so on, as worth in SetLeaf. */
typedef struct {
    int64_t n_nodes;
    const double *node;
    const double *worth;        /* worth[(node * n_kinds + kind) * n_sizes + a] */
    int64_t n_kinds, n_sizes;
} Quadrature;

/* The nodes lie side by side, as many as fill up lanes of four. */
INLINED int64_t lanes_of(const Quadrature *rule) { return (rule->n_nodes + QUAD - 1) / QUAD * QUAD; }

INLINED void sum_block(double *table, int64_t first_bit, int64_t size, const int lanes)
{
    for (int64_t bit = first_bit; bit < size; bit *= 2)
        for (int64_t first = 0; first < size; first += 2 * bit)
            for (int64_t i = first * lanes; i < (first + bit) * lanes; i++)
                table[i + bit * lanes] += table[i];
}

/* table[S * lanes + i] = sum over the sets of others that violate no more than S, of share t_i^|B|. */
enum { NEAR = 128 };            /* sums that fit into the nearest cache */
INLINED void sum_subsets(const SetLeaf *leaf, const Quadrature *rule, double *table, const int lanes)
{
    const Sets *const others = leaf->others;
    const int64_t size = (int64_t)1 << leaf->n_bits;
    double power[DIRECT_BITS + 1][DIRECT_BITS] = {{0}};
    for (int i = 0; i < rule->n_nodes; i++) {
        power[0][i] = 1.0;
        for (int b = 0; b < leaf->n_bits; b++)
            power[b + 1][i] = power[b][i] * rule->node[i];
    }
    memset(table, 0, size * lanes * sizeof(double));
    for (int64_t s = 0; s < others->n; s++) {
        const double *const at = power[popcount_64(others->mask[s])];
        for (int i = 0; i < lanes; i++)
            table[others->mask[s] * lanes + i] = leaf->share[s] * at[i];
    }
    for (int64_t first = 0; first < size; first += NEAR)
        sum_block(table + first * lanes, 1, size < NEAR ? size : NEAR, lanes);
    sum_block(table, NEAR, size, lanes);
}

/* sum of x[i] * (y[i] - z[i]) */
INLINED double weighted_loss(const double *x, const double *y, const double *z, const int lanes)
{
    double sum[QUAD] = {0};
    for (int i = 0; i < lanes; i += QUAD)
        for (int k = 0; k < QUAD; k++)
            sum[k] += x[i + k] * (y[i + k] - z[i + k]);
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

/* What a set is worth by kind, the nodes side by side. */
INLINED void worth_of(const Quadrature *rule, int64_t a, double *worth, const int lanes)
{
    memset(worth, 0, rule->n_kinds * lanes * sizeof(double));
    for (int64_t i = 0; i < rule->n_nodes; i++)
        for (int64_t kind = 0; kind < rule->n_kinds; kind++)
            worth[kind * lanes + i] = rule->worth[(i * rule->n_kinds + kind) * rule->n_sizes + a];
}

static const double no_sums[DIRECT_BITS] = {0};

/* Single players: what the sums lose without a player is what the sets that violate it add. */
INLINED void single_values_of_sums(const SetLeaf *leaf, const Quadrature *rule, const double *table,
                                   uint64_t mask, const int lanes)
{
    const uint64_t rest = (((uint64_t)1 << leaf->n_bits) - 1) & ~mask;
    const double *const all = table + rest * lanes;
    double worth[2 * DIRECT_BITS];
    worth_of(rule, popcount_64(mask), worth, lanes);
    const double total = weighted_loss(worth + lanes, all, no_sums, lanes);
    for (int k = 0; k < leaf->n_bits; k++) {
        const uint64_t player = (uint64_t)1 << k;
        leaf->values[k] = mask & player
            ? total : weighted_loss(worth, all, table + (rest ^ player) * lanes, lanes);
    }
}

/* Two players, as above. */
INLINED void double_values_of_sums(const SetLeaf *leaf, const Quadrature *rule, const double *table,
                                   uint64_t mask, const int lanes)
{
    const int64_t width = QUAD * leaf->n_quads;
    const uint64_t rest = (((uint64_t)1 << leaf->n_bits) - 1) & ~mask;
    const double *const all = table + rest * lanes;
    double worth[3 * DIRECT_BITS], one[DIRECT_BITS], lost[DIRECT_BITS];
    worth_of(rule, popcount_64(mask), worth, lanes);
    const double total = weighted_loss(worth + lanes, all, no_sums, lanes);
    for (int k = 0; k < leaf->n_bits; k++)
        if (rest >> k & 1)
            one[k] = weighted_loss(worth + 2 * lanes, all, table + (rest ^ (uint64_t)1 << k) * lanes, lanes);
    for (int j = 0; j < leaf->n_bits; j++) {
        double *const values = leaf->values + j * width;
        if (mask >> j & 1) {
            for (int k = j + 1; k < leaf->n_bits; k++)
                values[k] = mask >> k & 1 ? total : one[k];
            continue;
        }
        const double *const without = table + (rest ^ (uint64_t)1 << j) * lanes;
        for (int i = 0; i < lanes; i++)
            lost[i] = all[i] - without[i];
        for (int k = j + 1; k < leaf->n_bits; k++) {
            const int64_t other = ((int64_t)1 << k) * lanes;
            values[k] = mask >> k & 1
                ? one[j]
                : weighted_loss(worth, lost, no_sums, lanes) - weighted_loss(worth, all - other, without - other, lanes);
        }
    }
}

INLINED void add_sums_of(const SetLeaf *leaf, const Quadrature *rule, double *table, const int lanes)
{
    sum_subsets(leaf, rule, table, lanes);
    for (int64_t s = 0; s < leaf->explained->n; s++) {
        if (rule->n_kinds == 2)
            single_values_of_sums(leaf, rule, table, leaf->explained->mask[s], lanes);
        else
            double_values_of_sums(leaf, rule, table, leaf->explained->mask[s], lanes);
        add_values(leaf, s);
    }
}

/* The same as add_singles and add_doubles, by sums over subsets; `table` is room for them. */
CLONES static void add_by_sums(const SetLeaf *leaf, const Quadrature *rule, double *table)
{
    if (lanes_of(rule) == QUAD)
        add_sums_of(leaf, rule, table, QUAD);
    else
        add_sums_of(leaf, rule, table, 2 * QUAD);
}

#endif
