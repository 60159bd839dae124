/* Four numbers side by side: what is added to those of them that belong to players in a set. */
#ifndef FASTPD_QUADS_H
#define FASTPD_QUADS_H

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

#endif
