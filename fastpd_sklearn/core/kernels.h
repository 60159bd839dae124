/* The inner loops over a block of rows. Each is simple enough for the compiler to vectorise;
 * where the platform has ifunc, every loop is built for several instruction sets and the best
 * one is chosen at load time. All of them are exact, so the choice never changes a bit. */
#ifndef FASTPD_KERNELS_H
#define FASTPD_KERNELS_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#ifdef FASTPD_TARGET_CLONES
#define CLONES __attribute__((unused, target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#elif defined(__GNUC__)
#define CLONES __attribute__((unused))
#else
#define CLONES
#endif

/* Before a loop whose numbers do not depend on each other: what it writes it does not read. Compilers
 * would else compare all addresses each time. */
#if defined(__clang__)
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define INDEPENDENT _Pragma("GCC ivdep")
#else
#define INDEPENDENT
#endif

#if defined(_MSC_VER)
#include <intrin.h>
static __inline int64_t popcount_64(uint64_t x) { return (int64_t)__popcnt64(x); }
static __inline int lowest_bit_64(uint64_t x) { unsigned long i; _BitScanForward64(&i, x); return (int)i; }
static __inline int highest_bit_64(uint64_t x) { unsigned long i; _BitScanReverse64(&i, x); return (int)i; }
#else
static inline int64_t popcount_64(uint64_t x) { return __builtin_popcountll(x); }
static inline int lowest_bit_64(uint64_t x) { return __builtin_ctzll(x); }
static inline int highest_bit_64(uint64_t x) { return 63 - __builtin_clzll(x); }
#endif

/* rank[r] = number of edges below x[r] (or not above it, where STRICT). */
#define DEFINE_RANK(NAME, TYPE, BELOW)                                                     \
    CLONES static void NAME##_scan(const TYPE *x, int64_t m, const TYPE *edge,             \
                                   int64_t n_edges, uint32_t *rank)                        \
    {                                                                                      \
        for (int64_t r = 0; r < m; r++)                                                    \
            rank[r] = 0;                                                                   \
        for (int64_t e = 0; e < n_edges; e++) {                                            \
            const TYPE t = edge[e];                                                        \
            for (int64_t r = 0; r < m; r++)                                                \
                rank[r] += (t BELOW x[r]);                                                 \
        }                                                                                  \
    }                                                                                      \
    CLONES static void NAME##_bisect(const TYPE *x, int64_t m, const TYPE *edge,           \
                                     int64_t n_edges, uint32_t *rank)                      \
    {                                                                                      \
        for (int64_t r = 0; r < m; r++)                                                    \
            rank[r] = 0;                                                                   \
        /* invariant: the rank lies in [rank[r], rank[r] + left] */                        \
        int32_t left = (int32_t)n_edges;                                                   \
        while (left > 0) {                                                                 \
            const int32_t half = (left + 1) / 2;                                           \
            for (int64_t r = 0; r < m; r++) {                                              \
                const int32_t here = (int32_t)rank[r];                                     \
                rank[r] = (uint32_t)(here + ((edge[here + half - 1] BELOW x[r]) ? half : 0)); \
            }                                                                              \
            left -= half;                                                                  \
        }                                                                                  \
    }                                                                                      \
    static inline void NAME(const TYPE *x, int64_t m, const TYPE *edge, int64_t n_edges,   \
                            uint32_t *rank)                                                \
    {                                                                                      \
        if (n_edges <= 48)                                                                 \
            NAME##_scan(x, m, edge, n_edges, rank);                                        \
        else                                                                               \
            NAME##_bisect(x, m, edge, n_edges, rank);                                      \
    }

DEFINE_RANK(rank_float, float, <)
DEFINE_RANK(rank_float_strict, float, <=)
DEFINE_RANK(rank_double, double, <)
DEFINE_RANK(rank_double_strict, double, <=)

/* Write ranks as codes, the largest code where x is NaN. */
#define DEFINE_STORE(NAME, TYPE, CODE)                                                     \
    CLONES static void NAME(const TYPE *x, const uint32_t *rank, int64_t m, CODE *code)    \
    {                                                                                      \
        for (int64_t r = 0; r < m; r++)                                                    \
            code[r] = (x[r] == x[r]) ? (CODE)rank[r] : (CODE)-1;                           \
    }

DEFINE_STORE(store_float_8, float, uint8_t)
DEFINE_STORE(store_float_16, float, uint16_t)
DEFINE_STORE(store_float_32, float, uint32_t)
DEFINE_STORE(store_double_8, double, uint8_t)
DEFINE_STORE(store_double_16, double, uint16_t)
DEFINE_STORE(store_double_32, double, uint32_t)

/* left[r] = 1 where the code lies in the cyclic interval [low, low + span]. */
#define DEFINE_INTERVAL(NAME, CODE)                                                        \
    CLONES static void NAME(const CODE *code, int64_t m, CODE low, CODE span, uint8_t *left) \
    {                                                                                      \
        for (int64_t r = 0; r < m; r++)                                                    \
            left[r] = (CODE)(code[r] - low) <= span;                                       \
    }

DEFINE_INTERVAL(in_interval_8, uint8_t)
DEFINE_INTERVAL(in_interval_16, uint16_t)
DEFINE_INTERVAL(in_interval_32, uint32_t)

/* Four tests at a time, each whether the code lies in a cyclic interval: pattern[r] = four bits, and
 * pattern[r] |= four more from bit 4 on. */
#define DEFINE_FOUR(CODE, WIDTH)                                                           \
    typedef struct {                                                                       \
        const CODE *code;                                                                  \
        CODE low, span;                                                                    \
    } interval_##WIDTH;                                                                    \
    static inline CODE bit_##WIDTH(const interval_##WIDTH test, int64_t r, CODE bit)       \
    {                                                                                      \
        return (CODE)(test.code[r] - test.low) <= test.span ? bit : 0;                     \
    }                                                                                      \
    CLONES static void set_four_##WIDTH(uint16_t *pattern, const interval_##WIDTH *tests,  \
                                        int64_t m)                                         \
    {                                                                                      \
        const interval_##WIDTH a = tests[0], b = tests[1], c = tests[2], d = tests[3];     \
        for (int64_t r = 0; r < m; r++)                                                    \
            pattern[r] = (CODE)(bit_##WIDTH(a, r, 1) | bit_##WIDTH(b, r, 2)                \
                                | bit_##WIDTH(c, r, 4) | bit_##WIDTH(d, r, 8));            \
    }                                                                                      \
    CLONES static void or_four_##WIDTH(uint16_t *pattern, const interval_##WIDTH *tests,   \
                                       int64_t m)                                          \
    {                                                                                      \
        const interval_##WIDTH a = tests[0], b = tests[1], c = tests[2], d = tests[3];     \
        for (int64_t r = 0; r < m; r++)                                                    \
            pattern[r] |= (CODE)(bit_##WIDTH(a, r, 16) | bit_##WIDTH(b, r, 32)             \
                                 | bit_##WIDTH(c, r, 64) | bit_##WIDTH(d, r, 128));        \
    }

DEFINE_FOUR(uint8_t, 8)
DEFINE_FOUR(uint16_t, 16)

/* What a test above does to a pattern: where the probed bit of the pattern above is as wanted some
 * bits are set, and where it is not some are cleared. */
typedef struct {
    uint16_t probe, wanted, set, clear;
} passing;

static inline uint16_t passed(uint16_t pattern, uint16_t other, const passing test)
{
    const uint16_t met = (uint16_t)((other & test.probe) == test.wanted ? 0xFFFF : 0);
    return (uint16_t)((pattern | (met & test.set)) & (met | (uint16_t)~test.clear));
}

/* pattern[r] |= what of another pattern is above `down`, from `shift` on; then three tests. */
CLONES static void or_above_16(uint16_t *pattern, const uint16_t *other, int down, int shift,
                               const passing *tests, int64_t m)
{
    const passing a = tests[0], b = tests[1], c = tests[2];
    for (int64_t r = 0; r < m; r++) {
        const uint16_t from = other[r];
        uint16_t to = (uint16_t)(pattern[r] | (uint16_t)((uint16_t)(from >> down) << shift));
        to = passed(to, from, a);
        to = passed(to, from, b);
        pattern[r] = passed(to, from, c);
    }
}

/* Three more of them. */
CLONES static void pass_16(uint16_t *pattern, const uint16_t *other, const passing *tests, int64_t m)
{
    const passing a = tests[0], b = tests[1], c = tests[2];
    for (int64_t r = 0; r < m; r++)
        pattern[r] = passed(passed(passed(pattern[r], other[r], a), other[r], b), other[r], c);
}

/* masks[a] is the mask that goes with node bits a. Set a player's bit where the node at `place` is
 * passed in the wanted direction. */
CLONES static void or_passing_32(uint32_t *masks, int place, int wanted, uint32_t bit, int64_t n)
{
    for (uint32_t a = 0; a < (uint32_t)n; a++)
        masks[a] |= (a >> place & 1) == (uint32_t)wanted ? bit : 0;
}

/* Clear it where it is not. */
CLONES static void and_passing_32(uint32_t *masks, int place, int wanted, uint32_t bit, int64_t n)
{
    for (uint32_t a = 0; a < (uint32_t)n; a++)
        masks[a] &= ~((a >> place & 1) == (uint32_t)wanted ? 0 : bit);
}

/* One layer of a product of 2 x 2 factors: the table's halves x[p] (bit 0) and x[half + p] (bit 1)
 * become y[2p] and y[2p + 1]. See values_everywhere. */
CLONES static void apply_mixture(const double *x, double *y, int64_t half, double t)
{
    for (int64_t p = 0; p < half; p++) {
        const double a = x[p], b = x[half + p];
        y[2 * p] = (1.0 - t) * b;
        y[2 * p + 1] = t * a + b;
    }
}

/* The same in place, each number staying where it is. */
CLONES static void mix_in_place(double *low, double *high, int64_t half, double t)
{
    for (int64_t p = 0; p < half; p++) {
        const double a = low[p], b = high[p];
        low[p] = (1.0 - t) * b;
        high[p] = t * a + b;
    }
}

CLONES static void apply_difference(const double *x, double *y, int64_t half)
{
    for (int64_t p = 0; p < half; p++) {
        y[2 * p] = -x[half + p];
        y[2 * p + 1] = x[p];
    }
}

/* out[p] += weight * x[p] */
CLONES static void add_scaled(double *out, const double *x, double weight, int64_t size)
{
    for (int64_t p = 0; p < size; p++)
        out[p] += weight * x[p];
}

/* --- look-ups in a table that has the values of a pattern side by side -------------------------- */

/* out[k][first + r] += table[index[r] * width + k] for rows r and columns k, of places r on. */
#define DEFINE_GATHER_ROWS(NAME, INDEX)                                                    \
    static inline void NAME##_rows(double *const *out, int64_t first, const double *table, \
                                   int64_t width, const INDEX *index, int64_t r, int64_t m) \
    {                                                                                      \
        for (; r < m; r++)                                                                 \
            for (int64_t k = 0; k < width; k++)                                            \
                out[k][first + r] += table[index[r] * width + k];                          \
    }

DEFINE_GATHER_ROWS(gather_16, uint16_t)
DEFINE_GATHER_ROWS(gather_32, uint32_t)

/* The same of all rows, for a table of `size` numbers. Four rows and four columns make a square that
 * is read by rows and added by columns: between the two it is turned over in registers, so that no
 * value is looked up by itself. Two squares go together, one below the other. The last square of a
 * row may reach into what follows it: a table has three numbers to spare. */
#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define PICK(A, B, I, J, K, L) __builtin_shufflevector(A, B, I, J, K, L)
#endif
#endif

#if defined(PICK)
enum {
    ROWS_AHEAD = 64,        /* whose entries are found, and asked for, at a time */
    FAST_NUMBERS = 1 << 12, /* of a table that is in a fast cache without that */
    LINE = 8                /* numbers */
};

typedef double four __attribute__((vector_size(32), aligned(8), may_alias));

typedef struct {
    four column[4];
} square;

static inline square read_square(const double *w, const double *x, const double *y, const double *z)
{
    const four p = *(const four *)w, q = *(const four *)x;
    const four s = *(const four *)y, t = *(const four *)z;
    const four pq_even = PICK(p, q, 0, 4, 2, 6), pq_odd = PICK(p, q, 1, 5, 3, 7);
    const four st_even = PICK(s, t, 0, 4, 2, 6), st_odd = PICK(s, t, 1, 5, 3, 7);
    return (square){{PICK(pq_even, st_even, 0, 1, 4, 5), PICK(pq_odd, st_odd, 0, 1, 4, 5),
                     PICK(pq_even, st_even, 2, 3, 6, 7), PICK(pq_odd, st_odd, 2, 3, 6, 7)}};
}

static inline void add_two(double *out, four above, four below)
{
    *(four *)out += above;
    *(four *)(out + 4) += below;
}

/* Add the entries of n rows, a multiple of eight; those of the rows ahead are asked for. */
static inline void add_entries(double *const *out, int64_t first, int64_t width,
                               const double *const *entry, int64_t n,
                               const double *const *ahead, int64_t n_asked)
{
    for (int64_t r = 0; r < n; r += 8) {
        const double *const *row = entry + r;
        const int64_t at = first + r;
        if (r < n_asked)
            for (int i = 0; i < 8; i++) {
                __builtin_prefetch(ahead[r + i]);
                __builtin_prefetch(ahead[r + i] + LINE);
            }
        for (int64_t k = 0; k < width; k += 4) {
            const square s = read_square(row[0] + k, row[1] + k, row[2] + k, row[3] + k);
            const square t = read_square(row[4] + k, row[5] + k, row[6] + k, row[7] + k);
            add_two(out[k] + at, s.column[0], t.column[0]);
            if (k + 1 < width)
                add_two(out[k + 1] + at, s.column[1], t.column[1]);
            if (k + 2 < width)
                add_two(out[k + 2] + at, s.column[2], t.column[2]);
            if (k + 3 < width)
                add_two(out[k + 3] + at, s.column[3], t.column[3]);
        }
    }
}

#define DEFINE_GATHER(NAME, INDEX)                                                         \
    static inline int64_t NAME##_find(const double **entry, const double *table,           \
                                      int64_t width, const INDEX *index, int64_t left)     \
    {                                                                                      \
        const int64_t n = left < ROWS_AHEAD ? left : ROWS_AHEAD;                           \
        for (int64_t r = 0; r < n; r++)                                                    \
            entry[r] = table + (uint64_t)index[r] * (uint32_t)width;                       \
        return n;                                                                          \
    }                                                                                      \
    CLONES static void NAME(double *const *out, int64_t first, const double *table,        \
                            int64_t width, int64_t size, const INDEX *index, int64_t m)    \
    {                                                                                      \
        const double *entries[2][ROWS_AHEAD];                                              \
        const int64_t eights = m / 8 * 8;                                                  \
        int64_t r = 0, n = NAME##_find(entries[0], table, width, index, eights), n_ahead;  \
        for (int which = 0; r < eights; which = !which, r += n, n = n_ahead) {             \
            n_ahead = NAME##_find(entries[!which], table, width, index + r + n,            \
                                  eights - r - n);                                         \
            add_entries(out, first + r, width, entries[which], n, entries[!which],         \
                        size > FAST_NUMBERS ? n_ahead : 0);                                \
        }                                                                                  \
        NAME##_rows(out, first, table, width, index, r, m);                                \
    }
#else
#define DEFINE_GATHER(NAME, INDEX)                                                         \
    static inline void NAME(double *const *out, int64_t first, const double *table,        \
                            int64_t width, int64_t size, const INDEX *index, int64_t m)    \
    {                                                                                      \
        (void)size;                                                                        \
        NAME##_rows(out, first, table, width, index, 0, m);                                \
    }
#endif

DEFINE_GATHER(gather_16, uint16_t)
DEFINE_GATHER(gather_32, uint32_t)

/* --- the walk of core/path_walk: WALK_LANES rows side by side at each quadrature node t --------- */

enum { WALK_LANES = 8 };

/* A number for each of the rows. Compilers that have vectors are told to use them: left to itself
 * gcc takes the loop over the nodes for the one to vectorise, and shuffles. */
#if defined(__GNUC__)
typedef double lanes __attribute__((vector_size(64), aligned(8), may_alias));
#define LANES_ADD(Y, A, X) ((Y) += (A) * (X))
#define LANES_MULTIPLY(Y, X) ((Y) *= (X))
#else
typedef struct { double row[WALK_LANES]; } lanes;
#define LANES_ADD(Y, A, X)                                                                 \
    for (int r = 0; r < WALK_LANES; r++)                                                   \
        (Y).row[r] += (A) * (X).row[r]
#define LANES_MULTIPLY(Y, X)                                                               \
    for (int r = 0; r < WALK_LANES; r++)                                                   \
        (Y).row[r] *= (X).row[r]
#endif

/* The rows that are within all of the player's tests so far and go left at its next one, those that
 * go right, and those that failed a test above, each by ones and zeros. */
CLONES static void walk_sides(const double *__restrict met, const uint8_t *__restrict left,
                              double *__restrict at_left, double *__restrict at_right,
                              double *__restrict gone)
{
    for (int r = 0; r < WALK_LANES; r++) {
        at_left[r] = (double)left[r] * met[r];
        at_right[r] = met[r] - at_left[r];
        gone[r] = 1.0 - met[r];
    }
}

/* For the two edges below a split, that take the player's degree from q to q_below: by what the
 * player's factor t p + (1 - t) q grows for rows that keep p = 1 and for those that go from 1 to 0,
 * and how much (p - q) / (t p + (1 - t) q) does. For p = 0 that is -1 / (1 - t), `failed`, whatever
 * q. The factor before is t + (1 - t) q, never zero. */
CLONES static void walk_factors(int64_t n, const double *__restrict t,
                                const double *__restrict failed, double q,
                                const double *q_below, double *__restrict kept,
                                double *__restrict lost, double *__restrict gain_kept,
                                double *__restrict gain_lost)
{
    const double a = q_below[0], b = q_below[1];
    for (int64_t k = 0; k < n; k++) {
        const double rest = 1.0 - t[k], over = 1.0 / (t[k] + rest * q);
        const double before = (1.0 - q) * over;
        const double factor_a = t[k] + rest * a, factor_b = t[k] + rest * b;
        kept[k] = factor_a * over;
        kept[n + k] = factor_b * over;
        lost[k] = rest * a * over;
        lost[n + k] = rest * b * over;
        gain_kept[k] = (1.0 - a) / factor_a - before;
        gain_kept[n + k] = (1.0 - b) / factor_b - before;
        gain_lost[k] = failed[k] - before;
    }
}

/* y = the products x with the player's factor brought up to date. */
CLONES static void walk_down(int64_t n, const double *kept_row, const double *lost_row,
                             const double *gone_row, const double *kept, const double *lost,
                             double gone, const double *x, double *y)
{
    const lanes a = *(const lanes *)kept_row, b = *(const lanes *)lost_row;
    lanes c = {0.0};
    LANES_ADD(c, gone, *(const lanes *)gone_row);
    for (int64_t k = 0; k < n; k++) {
        lanes factor = c;
        LANES_ADD(factor, kept[k], a);
        LANES_ADD(factor, lost[k], b);
        LANES_MULTIPLY(factor, ((const lanes *)x)[k]);
        ((lanes *)y)[k] = factor;
    }
}

/* total += factor * below, and gained += the sum over the nodes of the player's gain times that. */
CLONES static void walk_up(int64_t n, const double *kept_row, const double *lost_row,
                           const double *gain_kept, const double *gain_lost, double factor,
                           const double *below, double *total, double *gained)
{
    lanes a = {0.0}, b = {0.0};
    for (int64_t k = 0; k < n; k++) {
        const lanes x = ((const lanes *)below)[k];
        LANES_ADD(a, gain_kept[k], x);
        LANES_ADD(b, gain_lost[k], x);
        LANES_ADD(((lanes *)total)[k], factor, x);
    }
    LANES_MULTIPLY(a, *(const lanes *)kept_row);
    LANES_MULTIPLY(b, *(const lanes *)lost_row);
    LANES_ADD(a, 1.0, b);
    LANES_ADD(*(lanes *)gained, factor, a);
}

/* x = what walk_up adds up over the nodes: the gain of the edge's player times the sums below. */
CLONES static void walk_gain(int64_t n, const double *kept_row, const double *lost_row,
                             const double *gain_kept, const double *gain_lost, double factor,
                             const double *below, double *x)
{
    const lanes a = *(const lanes *)kept_row, b = *(const lanes *)lost_row;
    for (int64_t k = 0; k < n; k++) {
        lanes gain = {0.0}, whole = {0.0};
        LANES_ADD(gain, gain_kept[k], a);
        LANES_ADD(gain, gain_lost[k], b);
        LANES_MULTIPLY(gain, ((const lanes *)below)[k]);
        LANES_ADD(whole, factor, gain);
        ((lanes *)x)[k] = whole;
    }
}

/* gained += the sum over the nodes of x times another player's (p - q) / f: `kept` for the rows that
 * it still meets, and `failed`, of which `all_failed` is the sum, for the others. */
CLONES static void walk_pair(int64_t n, const double *met_row, const double *kept,
                             const double *all_failed, const double *x, double *gained)
{
    const lanes met = *(const lanes *)met_row;
    lanes a = {0.0}, gone = {0.0};
    for (int64_t k = 0; k < n; k++)
        LANES_ADD(a, kept[k], ((const lanes *)x)[k]);
    LANES_MULTIPLY(a, met);
    LANES_ADD(*(lanes *)gained, 1.0, a);
    for (int r = 0; r < WALK_LANES; r++)
        ((double *)&gone)[r] = 1.0 - met_row[r];
    LANES_MULTIPLY(gone, *(const lanes *)all_failed);
    LANES_ADD(*(lanes *)gained, 1.0, gone);
}

/* total = the sum over the nodes of factor[k] x[k] */
CLONES static void walk_total(int64_t n, const double *factor, const double *x, double *total)
{
    lanes a = {0.0};
    for (int64_t k = 0; k < n; k++)
        LANES_ADD(a, factor[k], ((const lanes *)x)[k]);
    *(lanes *)total = a;
}

#endif
