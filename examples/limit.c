/* limit.c: ten blocks in the room of five. What does not fit is on the host while nothing needs it, and back at its address
 * when something does. Every number is looked at again. */
#include <stdio.h>

#include "neap.h"

enum { BLOCKS = 10, N = 1 << 18, ROUNDS = 60, LIMIT = 5 << 20 };

typedef struct piece {
    unsigned *x, first; /* x holds first, first + 1, ... */
    int *n_wrong;       /* host memory; NULL: fill x, otherwise look whether it is so */
} piece;

static void fill_or_check(void *arg)
{
    const piece *p = arg;
    for (unsigned i = 0; i < N; i++) {
        if (p->n_wrong) {
            *p->n_wrong += p->x[i] != p->first + i;
        } else {
            p->x[i] = p->first + i;
        }
    }
}

/* Fills the blocks in one order, and looks at them in the other, as training goes forward and backward. */
static neap_status iterate(neap_device *device, unsigned round, int *n_wrong)
{
    neap_block *blocks[BLOCKS] = {NULL};
    neap_status status = NEAP_OK;
    for (int i = 0; i < 2 * BLOCKS && status == NEAP_OK; i++) {
        bool fills = i < BLOCKS;
        neap_block **block = &blocks[fills ? i : 2 * BLOCKS - 1 - i];
        if (!fills || (status = neap_malloc(device, N * sizeof(unsigned), block)) == NEAP_OK) {
            piece p = {neap_data(*block), round + (unsigned)(block - blocks), fills ? NULL : n_wrong};
            neap_work work = {.name = fills ? "fill" : "check", .run = fill_or_check, .arg = &p, .arg_bytes = sizeof p};
            status = neap_exec(device, &work, &(neap_use){*block, fills ? NEAP_ACCESS_WRITE : NEAP_ACCESS_READ}, 1);
        }
        (void)neap_free(device, fills ? NULL : *block); /* the work may still be under way */
    }
    return status;
}

int main(void)
{
    neap_device *device = NULL;
    neap_stats stats = {0};
    int n_wrong = 0;
    neap_status status = neap_open("cpu:page=64KiB", &(neap_device_options){.limit = LIMIT}, NULL, NULL, &device);
    for (unsigned i = 0; i < ROUNDS && status == NEAP_OK; i++) {
        status = iterate(device, i, &n_wrong);
        (void)neap_sync(device);
        neap_get_stats(device, &stats);
    }
    neap_close(device);
    (void)printf("limit: %s; %d numbers wrong; %llu bytes held at most, %llu copied out\n", neap_status_message(status),
                 n_wrong, (unsigned long long)stats.peak_held, (unsigned long long)stats.bytes_out);
    return status == NEAP_OK && n_wrong == 0 && stats.peak_held <= LIMIT ? 0 : 1;
}
