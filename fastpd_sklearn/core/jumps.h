/* Loops over one block of rows for jumps.pyx: tests, ways, values of subtrees, and their jumps. They
 * select and add, so that they give the same bits on every processor. */
#ifndef FASTPD_JUMPS_H
#define FASTPD_JUMPS_H

#include "jump_program.h"
#include "walking.h"

#define DEFINE_LANE_TEST(NAME, CODE)                                                       \
    CLONES static void lane_tests_##NAME(const LaneTest *test, int64_t n, const uint8_t *codes, \
                                         uint8_t *masks)                                   \
    {                                                                                      \
        for (int64_t i = 0; i < n; i++) {                                                  \
            const CODE *code = (const CODE *)(codes + test[i].offset);            \
            const CODE low = (CODE)test[i].low, span = (CODE)test[i].span;                 \
            uint8_t *mask = masks + test[i].mask * LANES;                         \
            INDEPENDENT                                                                    \
            for (int r = 0; r < LANES; r++)                                                \
                mask[r] = (CODE)(code[r] - low) <= span ? 255 : 0;                         \
        }                                                                                  \
    }

DEFINE_LANE_TEST(8, uint8_t)
DEFINE_LANE_TEST(16, uint16_t)
DEFINE_LANE_TEST(32, uint32_t)

CLONES static void lane_ways(const LaneWay *way, int64_t n, const uint8_t *masks, uint8_t *ways)
{
    for (int64_t i = 0; i < n; i++) {
        const uint8_t *source = ways + way[i].source * LANES;
        const uint8_t *mask = masks + way[i].mask * LANES;
        uint8_t *left = ways + way[i].left * LANES, *right = ways + way[i].right * LANES;
        INDEPENDENT
        for (int r = 0; r < LANES; r++) {
            left[r] = source[r] & mask[r];
            right[r] = source[r] & ~mask[r];
        }
    }
}

#define LANE_VALUE(KIND, OF, FIRST, SECOND, MASK)                                          \
    ((KIND) == 0 ? (OF)[r] : (KIND) == 1 ? (FIRST) : (MASK)[r] ? (FIRST) : (SECOND))
#define LANE_FIXED(PLACE) fixed[(int64_t)(PLACE) * stride]

#define DEFINE_LANE_STEPS(LEFT, RIGHT, HAS_VALUE, HAS_JUMP)                                \
    CLONES static void lane_steps_##LEFT##RIGHT##HAS_VALUE##HAS_JUMP(                      \
        const LaneStep *step, int64_t n, const double *fixed, int64_t stride,              \
        const uint8_t *masks, const uint8_t *ways, double *values, double *curve)          \
    {                                                                                      \
        for (int64_t i = 0; i < n; i++) {                                                  \
            const LaneStep *s = step + i;                                                  \
            const double a = (LEFT) ? LANE_FIXED(s->left.left) : 0.0;                      \
            const double b = (LEFT) == 2 ? LANE_FIXED(s->left.right) : 0.0;                \
            const double c = (RIGHT) ? LANE_FIXED(s->right.left) : 0.0;                    \
            const double d = (RIGHT) == 2 ? LANE_FIXED(s->right.right) : 0.0;              \
            const double *x = values + ((LEFT) ? 0 : s->left.place * LANES);    \
            const double *y = values + ((RIGHT) ? 0 : s->right.place * LANES);  \
            const uint8_t *at_x = masks + ((LEFT) == 2 ? s->left.place * LANES : 0); \
            const uint8_t *at_y = masks + ((RIGHT) == 2 ? s->right.place * LANES : 0); \
            const uint8_t *mask = masks + ((HAS_VALUE) ? s->mask * LANES : 0);  \
            const uint8_t *way = ways + ((HAS_JUMP) ? s->way * LANES : 0);      \
            double *value = values + ((HAS_VALUE) ? s->target * LANES : 0);     \
            double *jump = curve + ((HAS_JUMP) ? (int64_t)s->cell * LANES : 0); \
            INDEPENDENT                                                                    \
            for (int r = 0; r < LANES; r++) {                                              \
                const double left = LANE_VALUE(LEFT, x, a, b, at_x);                       \
                const double right = LANE_VALUE(RIGHT, y, c, d, at_y);                     \
                if (HAS_VALUE)                                                             \
                    value[r] = mask[r] ? left : right;                                     \
                if (HAS_JUMP)                                                              \
                    jump[r] += way[r] ? right - left : 0.0;                                \
            }                                                                              \
        }                                                                                  \
    }

#define FOR_LANE_KINDS(DO)                                                                 \
    DO(0, 0, 1, 0) DO(0, 1, 1, 0) DO(0, 2, 1, 0) DO(1, 0, 1, 0) DO(1, 1, 1, 0)              \
    DO(1, 2, 1, 0) DO(2, 0, 1, 0) DO(2, 1, 1, 0) DO(2, 2, 1, 0)                            \
    DO(0, 0, 0, 1) DO(0, 1, 0, 1) DO(0, 2, 0, 1) DO(1, 0, 0, 1) DO(1, 1, 0, 1)              \
    DO(1, 2, 0, 1) DO(2, 0, 0, 1) DO(2, 1, 0, 1) DO(2, 2, 0, 1)                            \
    DO(0, 0, 1, 1) DO(0, 1, 1, 1) DO(0, 2, 1, 1) DO(1, 0, 1, 1) DO(1, 1, 1, 1)              \
    DO(1, 2, 1, 1) DO(2, 0, 1, 1) DO(2, 1, 1, 1) DO(2, 2, 1, 1)

FOR_LANE_KINDS(DEFINE_LANE_STEPS)

static void lane_steps(int kind, const LaneStep *step, int64_t n, const double *fixed, int64_t stride,
                       const uint8_t *masks, const uint8_t *ways, double *values, double *curve)
{
#define LANE_CASE(LEFT, RIGHT, HAS_VALUE, HAS_JUMP)                                        \
    case LEFT << 4 | RIGHT << 2 | HAS_VALUE << 1 | HAS_JUMP:                               \
        lane_steps_##LEFT##RIGHT##HAS_VALUE##HAS_JUMP(step, n, fixed, stride, masks, ways, \
                                                      values, curve);                      \
        break;
    switch (kind) {
        FOR_LANE_KINDS(LANE_CASE)
    }
#undef LANE_CASE
}

/* From jumps to their sums, number by number of the column: cell c from those before it. */
CLONES static void lane_sums(double *curve, int64_t n)
{
    for (int64_t c = 1; c < n; c++)
        for (int r = 0; r < LANES; r++)
            curve[c * LANES + r] += curve[(c - 1) * LANES + r];
}

/* out[r] = x[r] + y[r] */
CLONES static void lane_add(double *out, const double *x, const double *y)
{
    for (int r = 0; r < LANES; r++)
        out[r] = x[r] + y[r];
}

/* Curves of the first m rows, x[c * LANES + r] + shift[r], eight rows at a time. */
CLONES static void lane_write(const double *x, int64_t cells, int64_t m, const double *shift,
                              const Layout *to, double *out)
{
    for (int64_t first = 0; first < m; first += 8) {
        const int64_t n = m - first < 8 ? m - first : 8;
        double *const rows = out + first * to->row_step;
        double value[8];
        for (int64_t c = 0; c < cells; c++) {
            for (int r = 0; r < 8; r++)
                value[r] = x[c * LANES + first + r] + shift[first + r];
            if (n == 8)
                put_cell(value, 8, to, c, rows);
            else
                put_cell(value, n, to, c, rows);
        }
    }
}

#endif
