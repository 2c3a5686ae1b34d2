/* virtual.c: a type's name is a string, a type_info points to it, a table of virtual functions to that, just before its first
 * function, and an object to there. Each step is a search for a word through what is mapped of the library, which is small. */
#define _GNU_SOURCE /* dladdr, dl_iterate_phdr */
#include "hook/virtual.h"

#include <dlfcn.h>
#include <link.h>
#include <stdint.h>
#include <string.h>

enum { MAX_PIECES = 16, MAX_FUNCTIONS = 1024 };

typedef struct piece {
    const char *begin;
    const char *end;
    bool is_written; /* it may be */
    bool is_code;
} piece;

typedef struct image {
    const char *within; /* an address of it */
    const char *name;
    piece pieces[MAX_PIECES];
    size_t n;
} image;

static int take_image(struct dl_phdr_info *info, size_t size, void *user)
{
    image *of = user;
    bool is_it = false;
    (void)size;
    of->n = 0;
    of->name = info->dlpi_name;
    for (size_t i = 0; i < info->dlpi_phnum && of->n < MAX_PIECES; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        const char *begin = (const char *)(uintptr_t)(info->dlpi_addr + header->p_vaddr);
        if (header->p_type == PT_LOAD && (header->p_flags & PF_R)) {
            of->pieces[of->n++] = (piece){.begin = begin,
                                          .end = begin + header->p_memsz,
                                          .is_written = (header->p_flags & PF_W) != 0,
                                          .is_code = (header->p_flags & PF_X) != 0};
            is_it = is_it || (of->within >= begin && of->within < begin + header->p_memsz);
        }
    }
    return is_it;
}

static bool find_image(const void *address, image *found)
{
    *found = (image){.within = address};
    return dl_iterate_phdr(take_image, found) != 0;
}

/* What lies between variables is read, too, which a sanitizer would complain of. */
#define AS_BYTES __attribute__((no_sanitize("address", "thread")))

/* The next aligned word in the image that has that value; NULL: there is none. Code has none. */
AS_BYTES static void *const *next_word(const image *of, const void *value, bool is_written, void *const *after)
{
    for (size_t i = 0; i < of->n; i++) {
        const piece *p = &of->pieces[i];
        void *const *at = (void *const *)(((uintptr_t)p->begin + sizeof(void *) - 1) / sizeof(void *) * sizeof(void *));
        if (p->is_code || (is_written && !p->is_written) || (after && (const char *)after >= p->end)) {
            continue;
        }
        at = after && (const char *)after >= p->begin ? after + 1 : at;
        for (; (const char *)(at + 1) <= p->end; at++) {
            if (*at == value) {
                return at;
            }
        }
    }
    return NULL;
}

/* The name with its end, and nothing of a longer one before it. */
AS_BYTES static const char *find_name(const image *of, const char *name)
{
    size_t n = strlen(name) + 1;
    for (size_t i = 0; i < of->n; i++) {
        const piece *p = &of->pieces[i];
        for (const char *at = p->begin; at + n <= p->end; at++) {
            size_t same = 0;
            while (same < n && at[same] == name[same]) {
                same++;
            }
            if (same == n && (at == p->begin || at[-1] == '\0')) {
                return at;
            }
        }
    }
    return NULL;
}

static bool is_first_word(const image *of, const void *at)
{
    for (size_t i = 0; i < of->n; i++) {
        if ((const char *)at < of->pieces[i].begin + sizeof(void *) && (const char *)at >= of->pieces[i].begin) {
            return true;
        }
    }
    return false;
}

/* The first function of the type's own table: the word before is the type_info, and the one before that is 0. */
AS_BYTES static void *const *find_table(const image *of, const char *type)
{
    const char *name = find_name(of, type);
    void *const *at = NULL;
    while (name && (at = next_word(of, name, false, at))) {
        const void *info = at - 1;
        void *const *use = NULL;
        while ((use = next_word(of, info, false, use))) {
            if (!is_first_word(of, use) && use[-1] == NULL && use[1] != NULL) {
                return use + 1;
            }
        }
    }
    return NULL;
}

bool np_virtual_is_in(const void *address, const char *library)
{
    image whole;
    const char *slash = find_image(address, &whole) ? strrchr(whole.name, '/') : NULL;
    return slash && strcmp(slash + 1, library) == 0;
}

void *np_virtual_find(const void *address, const char *type)
{
    image whole;
    void *const *table = find_image(address, &whole) ? find_table(&whole, type) : NULL;
    void *const *object = table ? next_word(&whole, table, true, NULL) : NULL;
    bool is_one = object && !next_word(&whole, table, true, object);
    return is_one ? (void *)(uintptr_t)object : NULL;
}

void **np_virtual_slots(const void *object)
{
    void **slots;
    memcpy(&slots, object, sizeof slots);
    return slots;
}

bool np_virtual_is(const void *object, const char *type)
{
    void *const *info = np_virtual_slots(object)[-1];
    const char *name = info ? info[1] : NULL;
    return name && strcmp(name, type) == 0;
}

static bool is_code(const void *address)
{
    image whole;
    if (!address || !find_image(address, &whole)) {
        return false;
    }
    for (size_t i = 0; i < whole.n; i++) {
        const piece *p = &whole.pieces[i];
        if (p->is_code && (const char *)address >= p->begin && (const char *)address < p->end) {
            return true;
        }
    }
    return false;
}

AS_BYTES size_t np_virtual_count(void *const *slots)
{
    size_t n = 0;
    while (n < MAX_FUNCTIONS && is_code(slots[n])) {
        n++;
    }
    return n;
}

/* What of the function's name comes after the class's; NULL: it is shown by no such name. */
static const char *member(const void *function, const char *class_name)
{
    Dl_info info;
    const char *at = dladdr(function, &info) && info.dli_saddr == function ? info.dli_sname : NULL;
    const char *last = NULL;
    for (at = at ? strstr(at, class_name) : NULL; at; at = strstr(at + 1, class_name)) {
        const char *after = at + strlen(class_name);
        last = *after >= '0' && *after <= '9' ? after : last; /* a scope may have the class's name */
    }
    return last;
}

size_t np_virtual_slot(void *const *slots, size_t n, const char *class_name, const char *function)
{
    size_t length = strlen(function);
    for (size_t i = 0; i < n; i++) {
        const char *name = member(slots[i], class_name);
        if (name && strncmp(name, function, length) == 0 && (name[length] == 'E' || name[length] == 'B')) {
            return i;
        }
    }
    return (size_t)-1;
}

bool np_virtual_has_name(void *const *slots, size_t slot, const char *class_name)
{
    return member(slots[slot], class_name) != NULL;
}
