/* verify.c: `neap verify PROGRAM`: proves that neap sees all that a program's kernels touch, or names the one it does not.
 *
 * The program runs twice plainly: it must print the same both times, or nothing can be compared. Then once while the
 * library, before every launch, overwrites each block that the launch is not seen to touch, and gives it back after it.
 * A kernel that reaches a block by a way that is not seen then reads rubbish, and the output differs. */
#include "verify.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "json.h"
#include "printable.h"
#include "term.h"
#include "units.h"
#include "verbs.h"

typedef struct verify_args {
    common_args common;
    const char *keep;
} verify_args;

typedef enum verdict {
    VERDICT_VERIFIED,
    VERDICT_DIFFERS,
    VERDICT_NOT_DETERMINISTIC,
    VERDICT_PROGRAM_FAILS,
    VERDICT_NOTHING_SEEN,
    VERDICT_NOT_POISON, /* it differs though nothing was taken away */
    VERDICT_STUCK,      /* blocks could not be moved */
    VERDICT_NONE,       /* a run could not be: said already */
} verdict;

typedef struct verify_answer {
    verdict verdict;
    verify_output plain;
    verify_output again;
    verify_output poisoned;
    verify_output bare; /* with the library, but nothing taken away: only where the poisoned run differs */
    verify_difference difference;
    uint64_t n_launches;
    uint64_t n_blocks;
    verify_culprit culprit;
    bool is_remembered;
} verify_answer;

/* ---- finding out ---- */

static bool has_seen(const verify_output *output, verify_answer *answer)
{
    answer->n_launches = output->n_launches;
    answer->n_blocks = output->n_blocks;
    return output->has_told && output->n_launches > 0 && output->n_blocks > 0;
}

/* The poisoned run may have died of it and have told nothing: the bare one says how much there is to search in. */
static verdict find_cause(verify_request *request, verify_answer *answer)
{
    static const verify_range nothing = {0, 0};
    static const verify_range everything = {0, UINT64_MAX};
    verify_difference difference;
    term_progress("it differs; run with nothing taken away");
    if (!verify_run_poisoned(request, nothing, everything, &answer->bare)) {
        return VERDICT_NONE;
    }
    if (!verify_compare(&answer->plain, &answer->bare, &difference)) {
        answer->difference = difference;
        return VERDICT_NOT_POISON;
    }
    if (!has_seen(&answer->bare, answer)) {
        return VERDICT_NOTHING_SEEN;
    }
    return verify_find_culprit(request, &answer->plain, &answer->bare, &answer->culprit) ? VERDICT_DIFFERS
                                                                                         : VERDICT_NONE;
}

static verdict find_verdict(verify_request *request, verify_answer *answer)
{
    static const verify_range everything = {0, UINT64_MAX};
    term_progress("plain run 1 of 2");
    if (!verify_run_plain(request, &answer->plain)) {
        return VERDICT_NONE;
    }
    if (answer->plain.status != 0) {
        return VERDICT_PROGRAM_FAILS;
    }
    term_progress("plain run 2 of 2");
    if (!verify_run_plain(request, &answer->again)) {
        return VERDICT_NONE;
    }
    if (!verify_compare(&answer->plain, &answer->again, &answer->difference)) {
        return VERDICT_NOT_DETERMINISTIC;
    }
    term_progress("run with all taken away that is not seen to be used");
    if (!verify_run_poisoned(request, everything, everything, &answer->poisoned)) {
        return VERDICT_NONE;
    }
    if (answer->poisoned.failure[0]) {
        return VERDICT_STUCK;
    }
    if (!verify_compare(&answer->plain, &answer->poisoned, &answer->difference)) {
        return find_cause(request, answer);
    }
    return has_seen(&answer->poisoned, answer) ? VERDICT_VERIFIED : VERDICT_NOTHING_SEEN;
}

/* ---- for people ---- */

static void print_difference(const verify_difference *d, const char *one, const char *other)
{
    if (d->is_status) {
        printable_line("  %s: %s", one, d->first);
        printable_line("  %s: %s", other, d->second);
    } else {
        printable_line("  line %" PRIu64 " of its output, %s: %s", d->line, one, d->first);
        printable_line("  line %" PRIu64 " of its output, %s: %s", d->line, other, d->second);
    }
}

static void print_verified(const verify_answer *answer)
{
    char launches[UNITS_CHARS];
    char blocks[UNITS_CHARS];
    char lines[UNITS_CHARS];
    (void)printf("%sverified%s: %s launches, %s blocks; %s lines of output are the same to the byte\n",
                 term_on(TERM_GOOD), term_off(TERM_GOOD), units_count(answer->n_launches, launches),
                 units_count(answer->n_blocks, blocks), units_count(verify_count_lines(&answer->plain), lines));
    if (verify_count_lines(&answer->plain) == 0) {
        (void)printf("The program prints nothing: only its exit code was compared. Let it print its losses.\n");
    }
}

static void print_culprit(const verify_answer *answer)
{
    const verify_culprit *culprit = &answer->culprit;
    char bytes[UNITS_CHARS];
    char size[UNITS_CHARS + 4] = "";
    if (culprit->block_bytes) {
        (void)snprintf(size, sizeof size, " (%s)", units_bytes(culprit->block_bytes, bytes));
    }
    (void)printf("%snot verified%s: ", term_on(TERM_WARN), term_off(TERM_WARN));
    printable_line("launch %" PRIu64 " of %" PRIu64 ", %s,", culprit->launch, answer->n_launches,
                   culprit->kernel[0] ? culprit->kernel : "of no known name");
    (void)printf("uses block %" PRIu64 "%s in a way that neap does not see%s.\n", culprit->block, size,
                 culprit->is_alone ? "" : " (not alone: together with earlier ones)");
    print_difference(&answer->difference, "plain", "verify");
    (void)printf("With `neap run` and a limit this program could compute something else. Without a limit nothing\n"
                 "leaves the device, and it is safe.\n");
}

static void print_answer(const verify_request *request, const verify_answer *answer)
{
    char text[64];
    switch (answer->verdict) {
    case VERDICT_VERIFIED:
        print_verified(answer);
        break;
    case VERDICT_DIFFERS:
        print_culprit(answer);
        break;
    case VERDICT_NOT_DETERMINISTIC:
        (void)printf("cannot tell: two plain runs of this program are not alike\n");
        print_difference(&answer->difference, "first run", "second run");
        (void)printf("Fix its seeds, let it print no times, and ask for deterministic kernels, in PyTorch:\n"
                     "  torch.manual_seed(0); torch.use_deterministic_algorithms(True)\n"
                     "  with CUBLAS_WORKSPACE_CONFIG=:4096:8 in the environment\n");
        break;
    case VERDICT_PROGRAM_FAILS:
        printable_line("cannot tell: %s, run plainly, ends with %s", request->program[0],
                       verify_status_text(answer->plain.status, text));
        verify_print_tail(&answer->plain, stdout);
        break;
    case VERDICT_NOTHING_SEEN:
        (void)printf("cannot tell: neap saw no CUDA work on blocks of this program (%s)\n",
                     verify_status_text(answer->poisoned.status, text));
        verify_print_tail(&answer->poisoned, stdout);
        break;
    case VERDICT_NOT_POISON:
        (void)printf("%snot verified%s: it differs under neap, though nothing was taken away\n", term_on(TERM_WARN),
                     term_off(TERM_WARN));
        print_difference(&answer->difference, "plain", "under neap");
        verify_print_tail(&answer->bare, stdout);
        break;
    case VERDICT_STUCK:
        printable_line("cannot tell: %s", answer->poisoned.failure);
        break;
    case VERDICT_NONE:
        break;
    }
}

/* ---- for programs ---- */

static const char *const verdict_names[] = {
    [VERDICT_VERIFIED] = "verified",
    [VERDICT_DIFFERS] = "differs",
    [VERDICT_NOT_DETERMINISTIC] = "not deterministic",
    [VERDICT_PROGRAM_FAILS] = "the program fails",
    [VERDICT_NOTHING_SEEN] = "nothing seen",
    [VERDICT_NOT_POISON] = "differs without cause",
    [VERDICT_STUCK] = "blocks cannot be taken away",
};

static void put_difference(json *out, const verify_difference *d)
{
    json_object_begin(out, "difference");
    if (d->is_status) {
        json_null(out, "line");
    } else {
        json_uint(out, "line", d->line);
    }
    json_text(out, "first", d->first);
    json_text(out, "second", d->second);
    json_object_end(out);
}

static void print_json(const verify_request *request, const verify_answer *answer)
{
    bool differs = answer->verdict == VERDICT_DIFFERS;
    json out = json_begin(stdout);
    json_object_begin(&out, NULL);
    json_array_begin(&out, "program");
    for (size_t i = 0; request->program[i]; i++) {
        json_text(&out, NULL, request->program[i]);
    }
    json_array_end(&out);
    json_text(&out, "verdict", verdict_names[answer->verdict]);
    json_bool(&out, "verified", answer->verdict == VERDICT_VERIFIED);
    json_bool(&out, "remembered", answer->is_remembered);
    json_uint(&out, "runs", request->n_runs);
    json_uint(&out, "launches", answer->n_launches);
    json_uint(&out, "blocks", answer->n_blocks);
    if (differs) {
        json_uint(&out, "launch", answer->culprit.launch);
        json_text(&out, "kernel", answer->culprit.kernel[0] ? answer->culprit.kernel : NULL);
        json_uint(&out, "block", answer->culprit.block);
        json_uint(&out, "block_bytes", answer->culprit.block_bytes);
        json_bool(&out, "alone", answer->culprit.is_alone);
    }
    if (differs || answer->verdict == VERDICT_NOT_DETERMINISTIC || answer->verdict == VERDICT_NOT_POISON) {
        put_difference(&out, &answer->difference);
    }
    json_object_end(&out);
    json_end(&out);
}

/* ---- the verb ---- */

static bool make_keep_folder(const char *keep)
{
    if (mkdir(keep, 0777) == 0 || errno == EEXIST) {
        return true;
    }
    printable_say("cannot make %s: %s", keep, strerror(errno));
    return false;
}

static int answer_request(verify_request *request, bool as_json)
{
    static const int codes[] = {
        [VERDICT_VERIFIED] = EXIT_GOOD,     [VERDICT_DIFFERS] = EXIT_NO,       [VERDICT_NOT_DETERMINISTIC] = EXIT_BAD,
        [VERDICT_PROGRAM_FAILS] = EXIT_BAD, [VERDICT_NOTHING_SEEN] = EXIT_BAD, [VERDICT_NOT_POISON] = EXIT_NO,
        [VERDICT_STUCK] = EXIT_BAD,         [VERDICT_NONE] = EXIT_BAD};
    verify_answer answer = {0};
    uint64_t identity = run_identity(request->library, request->program);
    answer.verdict = find_verdict(request, &answer);
    term_progress_clear();
    if (answer.verdict == VERDICT_VERIFIED) {
        answer.is_remembered = run_remember_verified(identity, request->program);
    }
    if (answer.verdict != VERDICT_NONE && as_json) {
        print_json(request, &answer);
    } else {
        print_answer(request, &answer);
    }
    verify_close(&answer.plain);
    verify_close(&answer.again);
    verify_close(&answer.poisoned);
    verify_close(&answer.bare);
    return codes[answer.verdict];
}

static int run_verify(const verb *self, int n_args, char **args)
{
    verify_args parsed = {0};
    char library[RUN_PATH_BYTES];
    if (!options_parse(self, n_args, args, &parsed.common)) {
        return EXIT_BAD;
    }
    if (parsed.common.help) {
        options_help(self, parsed.common.json);
        return EXIT_GOOD;
    }
    if (!run_find_library(library) || (parsed.keep && !make_keep_folder(parsed.keep))) {
        return EXIT_BAD;
    }
    verify_request request = {.program = parsed.common.operands, .library = library, .keep = parsed.keep};
    term_catch_interrupt(true);
    int code = answer_request(&request, parsed.common.json);
    term_catch_interrupt(false);
    return code;
}

static const option verify_options[] = {
    {.name = "keep",
     .kind = OPTION_TEXT,
     .value = "FOLDER",
     .offset = offsetof(verify_args, keep),
     .help = "keep what every run printed there"},
    COMMON_OPTIONS,
};

const verb verb_verify = {
    .name = "verify",
    .operand = "PROGRAM...",
    .has_program = true,
    .summary = "proves that neap sees all memory that a program's kernels touch",
    .details =
        "The program runs twice as it is, and must print the same to the byte: fix its seeds, and let it print "
        "losses.\n"
        "Then once with everything overwritten, before every launch, that the launch is not seen to touch. Where the\n"
        "output is the same, that is remembered, and `neap run` knows. Where it differs, further runs find the launch\n"
        "and the block. A few iterations are enough: every run is much slower than the program is.\n"
        "Exit codes: 0 verified; 1 a launch was found; 2 it could not be told.\n",
    .options = verify_options,
    .n_options = sizeof verify_options / sizeof verify_options[0],
    .run = run_verify,
};
