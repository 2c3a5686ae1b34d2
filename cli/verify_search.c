/* verify_search.c: which launch, and which block, by bisection.
 *
 * The runs poison all launches before some launch. With more of them poisoned a difference does not go away, so there is
 * a first launch with which it appears, and log2 of their number runs find it. The same is then done with blocks, for
 * that launch alone; where the launch makes no difference alone (an earlier one had already spoilt something that it
 * reads), for all launches up to it. */
#include <inttypes.h>

#include "printable.h"
#include "term.h"
#include "verify.h"

typedef struct search {
    verify_request *request;
    const verify_output *plain;
    bool has_failed; /* a run could not be */
} search;

static bool differs(search *s, verify_range launches, verify_range blocks, verify_output *output)
{
    verify_difference difference;
    if (!verify_run_poisoned(s->request, launches, blocks, output)) {
        s->has_failed = true;
        return false;
    }
    if (output->failure[0]) {
        printable_say("cannot go on with the search: %s", output->failure);
        verify_close(output);
        s->has_failed = true;
        return false;
    }
    return !verify_compare(s->plain, output, &difference);
}

static bool differs_at(search *s, verify_range launches, verify_range blocks)
{
    verify_output output;
    bool is_bad = differs(s, launches, blocks, &output);
    if (!s->has_failed) {
        verify_close(&output);
    }
    return is_bad;
}

static const verify_range everything = {0, UINT64_MAX};

static unsigned steps_left(uint64_t n)
{
    unsigned steps = 0;
    while (n > 1) {
        n = (n + 1) / 2;
        steps++;
    }
    return steps;
}

/* The first of n whose prefix makes a difference; all of them do. */
static uint64_t first_bad_launch(search *s, uint64_t n)
{
    uint64_t good = 0;
    uint64_t bad = n;
    while (bad - good > 1 && !s->has_failed) {
        uint64_t middle = good + (bad - good) / 2;
        term_progress("launches %" PRIu64 " to %" PRIu64 ": %u runs to go", good, bad, steps_left(bad - good));
        if (differs_at(s, (verify_range){0, middle}, everything)) {
            bad = middle;
        } else {
            good = middle;
        }
    }
    return bad - 1;
}

static uint64_t first_bad_block(search *s, verify_range launches, uint64_t n)
{
    uint64_t good = 0;
    uint64_t bad = n;
    while (bad - good > 1 && !s->has_failed) {
        uint64_t middle = good + (bad - good) / 2;
        term_progress("blocks %" PRIu64 " to %" PRIu64 ": %u runs to go", good, bad, steps_left(bad - good));
        if (differs_at(s, launches, (verify_range){0, middle})) {
            bad = middle;
        } else {
            good = middle;
        }
    }
    return bad - 1;
}

static void take_names(const verify_output *output, verify_culprit *culprit)
{
    (void)snprintf(culprit->kernel, sizeof culprit->kernel, "%s", output->kernel);
    culprit->block_bytes = output->block_bytes;
}

bool verify_find_culprit(verify_request *request, const verify_output *plain, const verify_output *bare,
                         verify_culprit *culprit)
{
    search s = {.request = request, .plain = plain};
    verify_output output;
    *culprit = (verify_culprit){0};
    culprit->launch = first_bad_launch(&s, bare->n_launches);
    verify_range launches = {culprit->launch, culprit->launch + 1};
    culprit->is_alone = !s.has_failed && differs_at(&s, launches, everything);
    verify_range searched = culprit->is_alone ? launches : (verify_range){0, launches.end};
    if (!s.has_failed) {
        culprit->block = first_bad_block(&s, searched, bare->n_blocks);
    }
    verify_range block = {culprit->block, culprit->block + 1};
    if (!s.has_failed) {
        (void)differs(&s, launches, block, &output); /* for the names: of one launch and one block */
    }
    if (!s.has_failed) {
        take_names(&output, culprit);
        verify_close(&output);
    }
    term_progress_clear();
    return !s.has_failed;
}
