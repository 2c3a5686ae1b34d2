/* cupti.h: the part of CUPTI that the stand-in has, by the layouts and numbers of the real headers (test_cupti.c compares
 * where they are). It tells of calls of the stand-in driver. Ids of functions are its own and differ with
 * STANDIN_SEED: whoever needs one asks for the name of each. */
#ifndef TESTS_STANDIN_CUPTI_CUPTI_H
#define TESTS_STANDIN_CUPTI_CUPTI_H

#include <stddef.h>
#include <stdint.h>

enum {
    STANDIN_CUPTI_SUCCESS = 0,
    STANDIN_CUPTI_INVALID_PARAMETER = 1,
    STANDIN_CUPTI_NOT_INITIALIZED = 15,
    STANDIN_CUPTI_MULTIPLE_SUBSCRIBERS = 39, /* CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED */

    STANDIN_CUPTI_DRIVER_API = 1, /* CUPTI_CB_DOMAIN_DRIVER_API */
    STANDIN_CUPTI_N_DOMAINS = 7,

    STANDIN_CUPTI_ENTER = 0,
    STANDIN_CUPTI_EXIT = 1,

    STANDIN_CUPTI_VERSION = 130001,
};

typedef struct standin_cupti_data { /* CUpti_CallbackData */
    int site;
    const char *function;
    const void *parameters;
    void *result;
    const char *symbol;
    void *context;
    uint32_t context_id;
    uint64_t *data;
    uint32_t correlation;
} standin_cupti_data;

typedef struct standin_cupti_params { /* CUpti_SubscriberParams */
    size_t struct_bytes;
    const char *name;
    char *old_name;
    size_t old_name_bytes;
    uint8_t allows_several;
    uint8_t padding[7];
} standin_cupti_params;

typedef void (*standin_cupti_callback)(void *user, int domain, uint32_t id, const void *data);

#endif
