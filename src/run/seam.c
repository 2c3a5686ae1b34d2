/* seam.c: blocks that are malloc'd one after the other share the page where one ends and the next begins.
 *
 * Pages are large (2 MiB on a GPU) and weights often are not: a page begun for each would waste half a page a block, more
 * than a plan wins elsewhere. Programs that build something, a model or an optimizer's state, malloc one block after the
 * other and free none. So the last page of a new block stays open while nothing is freed: the next one begins there, at an
 * address of its own in a view of its own, whose first page is the same physical page. What such a group leaves behind
 * has no gaps, and the plan keeps it together (np_home in swap/place.h).
 *
 * No work has ever used the bytes that are given: the page was new to the block that opened it. */
#include "base/checked.h"
#include "run/manager.h"

enum { UNIT = 512 }; /* bytes: blocks begin at multiples of it */

void np_seam_close(neap_device *m)
{
    if (m->seam.is_open) {
        np_pages_unuse(&m->pages, &m->seam.number, 1);
        m->seam = (np_seam){.is_open = false};
    }
}

uint64_t np_seam_lead(const neap_device *m)
{
    bool pages_come_with_malloc = m->limit_pages == UINT32_MAX || m->is_beneath;
    return m->seam.is_open && m->state != NEAP_STATE_RUN && pages_come_with_malloc ? m->seam.end : 0;
}

neap_status np_seam_join(neap_device *m, np_view *view)
{
    neap_status status = np_view_map(&m->pages, view, 0, 1, &m->seam.number);
    if (status == NEAP_OK) {
        np_pages_use(&m->pages, m->seam.number);
    }
    return status;
}

void np_seam_open(neap_device *m, const neap_block *block)
{
    const np_view *view = &block->view;
    uint32_t number = view->numbers[view->n_pages - 1];
    uint64_t end;
    if (number == NP_NO_PAGE || np_pages_is_arena(&m->pages, number) ||
        !np_round_up(view->lead + block->bytes, UNIT, &end) || end % m->device->page_bytes == 0) {
        np_seam_close(m);
        return;
    }
    np_pages_use(&m->pages, number);
    np_seam_close(m);
    m->seam = (np_seam){.is_open = true, .number = number, .end = end % m->device->page_bytes};
}
