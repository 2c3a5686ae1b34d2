#include "hook/forward.h"

#include <stddef.h>

__attribute__((visibility("hidden"))) np_forward np_the_forward;

#if defined(__x86_64__)

/* Each entry loads its slot into a register that no argument is passed in. %rdi is `this`, or where a result is to be put that
 * does not fit into registers: then %rsi is `this`. */
__asm__(".pushsection .text\n"
        ".macro np_entries name, common\n"
        ".p2align 4\n"
        "\\name:\n"
        "np_slot = 0\n"
        ".rept 128\n"
        ".p2align 4\n"
        "movl $np_slot, %r11d\n"
        "jmp \\common\n"
        "np_slot = np_slot + 1\n"
        ".endr\n"
        ".endm\n"
        "np_entries np_forward_entries, np_forward_on\n"
        "np_entries np_asking_entries, np_forward_ask\n"
        ".p2align 4\n"
        "np_forward_ask:\n"
        ".cfi_startproc\n"
        "pushq %rdi\n"
        "pushq %rsi\n"
        "pushq %rdx\n"
        "pushq %rcx\n"
        "pushq %r8\n"
        "pushq %r9\n"
        "pushq %r11\n" /* with the return address, a multiple of 16 */
        ".cfi_adjust_cfa_offset 56\n"
        "movl %r11d, %edi\n"
        "call *np_the_forward+24(%rip)\n"
        "popq %r11\n"
        "popq %r9\n"
        "popq %r8\n"
        "popq %rcx\n"
        "popq %rdx\n"
        "popq %rsi\n"
        "popq %rdi\n"
        ".cfi_adjust_cfa_offset -56\n"
        "np_forward_on:\n"
        "cmpq np_the_forward(%rip), %rdi\n"
        "jne 1f\n"
        "movq np_the_forward+8(%rip), %rdi\n"
        "jmp 2f\n"
        "1: movq np_the_forward+8(%rip), %rsi\n"
        "2: movq np_the_forward+16(%rip), %r10\n"
        "jmp *(%r10,%r11,8)\n"
        ".cfi_endproc\n"
        ".popsection\n");

_Static_assert(offsetof(np_forward, to) == 8 && offsetof(np_forward, to_slots) == 16 &&
                   offsetof(np_forward, asked) == 24,
               "as the entries have it");
_Static_assert(NP_FORWARD_SLOTS == 128, "as the entries have it");

enum { ENTRY_BYTES = 16 };

extern const char np_forward_entries[] __attribute__((visibility("hidden")));
extern const char np_asking_entries[] __attribute__((visibility("hidden")));

void *np_forward_slot(unsigned slot)
{
    return slot < NP_FORWARD_SLOTS ? (void *)(uintptr_t)(np_forward_entries + (size_t)slot * ENTRY_BYTES) : NULL;
}

void *np_forward_asking(unsigned slot)
{
    return slot < NP_FORWARD_SLOTS ? (void *)(uintptr_t)(np_asking_entries + (size_t)slot * ENTRY_BYTES) : NULL;
}

#else

void *np_forward_slot(unsigned slot)
{
    (void)slot;
    return NULL;
}

void *np_forward_asking(unsigned slot)
{
    (void)slot;
    return NULL;
}

#endif
