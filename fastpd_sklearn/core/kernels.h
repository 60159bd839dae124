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

/* met[r] = (left[r] == wanted) */
CLONES static void set_equal(uint8_t *met, const uint8_t *left, uint8_t wanted, int64_t m)
{
    for (int64_t r = 0; r < m; r++)
        met[r] = (left[r] == wanted);
}

/* met[r] &= (left[r] == wanted) */
CLONES static void and_equal(uint8_t *met, const uint8_t *left, uint8_t wanted, int64_t m)
{
    for (int64_t r = 0; r < m; r++)
        met[r] &= (left[r] == wanted);
}

/* pattern[r] |= four bits from `shift` on; bit j of row r is bits[j][r] */
CLONES static void or_four_16(uint16_t *pattern, const uint8_t *const *bits, int shift, int64_t m)
{
    const uint8_t *a = bits[0], *b = bits[1], *c = bits[2], *d = bits[3];
    for (int64_t r = 0; r < m; r++) {
        const uint8_t four = (uint8_t)(a[r] | b[r] << 1 | c[r] << 2 | d[r] << 3);
        pattern[r] |= (uint16_t)((uint16_t)four << shift);
    }
}

/* pattern[r] |= bit[r] << shift */
CLONES static void or_bit_16(uint16_t *pattern, const uint8_t *bit, int shift, int64_t m)
{
    for (int64_t r = 0; r < m; r++)
        pattern[r] |= (uint16_t)((uint16_t)bit[r] << shift);
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

/* out[r] += table[index[r]], four rows at a time. The four indices come with one load, and the
 * look-ups are left scalar: the vector gathers of current processors take twice as long. */
static inline void gather_add(double *out, const double *table, const uint16_t *index, int64_t m)
{
    int64_t r = 0;
#if !defined(__BYTE_ORDER__) || __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    for (; r + 4 <= m; r += 4) {
        uint64_t four;
        memcpy(&four, index + r, sizeof four);
        const double a = table[four & 0xffff], b = table[four >> 16 & 0xffff];
        const double c = table[four >> 32 & 0xffff], d = table[four >> 48];
        out[r] += a;
        out[r + 1] += b;
        out[r + 2] += c;
        out[r + 3] += d;
    }
#endif
    for (; r < m; r++)
        out[r] += table[index[r]];
}

/* out[r] += table[index[r] * width] */
static inline void gather_strided(double *out, const double *table, int64_t width,
                                  const uint16_t *index, int64_t m)
{
    for (int64_t r = 0; r < m; r++)
        out[r] += table[index[r] * width];
}

/* out[k][r] += table[index[r] * width + k] for four columns: a look-up reads neighbours. */
static inline void gather_rows(double *const *out, const double *table, int64_t width,
                               const uint16_t *index, int64_t m)
{
    double *const a = out[0], *const b = out[1], *const c = out[2], *const d = out[3];
    for (int64_t r = 0; r < m; r++) {
        const double *entry = table + index[r] * width;
        a[r] += entry[0];
        b[r] += entry[1];
        c[r] += entry[2];
        d[r] += entry[3];
    }
}

#endif
