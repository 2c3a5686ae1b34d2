/* call.h: what every function of the stand-in begins and ends with.
 *
 * BEGIN tells the tracer of the call, with its parameters in the layout CUPTI gives them (a struct of all in order), then
 * takes the lock, or returns where the call is to fail. When the function returns, the tracer is told of that too. */
#ifndef TESTS_STANDIN_CALL_H
#define TESTS_STANDIN_CALL_H

#include "device/cuda_types.h"
#include "standin/standin.h"

/* What a call needs. */
enum {
    NEEDS_NOTHING = 0,
    NEEDS_INIT = 1,
    NEEDS_CONTEXT = 3, /* and so cuInit */
    IS_UNSAFE = 4,     /* it ends captures that do not allow it */
};

typedef struct api_call {
    const char *symbol;
    const void *parameters;
    const void *kernel; /* of a launch */
    np_cu_result result;
    standin_tracer tracer; /* that was told of its begin, or NULL */
    standin_traced traced;
    uint64_t data;          /* the tracer's own, from begin to end */
    struct api_call *outer; /* of the same thread: the tracer makes calls too */
} api_call;

np_cu_result call_begin(api_call *c, unsigned needs); /* with the lock held where it is 0, without it otherwise */
void call_end(api_call *c);
np_cu_result end(np_cu_result result); /* lets go of the lock */

/* clang-format off */
#define FIELDS_1(a) __typeof__(a) p1;
#define FIELDS_2(a, b) FIELDS_1(a) __typeof__(b) p2;
#define FIELDS_3(a, b, c) FIELDS_2(a, b) __typeof__(c) p3;
#define FIELDS_4(a, b, c, d) FIELDS_3(a, b, c) __typeof__(d) p4;
#define FIELDS_5(a, b, c, d, e) FIELDS_4(a, b, c, d) __typeof__(e) p5;
#define FIELDS_6(a, b, c, d, e, f) FIELDS_5(a, b, c, d, e) __typeof__(f) p6;
#define FIELDS_7(a, b, c, d, e, f, g) FIELDS_6(a, b, c, d, e, f) __typeof__(g) p7;
#define FIELDS_8(a, b, c, d, e, f, g, h) FIELDS_7(a, b, c, d, e, f, g) __typeof__(h) p8;
#define FIELDS_9(a, b, c, d, e, f, g, h, i) FIELDS_8(a, b, c, d, e, f, g, h) __typeof__(i) p9;
#define FIELDS_10(a, b, c, d, e, f, g, h, i, j) FIELDS_9(a, b, c, d, e, f, g, h, i) __typeof__(j) p10;
#define FIELDS_11(a, b, c, d, e, f, g, h, i, j, k) FIELDS_10(a, b, c, d, e, f, g, h, i, j) __typeof__(k) p11;
#define TWELFTH(a, b, c, d, e, f, g, h, i, j, k, l, ...) l
#define FIELDS(...)                                                                                               \
    TWELFTH(__VA_ARGS__, FIELDS_11, FIELDS_10, FIELDS_9, FIELDS_8, FIELDS_7, FIELDS_6, FIELDS_5, FIELDS_4, FIELDS_3, \
            FIELDS_2, FIELDS_1, none)(__VA_ARGS__)
/* clang-format on */

#define BEGIN_CALL(needs, of_kernel, of_parameters)                                                                  \
    api_call call_                                                                                                   \
        __attribute__((cleanup(call_end))) = {.symbol = __func__, .parameters = of_parameters, .kernel = of_kernel}; \
    if (call_begin(&call_, needs) != NP_CU_SUCCESS) {                                                                \
        return call_.result;                                                                                         \
    }

/* BEGIN(needs, parameters...), in a function with parameters; in one without; in one that launches a kernel. */
#define BEGIN(needs, ...) BEGIN_LAUNCH(needs, NULL, __VA_ARGS__)
#define BEGIN_PLAIN(needs) BEGIN_CALL(needs, NULL, NULL)
#define BEGIN_LAUNCH(needs, of_kernel, ...) \
    struct {                                \
        FIELDS(__VA_ARGS__)                 \
    } parameters_ = {__VA_ARGS__};          \
    BEGIN_CALL(needs, of_kernel, &parameters_)

#endif
