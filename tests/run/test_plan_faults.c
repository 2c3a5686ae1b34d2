/* test_plan_faults.c: saving plans while the system fails: each call that saving makes fails in turn, with several errors; the
 * process dies before each call, and after every prefix of what is written. Whatever happens, under the path there is what was
 * there before or the new plan, whole; a save that said it succeeded is there; and the next save succeeds.
 *
 * The calls are stood in for here: in a program, a function of its own comes before the C library's. */
#define _GNU_SOURCE /* syscall */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run/learned.h"
#include "testing.h"

enum { CALLS_MAX = 64, OLD = 4096, NEW = 8192, DIED = 42, NEVER = 1 << 30 };

typedef enum call_kind { OPEN, WRITE, FSYNC, CLOSE, RENAME, UNLINK, MKDIR, RMDIR } call_kind;

static struct faults {
    bool is_armed;
    int fail_at;     /* number of the call that fails, */
    int why;         /* with this errno */
    int die_at;      /* number of the call before which the process ends */
    long dies_after; /* bytes written */
    bool is_slow;    /* a byte at a time */
    bool keeps_all;  /* nothing can be removed */
    int n_calls;
    struct {
        call_kind kind;
        int fd; /* that was worked on, or opened */
    } calls[CALLS_MAX];
} faults;

static void arm(void)
{
    faults = (struct faults){.is_armed = true, .fail_at = NEVER, .die_at = NEVER, .dies_after = NEVER};
}

/* True: this call fails, and errno is set. */
static bool is_failing(call_kind kind, int fd)
{
    int number = faults.n_calls;
    if (!faults.is_armed) {
        return false;
    }
    if (number == faults.die_at) {
        _exit(DIED);
    }
    if (number < CALLS_MAX) {
        faults.calls[number].kind = kind;
        faults.calls[number].fd = fd;
    }
    faults.n_calls++;
    errno = number == faults.fail_at ? faults.why : errno;
    return number == faults.fail_at;
}

int open(const char *path, int flags, ...)
{
    mode_t mode = 0;
    int fd;
    if (flags & O_CREAT) {
        va_list args;
        va_start(args, flags);
        mode = va_arg(args, mode_t);
        va_end(args);
    }
    if (is_failing(OPEN, -1)) {
        return -1;
    }
    fd = (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
    if (faults.is_armed && faults.n_calls <= CALLS_MAX) {
        faults.calls[faults.n_calls - 1].fd = fd;
    }
    return fd;
}

ssize_t write(int fd, const void *bytes, size_t n)
{
    if (is_failing(WRITE, fd)) {
        return -1;
    }
    if (faults.is_armed && faults.is_slow && n > 1) {
        n = 1;
    }
    if (faults.is_armed && (long)n >= faults.dies_after) {
        (void)syscall(SYS_write, fd, bytes, (size_t)faults.dies_after);
        _exit(DIED);
    }
    if (faults.is_armed && faults.dies_after != NEVER) {
        faults.dies_after -= (long)n;
    }
    return syscall(SYS_write, fd, bytes, n);
}

int fsync(int fd)
{
    return is_failing(FSYNC, fd) ? -1 : (int)syscall(SYS_fsync, fd);
}

int close(int fd) /* a failing close has closed all the same */
{
    bool fails = is_failing(CLOSE, fd);
    int why = errno;
    int result = (int)syscall(SYS_close, fd);
    errno = fails ? why : errno;
    return fails ? -1 : result;
}

int rename(const char *from, const char *to)
{
    return is_failing(RENAME, -1) ? -1 : (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

int unlink(const char *path)
{
    if (is_failing(UNLINK, -1)) {
        return -1;
    }
    errno = EPERM;
    return faults.is_armed && faults.keeps_all ? -1 : (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
}

int mkdir(const char *path, mode_t mode)
{
    return is_failing(MKDIR, -1) ? -1 : (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode);
}

int rmdir(const char *path)
{
    return is_failing(RMDIR, -1) ? -1 : (int)syscall(SYS_unlinkat, AT_FDCWD, path, AT_REMOVEDIR);
}

/* ---- one plan, in one folder ---- */

static char folder[TEST_PATH_BYTES];
static char path[TEST_PATH_BYTES];
static np_plan_origin origin;
static np_pattern *pattern;

static int set_up(void **state)
{
    uint64_t seed = 1;
    int n;
    (void)state;
    origin = learned_origin(LEARNED_PAGE);
    pattern = learn_random_pattern(&seed);
    test_temp_path(folder, "faults");
    n = snprintf(path, sizeof path, "%s/a.neap-plan", folder);
    ASSERT_TRUE(n > 0 && n < TEST_PATH_BYTES);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    np_pattern_free(pattern);
    return 0;
}

static neap_status save(uint64_t limit)
{
    const np_pattern *all = pattern;
    neap_error error;
    return np_plan_file_save(path, &origin, limit, &all, 1, NULL, &error);
}

/* The limit that the file under the path was saved with; 0: there is none. One that is there is whole. */
static uint64_t saved_limit(void)
{
    np_pattern *loaded = NULL;
    neap_error error = {""};
    uint64_t limit = 0;
    size_t n = 0;
    neap_status status = np_plan_file_load(path, &origin, NULL, &error, &limit, &loaded, 1, &n);
    if (status != NEAP_OK) {
        ASSERT_STR_EQ(error.text, ""); /* nothing is there, and that is all there is to say */
        return 0;
    }
    ASSERT_TRUE(n == 1 && patterns_are_equal(pattern, loaded));
    np_pattern_free(loaded);
    return limit;
}

/* Everything in the folder goes, and it too; how many files were not the plan. */
static int clear(void)
{
    DIR *entries = opendir(folder);
    const struct dirent *entry;
    int n = 0;
    while (entries && (entry = readdir(entries))) {
        char name[2 * TEST_PATH_BYTES];
        if (entry->d_name[0] != '.') {
            n += strcmp(entry->d_name, "a.neap-plan") != 0;
            (void)snprintf(name, sizeof name, "%s/%s", folder, entry->d_name);
            ASSERT_EQ(unlink(name), 0);
        }
    }
    if (entries) {
        (void)closedir(entries);
        ASSERT_EQ(rmdir(folder), 0);
    }
    return n;
}

/* An old plan is there, or nothing is, not even the folder. */
static void begin_with(bool has_old)
{
    (void)clear();
    if (has_old) {
        ASSERT_OK(save(OLD));
    }
}

static int count_calls(bool has_old)
{
    begin_with(has_old);
    arm();
    ASSERT_OK(save(NEW));
    faults.is_armed = false;
    ASSERT_GE(CALLS_MAX, faults.n_calls);
    return faults.n_calls;
}

/* ---- the order: what must be on the disk before what ---- */

static int find_call(call_kind kind, int fd, int from)
{
    for (int i = from; i < faults.n_calls; i++) {
        if (faults.calls[i].kind == kind && (fd < 0 || faults.calls[i].fd == fd)) {
            return i;
        }
    }
    return -1;
}

static void test_order(void **state)
{
    int written;
    int synced;
    int renamed;
    int opened;
    (void)state;
    (void)count_calls(true);
    written = find_call(WRITE, -1, 0);
    ASSERT_TRUE(written >= 0);
    synced = find_call(FSYNC, faults.calls[written].fd, written);
    renamed = find_call(RENAME, -1, 0);
    ASSERT_TRUE(synced > written && renamed > synced);
    ASSERT_EQ(find_call(WRITE, -1, synced), -1);
    opened = find_call(OPEN, -1, renamed); /* the folder: the name is to last, too */
    ASSERT_TRUE(opened > renamed);
    ASSERT_TRUE(find_call(FSYNC, faults.calls[opened].fd, opened) > opened);
    ASSERT_EQ(clear(), 0);
}

/* ---- failing calls ---- */

static void fail_one(bool has_old, int number, int why)
{
    neap_status status;
    call_kind kind;
    bool is_kept;
    uint64_t found;
    begin_with(has_old);
    arm();
    faults.fail_at = number;
    faults.why = why;
    status = save(NEW);
    faults.is_armed = false;
    kind = faults.calls[number].kind;
    is_kept = find_call(RENAME, -1, 0) >= 0 && kind != RENAME;
    found = saved_limit();
    ASSERT_EQ(found, is_kept ? NEW : has_old ? OLD : 0);
    if (status == NEAP_OK) {
        ASSERT_EQ(found, NEW);
    } else {
        ASSERT_STATUS(NEAP_IO, status);
    }
    if (found == 0 && kind != RMDIR && kind != UNLINK) {
        ASSERT_NE(access(folder, F_OK), 0);
    }
    ASSERT_OK(save(NEW));
    ASSERT_EQ(saved_limit(), NEW);
    ASSERT_EQ(clear(), 0); /* no temporary file is left */
}

static void test_each_call_fails(void **state)
{
    static const int reasons[] = {EIO, ENOSPC, EDQUOT, EINTR, EACCES, EROFS, EEXIST, ENOENT};
    (void)state;
    for (int has_old = 0; has_old < 2; has_old++) {
        int n = count_calls(has_old);
        ASSERT_GE(n, 8);
        for (int i = 0; i < n; i++) {
            for (size_t k = 0; k < sizeof reasons / sizeof *reasons; k++) {
                fail_one(has_old, i, reasons[k]);
            }
        }
    }
}

/* A write that fails, and then the removal after it, too: what is left over is in nothing's way. */
static void test_two_calls_fail(void **state)
{
    (void)state;
    begin_with(true);
    for (int i = 0; i < 3; i++) {
        arm();
        faults.fail_at = i + 1; /* the names of those left over are tried first */
        faults.keeps_all = true;
        faults.why = ENOSPC;
        ASSERT_STATUS(NEAP_IO, save(NEW));
        ASSERT_EQ(faults.calls[i + 1].kind, WRITE);
        faults.is_armed = false;
    }
    ASSERT_EQ(saved_limit(), OLD);
    ASSERT_OK(save(NEW));
    ASSERT_EQ(saved_limit(), NEW);
    ASSERT_EQ(clear(), 3);
}

static void test_a_byte_at_a_time(void **state)
{
    (void)state;
    begin_with(true);
    arm();
    faults.is_slow = true;
    ASSERT_OK(save(NEW));
    faults.is_armed = false;
    ASSERT_EQ(saved_limit(), NEW);
    ASSERT_EQ(clear(), 0);
}

/* ---- deaths ---- */

/* In a child, which dies on the way; what is under the path then. */
static uint64_t die(bool has_old, int die_at, long dies_after)
{
    int status = 0;
    pid_t child;
    begin_with(has_old);
    child = fork();
    ASSERT_TRUE(child >= 0);
    if (child == 0) {
        arm();
        faults.die_at = die_at;
        faults.dies_after = dies_after;
        _exit(save(NEW) == NEAP_OK ? 0 : 1);
    }
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status));
    ASSERT_EQ(WEXITSTATUS(status), DIED);
    return saved_limit();
}

static void save_after_death(void)
{
    ASSERT_OK(save(NEW)); /* what was left over is not in the way */
    ASSERT_EQ(saved_limit(), NEW);
    ASSERT_LE(clear(), 1);
}

static void test_death_before_each_call(void **state)
{
    (void)state;
    for (int has_old = 0; has_old < 2; has_old++) {
        int n = count_calls(has_old);
        int renamed = find_call(RENAME, -1, 0);
        for (int i = 0; i < n; i++) {
            ASSERT_EQ(die(has_old, i, NEVER), i > renamed ? NEW : has_old ? OLD : 0);
            save_after_death();
        }
    }
}

static void test_death_after_each_prefix(void **state)
{
    long step = TEST_SANITIZED ? 97 : 1;
    struct stat info;
    (void)state;
    begin_with(true);
    ASSERT_EQ(stat(path, &info), 0);
    for (long n = 0; n < info.st_size; n += step) {
        ASSERT_EQ(die(n % 2 == 0, NEVER, n), n % 2 == 0 ? OLD : 0);
        save_after_death();
    }
}

/* ---- whose it is ---- */

static mode_t mode_of(const char *name)
{
    struct stat info;
    ASSERT_EQ(stat(name, &info), 0);
    return info.st_mode & 07777;
}

static neap_status load_refused(const char *why)
{
    np_pattern *loaded = NULL;
    neap_error error = {""};
    uint64_t limit = 0;
    size_t n = 0;
    neap_status status = np_plan_file_load(path, &origin, NULL, &error, &limit, &loaded, 1, &n);
    ASSERT_CONTAINS(error.text, why);
    return status;
}

static void test_owner(void **state)
{
    mode_t mask = umask(0);
    (void)state;
    begin_with(true);
    (void)umask(mask);
    ASSERT_EQ(mode_of(folder), 0700);
    ASSERT_EQ(mode_of(path), 0600);
    ASSERT_EQ(chmod(path, 0644), 0); /* may be read by others: no harm to us */
    ASSERT_EQ(saved_limit(), OLD);
    ASSERT_EQ(chmod(path, 0620), 0);
    ASSERT_STATUS(NEAP_BAD_INPUT, load_refused("others may write to it"));
    ASSERT_EQ(chmod(path, 0602), 0);
    ASSERT_STATUS(NEAP_BAD_INPUT, load_refused("others may write to it"));
    ASSERT_EQ(chmod(path, 0600), 0);
    if (geteuid() == 0 && chown(path, 4711, 4711) == 0) {
        ASSERT_STATUS(NEAP_BAD_INPUT, load_refused("another user's"));
    }
    ASSERT_OK(save(NEW)); /* which makes it ours */
    ASSERT_EQ(saved_limit(), NEW);
    ASSERT_EQ(clear(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_each_call_fails),
        cmocka_unit_test(test_two_calls_fail),
        cmocka_unit_test(test_a_byte_at_a_time),
        cmocka_unit_test(test_death_before_each_call),
        cmocka_unit_test(test_death_after_each_prefix),
        cmocka_unit_test(test_owner),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
