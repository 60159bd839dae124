/* The inner loops of the walks: parting rows at a node, and inverse links of blocks of margins.
 * As those of kernels.h they give the same bits on every processor. */
#ifndef FASTPD_WALKING_H
#define FASTPD_WALKING_H

#include "kernels.h"

/* Part row numbers in place: those that go left come first, in order, as do the others. Returns
 * how many go left. `spare` is room for all. There is no branch, since none could be foretold.
 *
 * Descending parts *segments* of row numbers, see walk.pyx: to the segments that go right and left
 * are added those that go the other way, with the player in their set, where `joins` (by the first
 * player of the set, from nobody on) says so. Both lists need room for two segments each. */
typedef struct {
    int32_t a, b, first, size;
} Segment;

static inline Segment joined(Segment segment, int32_t player)
{
    if (segment.a < 0) {
        segment.a = player;
    } else if (segment.a < player) {
        segment.b = player;
    } else {
        segment.b = segment.a;
        segment.a = player;
    }
    return segment;
}

#define DEFINE_PART(NAME, CODE, RULE, PARAMETERS, ARGUMENTS)                               \
    static inline int64_t part_##NAME(const CODE *code, PARAMETERS, int32_t *row, int64_t m, \
                                      int32_t *spare)                                      \
    {                                                                                      \
        int64_t n_left = 0, n_right = 0;                                                   \
        for (int64_t i = 0; i < m; i++) {                                                  \
            const int32_t r = row[i];                                                      \
            const CODE c = code[r];                                                        \
            const int left = (RULE);                                                       \
            row[n_left] = r;                                                               \
            spare[n_right] = r;                                                            \
            n_left += left;                                                                \
            n_right += !left;                                                              \
        }                                                                                  \
        for (int64_t i = 0; i < n_right; i++)                                              \
            row[n_left + i] = spare[i];                                                    \
        return n_left;                                                                     \
    }                                                                                      \
    static inline void descend_##NAME(                                                     \
        const CODE *code, PARAMETERS, int32_t *row, int32_t *spare, const Segment *at,     \
        int64_t n, int32_t player, const uint8_t *joins, int left_open, int right_open,    \
        Segment *left, int64_t *n_left, Segment *right, int64_t *n_right)                  \
    {                                                                                      \
        int64_t l = 0, r = 0;                                                              \
        for (int64_t s = 0; s < n; s++) {                                                  \
            Segment here = at[s], gone, more;                                              \
            if (here.a == player || here.b == player) {                                    \
                left[l] = right[r] = here;                                                 \
                l += left_open;                                                            \
                r += right_open;                                                           \
                continue;                                                                  \
            }                                                                              \
            int32_t middle;                                                                \
            if (here.size == 1) {                                                          \
                const CODE c = code[row[here.first]];                                      \
                middle = (RULE);                                                           \
            } else {                                                                       \
                middle = (int32_t)part_##NAME(code, ARGUMENTS, row + here.first, here.size, \
                                              spare);                                      \
            }                                                                              \
            gone = here;                                                                   \
            gone.first += middle;                                                          \
            gone.size -= middle;                                                           \
            here.size = middle;                                                            \
            left[l] = here;                                                                \
            l += here.size != 0;                                                           \
            right[r] = gone;                                                               \
            r += gone.size != 0;                                                           \
            if (here.b < 0 && joins[here.a + 1]) {                                         \
                more = joined(gone, player);                                               \
                left[l] = more;                                                            \
                l += left_open & (more.size != 0);                                         \
                more = joined(here, player);                                               \
                right[r] = more;                                                           \
                r += right_open & (more.size != 0);                                        \
            }                                                                              \
        }                                                                                  \
        *n_left = l;                                                                       \
        *n_right = r;                                                                      \
    }

/* Loops that need all registers for themselves. */
#ifdef __GNUC__
#define LONE __attribute__((noinline, unused)) static
#else
#define LONE static
#endif

/* Deal rows to the two sides of a node, see single_walk.pyx: those that have violated no player,
 * given by number, of which `send` counts the left ones; and those that have violated one,
 * given by number (the bits of `mask`) and by player (the others). Rows that have violated the player that is
 * tested go to both sides, where these are open. Both lists need room for all; there is no branch. */
#define DEFINE_SEND(NAME, CODE, RULE, PARAMETERS)                                          \
    static inline int64_t send_##NAME(const CODE *code, PARAMETERS, const uint32_t *at,    \
                                      int64_t n, uint32_t *left, uint32_t *right)          \
    {                                                                                      \
        int64_t l = 0, r = 0;                                                              \
        for (int64_t i = 0; i < n; i++) {                                                  \
            const uint32_t row = at[i];                                                    \
            const CODE c = code[row];                                                      \
            const int is_left = (RULE);                                                    \
            left[l] = row;                                                                 \
            right[r] = row;                                                                \
            l += is_left;                                                                  \
            r += !is_left;                                                                 \
        }                                                                                  \
        return l;                                                                          \
    }                                                                                      \
    LONE void send_violated_##NAME(                                                        \
        const CODE *code, PARAMETERS, uint32_t player, uint32_t mask, int left_open,       \
        int right_open, const uint32_t *at, int64_t n, uint32_t *left, int64_t *n_left,    \
        uint32_t *right, int64_t *n_right)                                                 \
    {                                                                                      \
        int64_t l = *n_left, r = *n_right;                                                 \
        for (int64_t i = 0; i < n; i++) {                                                  \
            const uint32_t item = at[i];                                                   \
            const CODE c = code[item & mask];                                              \
            const int is_left = (RULE), own = (item ^ player) <= mask;                     \
            left[l] = item;                                                                \
            right[r] = item;                                                               \
            l += own ? left_open : is_left;                                                \
            r += own ? right_open : !is_left;                                              \
        }                                                                                  \
        *n_left = l;                                                                       \
        *n_right = r;                                                                      \
    }

#ifdef __GNUC__
#define PREFETCH(address) __builtin_prefetch(address, 1)
#else
#define PREFETCH(address) ((void)(address))
#endif

#define COMMA ,
DEFINE_PART(8, uint8_t, (uint8_t)(c - low) <= span, uint8_t low COMMA uint8_t span, low COMMA span)
DEFINE_PART(16, uint16_t, (uint16_t)(c - low) <= span, uint16_t low COMMA uint16_t span,
            low COMMA span)
DEFINE_PART(32, uint32_t, c - low <= span, uint32_t low COMMA uint32_t span, low COMMA span)
DEFINE_PART(table_8, uint8_t, table[c < span ? c : span] != 0,
            const uint8_t *table COMMA uint32_t span, table COMMA span)
DEFINE_PART(table_16, uint16_t, table[c < span ? c : span] != 0,
            const uint8_t *table COMMA uint32_t span, table COMMA span)
DEFINE_PART(table_32, uint32_t, table[c < span ? c : span] != 0,
            const uint8_t *table COMMA uint32_t span, table COMMA span)

DEFINE_SEND(8, uint8_t, (uint8_t)(c - low) <= span, uint8_t low COMMA uint8_t span)
DEFINE_SEND(16, uint16_t, (uint16_t)(c - low) <= span, uint16_t low COMMA uint16_t span)
DEFINE_SEND(32, uint32_t, c - low <= span, uint32_t low COMMA uint32_t span)
DEFINE_SEND(table_8, uint8_t, table[c < span ? c : span] != 0,
            const uint8_t *table COMMA uint32_t span)
DEFINE_SEND(table_16, uint16_t, table[c < span ? c : span] != 0,
            const uint8_t *table COMMA uint32_t span)
DEFINE_SEND(table_32, uint32_t, table[c < span ? c : span] != 0,
            const uint8_t *table COMMA uint32_t span)

/* Row numbers whose kind is that which is looked for; returns how many. No branch here either. */
#define DEFINE_PICK(NAME, KIND)                                                            \
    static inline int64_t pick_##NAME(const KIND *kind, KIND wanted, const int32_t *row,   \
                                      int64_t m, int32_t *out)                             \
    {                                                                                      \
        int64_t n = 0;                                                                     \
        for (int64_t i = 0; i < m; i++) {                                                  \
            const int32_t r = row[i];                                                      \
            out[n] = r;                                                                    \
            n += kind[r] == wanted;                                                        \
        }                                                                                  \
        return n;                                                                          \
    }

DEFINE_PICK(8, uint8_t)
DEFINE_PICK(16, uint16_t)
DEFINE_PICK(32, uint32_t)

/* x[r] += y[r] */
CLONES static void add_to(double *x, const double *y, int64_t m)
{
    for (int64_t r = 0; r < m; r++)
        x[r] += y[r];
}

/* out[r] = x[r] + shift */
CLONES static void add_shift(double *out, const double *x, double shift, int64_t m)
{
    for (int64_t r = 0; r < m; r++)
        out[r] = x[r] + shift;
}

/* Cumulative sums over c of x[c * stride + r], r < m <= 8, to out[r * out_stride + c]. */
CLONES static void write_sums(const double *x, int64_t stride, int64_t cells, int64_t m,
                              double start, double *out, int64_t out_stride)
{
    double sum[8];
    for (int r = 0; r < 8; r++)
        sum[r] = start;
    if (m == 8) {
        for (int64_t c = 0; c < cells; c++)
            for (int r = 0; r < 8; r++) {
                sum[r] += x[c * stride + r];
                out[r * out_stride + c] = sum[r];
            }
        return;
    }
    for (int64_t c = 0; c < cells; c++)
        for (int64_t r = 0; r < m; r++) {
            sum[r] += x[c * stride + r];
            out[r * out_stride + c] = sum[r];
        }
}

/* Sum of w[r] * x[r], m a multiple of 8: eight sums, so that the order does not depend on the
 * width of the processor's registers. */
CLONES static double weighted_sum(const double *x, const double *w, int64_t m)
{
    double part[8] = {0};
    for (int64_t r = 0; r < m; r += 8)
        for (int j = 0; j < 8; j++)
            part[j] += w[r + j] * x[r + j];
    return ((part[0] + part[1]) + (part[2] + part[3])) + ((part[4] + part[5]) + (part[6] + part[7]));
}

static inline double power_of_two(double k)
{
    /* 2^k for an integer |k| < 1000: its bits are those of the exponent. */
    const double shifted = k + 1023.0 + 6755399441055744.0;
    uint64_t bits;
    double power;
    memcpy(&bits, &shifted, sizeof bits);
    bits <<= 52;
    memcpy(&power, &bits, sizeof power);
    return power;
}

/* The exponential function to about an ulp: x = n log 2 + r with |r| <= log(2) / 2, and the
 * Taylor polynomial of degree 13 at r, whose error is below 5e-18. A standard library's function
 * could not be vectorised, and differs from system to system. */
static inline double exponential(double x)
{
    const double bounded = x > 800.0 ? 800.0 : x < -800.0 ? -800.0 : x;
    const double n = (bounded * 1.4426950408889634 + 6755399441055744.0) - 6755399441055744.0;
    const double r = (bounded - n * 0.693147180369123816490) - n * 1.90821492927058770002e-10;
    const double half = (n * 0.5 + 6755399441055744.0) - 6755399441055744.0;
    double y = 1.6059043836821613e-10;
    y = y * r + 2.0876756987868099e-09;
    y = y * r + 2.5052108385441719e-08;
    y = y * r + 2.7557319223985891e-07;
    y = y * r + 2.7557319223985893e-06;
    y = y * r + 2.4801587301587302e-05;
    y = y * r + 1.9841269841269841e-04;
    y = y * r + 1.3888888888888889e-03;
    y = y * r + 8.3333333333333333e-03;
    y = y * r + 4.1666666666666667e-02;
    y = y * r + 1.6666666666666667e-01;
    y = y * r + 0.5;
    y = y * (r * r) + r;
    /* in two steps, so that the result may be subnormal or infinite */
    return (y + 1.0) * power_of_two(half) * power_of_two(n - half);
}

CLONES static void exp_all(double *x, int64_t m)
{
    for (int64_t r = 0; r < m; r++)
        x[r] = exponential(x[r]);
}

CLONES static void sigmoid_all(double *x, int64_t m)
{
    for (int64_t r = 0; r < m; r++)
        x[r] = 1.0 / (1.0 + exponential(-x[r]));
}

/* Margins of row r at x[k * stride + r] to probabilities; `total` is room for m numbers. */
CLONES static void softmax_all(double *x, int64_t n_outputs, int64_t stride, int64_t m,
                               double *total)
{
    for (int64_t r = 0; r < m; r++)
        total[r] = x[r];
    for (int64_t k = 1; k < n_outputs; k++)
        for (int64_t r = 0; r < m; r++)
            total[r] = x[k * stride + r] > total[r] ? x[k * stride + r] : total[r];
    for (int64_t k = 0; k < n_outputs; k++)
        for (int64_t r = 0; r < m; r++)
            x[k * stride + r] = exponential(x[k * stride + r] - total[r]);
    for (int64_t r = 0; r < m; r++)
        total[r] = x[r];
    for (int64_t k = 1; k < n_outputs; k++)
        for (int64_t r = 0; r < m; r++)
            total[r] += x[k * stride + r];
    for (int64_t k = 0; k < n_outputs; k++)
        for (int64_t r = 0; r < m; r++)
            x[k * stride + r] /= total[r];
}

/* Inverse links of blocks of margins. */
enum { LINK_IDENTITY, LINK_EXP, LINK_SIGMOID, LINK_SOFTMAX };

/* Margins of row r at x[k * m + r] to responses; x has room for m numbers more. */
static inline void apply_link(int link, double *x, int64_t n_outputs, int64_t m)
{
    if (link == LINK_EXP)
        exp_all(x, n_outputs * m);
    else if (link == LINK_SIGMOID)
        sigmoid_all(x, n_outputs * m);
    else if (link == LINK_SOFTMAX)
        softmax_all(x, n_outputs, m, m, x + n_outputs * m);
}

#endif
