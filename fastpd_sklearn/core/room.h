/* Large pieces of memory that are read at places all over them. */
#ifndef FASTPD_ROOM_H
#define FASTPD_ROOM_H

#include <stdint.h>
#include <stdlib.h>

#if defined(__linux__)
#include <sys/mman.h>
#endif

enum { HUGE_PAGE = 1 << 21 };

/* As malloc, to be freed by free. Large pieces lie on huge pages where the system has them: a processor
 * keeps the addresses of some thousand pages only, and small ones would be looked up again and again. */
static inline void *wide_malloc(size_t size)
{
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    if (size >= 2 * HUGE_PAGE) {
        void *room = NULL;
        if (posix_memalign(&room, HUGE_PAGE, size) != 0)
            return NULL;
        (void)madvise(room, size / HUGE_PAGE * HUGE_PAGE, MADV_HUGEPAGE);
        return room;
    }
#endif
    return malloc(size);
}

#endif
