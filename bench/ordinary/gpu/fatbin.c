/* fatbin.c: the layout of a kernel's parameters, from the cubin that nvcc put into the program. */
#include "fk.h"
#include <dlfcn.h>
#include <elf.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    uint16_t kind, version;
    uint32_t header_bytes;
    uint64_t bytes;
    uint32_t packed_bytes, options;
    uint16_t minor, major;
    uint32_t arch, name_at, name_bytes;
    uint64_t flags, zero, full_bytes;
} entry;
typedef struct {
    uint32_t magic;
    uint16_t version, header_bytes;
    uint64_t bytes;
} header;
enum { LZ4 = 0x2000, ZSTD = 0x8000 };

static size_t unlz4(const unsigned char *s, size_t n, unsigned char *d, size_t m)
{
    const unsigned char *end = s + n;
    unsigned char *o = d, *oe = d + m;
    while (s < end) {
        unsigned t = *s++;
        size_t l = t >> 4;
        if (l == 15) {
            unsigned c;
            do {
                c = *s++;
                l += c;
            } while (c == 255);
        }
        if (o + l > oe || s + l > end)
            return 0;
        memcpy(o, s, l);
        o += l;
        s += l;
        if (s >= end)
            break;
        size_t back = s[0] | s[1] << 8;
        s += 2;
        size_t ml = (t & 15) + 4;
        if ((t & 15) == 15) {
            unsigned c;
            do {
                c = *s++;
                ml += c;
            } while (c == 255);
        }
        if (back == 0 || back > (size_t)(o - d) || o + ml > oe)
            return 0;
        while (ml--) {
            *o = o[-(long)back];
            o++;
        }
    }
    return (size_t)(o - d);
}
static size_t unzstd(const void *s, size_t n, void *d, size_t m)
{
    static size_t (*f)(void *, size_t, const void *, size_t);
    if (!f) {
        void *l = dlopen("libzstd.so.1", RTLD_NOW);
        if (l)
            *(void **)&f = dlsym(l, "ZSTD_decompress");
        if (!f) {
            fprintf(stderr, "fakegpu: libzstd.so.1 is needed\n");
            abort();
        }
    }
    size_t r = f(d, m, s, n);
    return r > m ? 0 : r;
}
typedef struct elf {
    const void *image;
    char *bytes;
    size_t n;
    struct elf *next;
} elf;
static elf *elves;
static elf *find_elf(const void *image, int arch)
{
    for (elf *e = elves; e; e = e->next)
        if (e->image == image)
            return e;
    const header *h = image;
    const entry *best = NULL;
    if (h->magic == 0xBA55ED50) {
        const char *at = (const char *)image + h->header_bytes, *end = at + h->bytes;
        while (at < end) {
            const entry *e = (const entry *)at;
            if (e->kind == 2 && (int)e->arch <= arch && e->arch / 10 == (unsigned)arch / 10 &&
                (!best || e->arch > best->arch))
                best = e;
            at += e->header_bytes + e->bytes;
        }
    }
    elf *made = calloc(1, sizeof *made);
    made->image = image;
    if (best) {
        const char *p = (const char *)best + best->header_bytes;
        if (best->flags & (LZ4 | ZSTD)) {
            size_t full = best->full_bytes;
            char *d = malloc(full);
            size_t got = best->flags & ZSTD
                             ? unzstd(p, best->packed_bytes, d, full)
                             : unlz4((const unsigned char *)p, best->packed_bytes, (unsigned char *)d, full);
            if (got) {
                made->bytes = d;
                made->n = got;
            } else
                free(d);
        } else {
            made->bytes = (char *)p;
            made->n = best->bytes;
        }
    }
    made->next = elves;
    elves = made;
    return made;
}
bool fk_fatbin_layout(const void *image, const char *name, int arch, fk_param **params, uint32_t *n)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    char want[8192];
    bool found = false;
    pthread_mutex_lock(&lock);
    elf *e = find_elf(image, arch);
    if (!e->bytes) {
        pthread_mutex_unlock(&lock);
        return false;
    }
    const Elf64_Ehdr *h = (const Elf64_Ehdr *)e->bytes;
    const Elf64_Shdr *s = (const Elf64_Shdr *)(e->bytes + h->e_shoff);
    const char *str = e->bytes + s[h->e_shstrndx].sh_offset;
    snprintf(want, sizeof want, ".nv.info.%s", name);
    for (int i = 0; i < h->e_shnum; i++) {
        if (strcmp(str + s[i].sh_name, want) != 0)
            continue;
        const unsigned char *at = (const unsigned char *)e->bytes + s[i].sh_offset, *end = at + s[i].sh_size;
        fk_param *p = calloc(512, sizeof *p);
        uint32_t count = 0;
        while (at + 4 <= end) {
            unsigned format = at[0], attr = at[1], v = at[2] | at[3] << 8;
            const unsigned char *payload = at + 4;
            at += 4;
            if (format == 4) {
                if (attr == 0x17 && v >= 12) {
                    uint16_t ordinal, offset;
                    uint32_t w;
                    memcpy(&ordinal, payload + 4, 2);
                    memcpy(&offset, payload + 6, 2);
                    memcpy(&w, payload + 8, 4);
                    if (ordinal < 512) {
                        p[ordinal] = (fk_param){offset, w >> 18};
                        if (ordinal + 1u > count)
                            count = ordinal + 1u;
                    }
                } else if (attr == 0x45 && v >= 12) { /* _V2, parameters beyond 4 KiB */
                    uint16_t ordinal, offset;
                    uint32_t w;
                    memcpy(&ordinal, payload + 4, 2);
                    memcpy(&offset, payload + 6, 2);
                    memcpy(&w, payload + 8, 4);
                    if (ordinal < 512) {
                        p[ordinal] = (fk_param){offset, w};
                        if (ordinal + 1u > count)
                            count = ordinal + 1u;
                    }
                }
                at += v;
            }
        }
        *params = p;
        *n = count;
        found = true;
        break;
    }
    pthread_mutex_unlock(&lock);
    return found;
}
