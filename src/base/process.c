#define _DEFAULT_SOURCE /* madvise */
#include "base/process.h"

#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18 /* since Linux 4.14 */
#endif

static size_t page_bytes(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

void np_process_init(np_process *process)
{
    void *page = mmap(NULL, page_bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    *process = (np_process){.pid = getpid()};
    if (page != MAP_FAILED && madvise(page, page_bytes(), MADV_WIPEONFORK) != 0) {
        (void)munmap(page, page_bytes());
        page = MAP_FAILED;
    }
    if (page != MAP_FAILED) {
        *(unsigned char *)page = 1;
        process->is_here = page;
    }
}

void np_process_free(np_process *process)
{
    if (process->is_here) {
        (void)munmap((void *)(uintptr_t)process->is_here, page_bytes());
        process->is_here = NULL;
    }
}

bool np_process_is_child(const np_process *process)
{
    return process->is_here ? *process->is_here == 0 : getpid() != process->pid;
}
