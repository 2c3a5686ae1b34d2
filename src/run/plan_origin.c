/* plan_origin.c: where a plan was made, and whether that is here.
 *
 * The program is known by the path of its executable and a hash of its command line, both from /proc: a training script
 * is an interpreter with arguments, and other arguments make other iterations. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/real.h"
#include "base/status.h"
#include "run/plan_file.h"
#include "trace/message.h"

#define HASH_SEED 0x6e6561702d706c61u /* fixed: the hashes are kept from run to run */
#define NAME_CHARS 64                 /* of the program's name in a file's */
#define LINK_FACTOR 2                 /* by which measured speeds may differ */

/* ---- this process ---- */

static neap_status find_program(neap_error *error, char program[NP_PLAN_PATH_BYTES])
{
    static const char gone[] = " (deleted)"; /* what the system appends once the file was replaced */
    ssize_t n = readlink("/proc/self/exe", program, NP_PLAN_PATH_BYTES);
    if (n < 0) {
        return np_message_errno("/proc/self/exe", errno, error);
    }
    if (n == 0 || n == NP_PLAN_PATH_BYTES) {
        return np_fail(error, NEAP_IO, "/proc/self/exe: the path of the program is too long");
    }
    program[n] = '\0';
    if ((size_t)n > sizeof gone && strcmp(program + n - (sizeof gone - 1), gone) == 0) {
        program[(size_t)n - (sizeof gone - 1)] = '\0';
    }
    return NEAP_OK;
}

/* Fills the buffer as far as the file goes. */
static ssize_t read_full(int fd, char *buffer, size_t n_buffer)
{
    size_t n = 0;
    while (n < n_buffer) {
        ssize_t more = read(fd, buffer + n, n_buffer - n);
        if (more < 0 && errno == EINTR) {
            continue;
        }
        if (more < 0) {
            return -1;
        }
        if (more == 0) {
            break;
        }
        n += (size_t)more;
    }
    return (ssize_t)n;
}

static neap_status hash_command(neap_error *error, uint64_t *hash)
{
    char buffer[4096];
    uint64_t made = HASH_SEED;
    ssize_t n;
    int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return np_message_errno("/proc/self/cmdline", errno, error);
    }
    while ((n = read_full(fd, buffer, sizeof buffer)) > 0) {
        made = np_hash_combine(made, np_hash_bytes(buffer, (size_t)n, HASH_SEED));
    }
    if (n < 0) {
        neap_status status = np_message_errno("/proc/self/cmdline", errno, error);
        (void)close(fd);
        return status;
    }
    (void)close(fd);
    *hash = made;
    return NEAP_OK;
}

neap_status np_plan_origin_make(const np_device *device, const neap_device_options *options, const neap_link *link,
                                neap_error *error, np_plan_origin *origin)
{
    np_plan_origin made = {.page_bytes = device->page_bytes,
                           .n_pages = device->n_pages,
                           .n_streams = device->n_streams,
                           .limit = options->limit,
                           .limit_share = options->limit_share,
                           .min_block = options->min_block,
                           .seed = options->seed};
    neap_status status;
    (void)snprintf(made.version, sizeof made.version, "%s", neap_version());
    (void)snprintf(made.device, sizeof made.device, "%s", device->kind);
    if (link) {
        made.link = *link;
    }
    if (gethostname(made.machine, sizeof made.machine - 1) != 0) {
        return np_message_errno("the name of this machine", errno, error);
    }
    status = find_program(error, made.program);
    if (status == NEAP_OK) {
        status = hash_command(error, &made.command);
    }
    if (status == NEAP_OK) {
        *origin = made;
    }
    return status;
}

/* ---- what differs ---- */

/* Texts come from a file: made printable, and short. */
static neap_status differ_texts(neap_error *error, const char *what, const char *made, const char *here)
{
    char printable_made[120];
    char printable_here[120];
    (void)np_message_printable(made, strlen(made), printable_made, sizeof printable_made);
    (void)np_message_printable(here, strlen(here), printable_here, sizeof printable_here);
    return np_fail(error, NEAP_BAD_INPUT, "made %s %s, this is %s", what, printable_made, printable_here);
}

static neap_status compare_texts(const np_plan_origin *made, const np_plan_origin *here, neap_error *error)
{
    if (strcmp(made->version, here->version) != 0) {
        return differ_texts(error, "by neap", made->version, here->version);
    }
    if (strcmp(made->machine, here->machine) != 0) {
        return differ_texts(error, "on the machine", made->machine, here->machine);
    }
    if (strcmp(made->program, here->program) != 0) {
        return differ_texts(error, "for the program", made->program, here->program);
    }
    if (made->command != here->command) {
        return np_fail(error, NEAP_BAD_INPUT, "made for another command line of this program");
    }
    if (strcmp(made->device, here->device) != 0) {
        return differ_texts(error, "for the device", made->device, here->device);
    }
    return NEAP_OK;
}

static neap_status compare_numbers(const np_plan_origin *made, const np_plan_origin *here, neap_error *error)
{
    const struct {
        const char *format; /* what the number is of */
        uint64_t made;
        uint64_t here;
    } numbers[] = {
        {"a device with pages of %llu bytes, these have %llu", made->page_bytes, here->page_bytes},
        {"a device of %llu pages, this one has %llu", made->n_pages, here->n_pages},
        {"a device with %llu streams, this one has %llu", made->n_streams, here->n_streams},
        {"a limit of %llu bytes, this is %llu", made->limit, here->limit},
        {"swaps of blocks from %llu bytes on, this is %llu", made->min_block, here->min_block},
        {"seed %llu, this is %llu", made->seed, here->seed},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (numbers[i].made != numbers[i].here) {
            char text[160];
            (void)snprintf(text, sizeof text, numbers[i].format, (unsigned long long)numbers[i].made,
                           (unsigned long long)numbers[i].here);
            return np_fail(error, NEAP_BAD_INPUT, "made for %s", text);
        }
    }
    return NEAP_OK;
}

static bool is_like(double made, double here)
{
    return made <= LINK_FACTOR * here && here <= LINK_FACTOR * made;
}

neap_status np_plan_origin_compare(const np_plan_origin *made, const np_plan_origin *here, neap_error *error)
{
    const neap_link *a = &made->link;
    const neap_link *b = &here->link;
    neap_status status = compare_texts(made, here, error);
    if (status == NEAP_OK) {
        status = compare_numbers(made, here, error);
    }
    if (status != NEAP_OK) {
        return status;
    }
    if (!(made->limit_share == here->limit_share)) {
        return np_fail(error, NEAP_BAD_INPUT, "made for a limit of %s of the peak load, this is %s",
                       np_real_digits(made->limit_share, 4).text, np_real_digits(here->limit_share, 4).text);
    }
    if (made->limit == 0 && made->limit_share == 0) { /* nothing is copied */
        return NEAP_OK;
    }
    if (a->out_gbs != 0 && b->out_gbs != 0 && !(is_like(a->out_gbs, b->out_gbs) && is_like(a->in_gbs, b->in_gbs))) {
        return np_fail(error, NEAP_BAD_INPUT, "made for a link of %s GB/s out and %s in, this one has %s and %s",
                       np_real_digits(a->out_gbs, 3).text, np_real_digits(a->in_gbs, 3).text,
                       np_real_digits(b->out_gbs, 3).text, np_real_digits(b->in_gbs, 3).text);
    }
    return NEAP_OK;
}

/* ---- the file's name ---- */

static uint64_t hash_text(uint64_t hash, const char *text)
{
    return np_hash_combine(hash, np_hash_bytes(text, strlen(text), HASH_SEED));
}

static uint64_t hash_origin(const np_plan_origin *origin)
{
    uint64_t share;
    uint64_t hash = HASH_SEED;
    memcpy(&share, &origin->limit_share, sizeof share);
    hash = hash_text(hash, origin->machine);
    hash = hash_text(hash, origin->program);
    hash = np_hash_combine(hash, origin->command);
    hash = hash_text(hash, origin->device);
    hash = np_hash_combine(hash, origin->page_bytes);
    hash = np_hash_combine(hash, origin->n_pages);
    hash = np_hash_combine(hash, origin->n_streams);
    hash = np_hash_combine(hash, origin->limit);
    hash = np_hash_combine(hash, share);
    hash = np_hash_combine(hash, origin->min_block);
    return np_hash_combine(hash, origin->seed);
}

static bool is_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
           c == '-' || c == '+';
}

neap_status np_plan_file_name(const np_plan_origin *origin, const char *folder, neap_error *error,
                              char path[NP_PLAN_PATH_BYTES])
{
    const char *slash = strrchr(origin->program, '/');
    const char *base = slash ? slash + 1 : origin->program;
    char name[NAME_CHARS + 1];
    size_t n = 0;
    int n_path;
    for (; base[n] && n < NAME_CHARS; n++) {
        name[n] = is_plain(base[n]) && (n > 0 || base[n] != '.') ? base[n] : '_';
    }
    name[n] = '\0';
    n_path = snprintf(path, NP_PLAN_PATH_BYTES, "%s/%s-%016llx.neap-plan", folder, n > 0 ? name : "program",
                      (unsigned long long)hash_origin(origin));
    return n_path > 0 && n_path < NP_PLAN_PATH_BYTES
               ? NEAP_OK
               : np_fail(error, NEAP_TOO_LARGE, "the path of the folder for plans is too long");
}
