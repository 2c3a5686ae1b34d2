#include "hook_parts/capture.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "testing.h"

stderr_capture capture_begin(void)
{
    char path[TEST_PATH_BYTES];
    stderr_capture capture;
    test_temp_path(path, "stderr");
    capture.reads = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    ASSERT_GE(capture.reads, 0);
    (void)unlink(path);
    capture.kept = dup(STDERR_FILENO);
    ASSERT_GE(capture.kept, 0);
    ASSERT_GE(dup2(capture.reads, STDERR_FILENO), 0);
    return capture;
}

void capture_end(stderr_capture *capture, char *text, size_t bytes)
{
    (void)dup2(capture->kept, STDERR_FILENO);
    (void)close(capture->kept);
    ssize_t n = pread(capture->reads, text, bytes - 1, 0);
    text[n > 0 ? n : 0] = '\0';
    (void)close(capture->reads);
}
