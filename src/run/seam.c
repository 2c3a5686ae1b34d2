/* seam.c: blocks that are malloc'd one after the other share the page where one ends and the next begins.
 *
 * Pages are large (2 MiB on a GPU) and weights often are not: a page begun for each would waste half a page a block, more
 * than a plan wins elsewhere. Programs that build something, a model or an optimizer's state, malloc one block after the
 * other and free none of them. So as long as none of those in the row is freed, a block begins, within its page, where the
 * one before ended; each has a view of its own, and the same physical page is the last of one and the first of the other. Plans keep such
 * neighbours together (np_home in swap/place.h), so that what never leaves has no gaps.
 *
 * Under a limit blocks leave and return page by page, and a page that two share is one more for each of them then: there,
 * each begins at a page, unless it is asked for (has_seams). Beneath programs it is, but for limits in bytes, under which
 * blocks leave from the first malloc on.
 *
 * Where a block begins follows from the program's mallocs and frees alone, not from how much room there is: a plan that was
 * kept is for blocks that begin where these do. Whether the page is shared from the start is another matter: not where
 * pages come with the first work, where it was needed elsewhere, or where addresses are used again.
 *
 * No work has ever used the bytes that are given: the page was new to the block that opened the seam. */
#include "run/manager.h"

enum { UNIT = 512 }; /* bytes: blocks begin at multiples of it */

void np_seam_drop_page(neap_device *m)
{
    if (m->seam.number != NP_NO_PAGE) {
        np_pages_unuse(&m->pages, &m->seam.number, 1);
        m->seam.number = NP_NO_PAGE;
    }
}

void np_seam_close(neap_device *m)
{
    np_seam_drop_page(m);
    m->seam = NP_NO_SEAM;
}

/* The first page of a view may be that of the block before, if it is still there. */
neap_status np_seam_join(neap_device *m, neap_block *block)
{
    neap_status status = NEAP_OK;
    if (m->seam.end > 0 && m->seam.number != NP_NO_PAGE) {
        status = np_view_map(&m->pages, &block->view, 0, 1, &m->seam.number);
        if (status == NEAP_OK) {
            np_pages_use(&m->pages, m->seam.number);
        }
    }
    return status;
}

np_seam np_seam_after(const np_seam *seam, uint64_t id, uint64_t bytes, uint64_t page_bytes)
{
    return (np_seam){.end = (seam->end + bytes + UNIT - 1) / UNIT * UNIT % page_bytes,
                     .id = id,
                     .first = seam->first == UINT64_MAX ? id : seam->first,
                     .number = NP_NO_PAGE};
}

void np_seam_open(neap_device *m, const neap_block *block, bool is_new)
{
    const np_view *view = &block->view;
    np_seam seam = np_seam_after(&m->seam, block->id, block->bytes, m->device->page_bytes);
    seam.number = view->numbers[view->n_pages - 1];
    if (seam.end == 0 || !is_new || (seam.number != NP_NO_PAGE && np_pages_is_arena(&m->pages, seam.number))) {
        seam.number = NP_NO_PAGE;
    }
    if (seam.number != NP_NO_PAGE) {
        np_pages_use(&m->pages, seam.number);
    }
    np_seam_close(m);
    m->seam = seam;
}
