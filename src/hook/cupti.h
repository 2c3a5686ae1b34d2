/* cupti.h: CUPTI, loaded at run time, and the few of its types that are used here, with the layout of its headers. */
#ifndef NP_HOOK_CUPTI_H
#define NP_HOOK_CUPTI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct np_cupti_data { /* CUpti_CallbackData */
    int site;                  /* 0: before the call, 1: after it */
    const char *function_name;
    const void *parameters;  /* the call's arguments, as a struct */
    void *result;            /* after: CUresult * */
    const char *symbol_name; /* of a launch: the kernel's */
    void *context;           /* CUcontext */
    uint32_t context_uid;
    uint64_t *correlation_data; /* one word from the call's begin to its end */
    uint32_t correlation_id;
} np_cupti_data;

typedef void np_cupti_callback(void *user, int domain, uint32_t id, const np_cupti_data *data);

enum { NP_CUPTI_DRIVER = 1, NP_CUPTI_ENTER = 0, NP_CUPTI_EXIT = 1 };

typedef struct np_cupti_subscription { /* CUpti_SubscriberParams, of CUPTI 13.2 */
    size_t struct_bytes;
    const char *name;
    char *other; /* it writes here who is there already */
    size_t other_bytes;
    uint8_t allows_others;
    uint8_t padding[7];
} np_cupti_subscription;

enum { NP_CUPTI_TAKEN = 39 /* CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED */, NP_CUPTI_NAME_BYTES = 64 };

typedef int np_cupti_subscribe_function(void **subscriber, np_cupti_callback *callback, void *user,
                                        np_cupti_subscription *subscription);

/* X(field, symbol, parameters): all are needed. */
#define NP_CUPTI_SYMBOLS(X)                                                                      \
    X(subscribe, cuptiSubscribe, (void **subscriber, np_cupti_callback *callback, void *user))   \
    X(unsubscribe, cuptiUnsubscribe, (void *subscriber))                                         \
    X(enable, cuptiEnableCallback, (uint32_t enable, void *subscriber, int domain, uint32_t id)) \
    X(name, cuptiGetCallbackName, (int domain, uint32_t id, const char **name))                  \
    X(explain, cuptiGetResultString, (int result, const char **text))

typedef struct np_cupti {
    void *library;
    np_cupti_subscribe_function *subscribe_beside; /* NULL: it has no such function */
/* NOLINTNEXTLINE(bugprone-macro-parentheses): parameters of a function */
#define NP_CUPTI_FIELD(field, symbol, parameters) int(*field) parameters;
    NP_CUPTI_SYMBOLS(NP_CUPTI_FIELD)
#undef NP_CUPTI_FIELD
} np_cupti;

/* What NEAP_CUPTI names, or one that the process has loaded, or one that the loader or the CUDA toolkit's usual folder
 * has. False: there is none; *why says so in one line, static. */
bool np_cupti_load(np_cupti *cupti, const char **why);

/* Beside other subscribers where it can be, unless `is_alone`: CUPTI 13.2 knows several, if each allows it. Its result; `other` gets
 * the name of the one who is in the way, or "". */
int np_cupti_subscribe(const np_cupti *cupti, bool is_alone, np_cupti_callback *callback, void **subscriber,
                       char other[NP_CUPTI_NAME_BYTES]);

#endif
