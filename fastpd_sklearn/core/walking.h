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

/* Where the numbers of a row's curve go: that of cell c to the places position[first[c]] up to
 * position[first[c + 1] - 1]. Places of a row are `step` numbers apart, rows `row_step`. */
typedef struct {
    const int32_t *first, *position;
    int64_t row_step, step;
} Layout;

static inline void put_cell(const double *value, int64_t m, const Layout *to, int64_t c, double *out)
{
    for (int32_t i = to->first[c]; i < to->first[c + 1]; i++) {
        double *place = out + to->position[i] * to->step;
        for (int64_t r = 0; r < m; r++)
            place[r * to->row_step] = value[r];
    }
}

/* Cumulative sums over c of x[c * stride + r], to m <= 8 rows; x has eight of them. */
CLONES static void write_sums(const double *x, int64_t stride, int64_t cells, int64_t m,
                              double start, const Layout *to, double *out)
{
    double sum[8];
    for (int r = 0; r < 8; r++)
        sum[r] = start;
    for (int64_t c = 0; c < cells; c++) {
        for (int r = 0; r < 8; r++)
            sum[r] += x[c * stride + r];
        if (m == 8)
            put_cell(sum, 8, to, c, out);
        else
            put_cell(sum, m, to, c, out);
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

static inline double power_of_two(uint64_t exponent)
{
    /* 2^(exponent - 1023) for exponents from 1 to 2046. */
    const uint64_t bits = exponent << 52;
    double power;
    memcpy(&power, &bits, sizeof power);
    return power;
}

/* The exponential function to about an ulp: x = n log 2 + r with |r| <= log(2) / 2, and the
 * Taylor polynomial of degree 13 at r, whose error is below 5e-18. Its terms are added in pairs and
 * pairs of pairs, since one after the other each would wait for the one before. A standard library's
 * function could not be vectorised, and differs from system to system. */
static inline double exponential(double x)
{
    const double bounded = x > 800.0 ? 800.0 : x < -800.0 ? -800.0 : x;
    /* Far from zero a number is an integer, which its last bits are. */
    const double shifted = bounded * 1.4426950408889634 + (6755399441055744.0 + 2046.0);
    const double n = shifted - (6755399441055744.0 + 2046.0);
    const double r = (bounded - n * 0.693147180369123816490) - n * 1.90821492927058770002e-10;
    uint64_t exponent, half;
    const double r2 = r * r, r4 = r2 * r2;
    const double two = 0.5 + r * 1.6666666666666667e-01;
    const double four = 4.1666666666666667e-02 + r * 8.3333333333333333e-03;
    const double six = 1.3888888888888889e-03 + r * 1.9841269841269841e-04;
    const double eight = 2.4801587301587302e-05 + r * 2.7557319223985893e-06;
    const double ten = 2.7557319223985891e-07 + r * 2.5052108385441719e-08;
    const double twelve = 2.0876756987868099e-09 + r * 1.6059043836821613e-10;
    const double low = two + r2 * four, middle = six + r2 * eight, high = ten + r2 * twelve;
    const double y = r + r2 * (low + r4 * (middle + r4 * high));
    /* in two steps, so that the result may be subnormal or infinite */
    memcpy(&exponent, &shifted, sizeof exponent);
    exponent &= 4095;
    half = exponent >> 1;
    return (y + 1.0) * power_of_two(half) * power_of_two(exponent - half);
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
