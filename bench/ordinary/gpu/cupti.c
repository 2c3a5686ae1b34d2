/* cupti.c: libcupti.so.13: one subscriber, callbacks of the driver's calls; the rest does nothing. */
#define CUPTI_DIRECTIVE_SUPPRESS
#include "fk.h"
#include <cupti.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
extern const char *fk_name_of(int id);
static struct {
    CUpti_CallbackFunc f;
    void *user;
} sub;
static void traced(fk_call *c, int is_exit, void *context)
{
    CUpti_CallbackFunc f = sub.f;
    CUpti_CallbackData d;
    if (!f)
        return;
    memset(&d, 0, sizeof d);
    d.callbackSite = is_exit ? CUPTI_API_EXIT : CUPTI_API_ENTER;
    d.functionName = c->name;
    d.functionParams = c->params;
    d.functionReturnValue = is_exit ? &c->result : NULL;
    d.symbolName = c->symbol;
    d.context = context;
    d.contextUid = context ? 1 : 0;
    d.correlationData = &c->data;
    d.correlationId = c->correlation;
    int was = fk_from_runtime; /* what the subscriber does is not the program's */
    fk_from_runtime = 0;
    f(sub.user, CUPTI_CB_DOMAIN_DRIVER_API, (CUpti_CallbackId)c->id, &d);
    fk_from_runtime = was;
}
CUptiResult cuptiSubscribe(CUpti_SubscriberHandle *h, CUpti_CallbackFunc f, void *user)
{
    if (sub.f)
        return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
    sub.f = f;
    sub.user = user;
    *h = (CUpti_SubscriberHandle)&sub;
    fk_trace = traced;
    return 0;
}
CUptiResult cuptiUnsubscribe(CUpti_SubscriberHandle h)
{
    (void)h;
    fk_trace = NULL;
    sub.f = NULL;
    memset(fk_enabled, 0, sizeof fk_enabled);
    return 0;
}
CUptiResult cuptiFinalize(void)
{
    fk_trace = NULL;
    sub.f = NULL;
    memset(fk_enabled, 0, sizeof fk_enabled);
    return 0;
}
CUptiResult cuptiEnableCallback(uint32_t on, CUpti_SubscriberHandle h, CUpti_CallbackDomain d, CUpti_CallbackId id)
{
    (void)h;
    if (d == CUPTI_CB_DOMAIN_DRIVER_API && id < sizeof fk_enabled)
        fk_enabled[id] = on != 0;
    return 0;
}
CUptiResult cuptiEnableDomain(uint32_t on, CUpti_SubscriberHandle h, CUpti_CallbackDomain d)
{
    (void)h;
    if (d == CUPTI_CB_DOMAIN_DRIVER_API)
        memset(fk_enabled, on != 0, sizeof fk_enabled);
    return 0;
}
CUptiResult cuptiGetCallbackName(CUpti_CallbackDomain d, uint32_t id, const char **name)
{
    const char *n = d == CUPTI_CB_DOMAIN_DRIVER_API ? fk_name_of((int)id) : NULL;
    if (!n)
        return CUPTI_ERROR_INVALID_PARAMETER;
    *name = n;
    return 0;
}
CUptiResult cuptiGetResultString(CUptiResult r, const char **s)
{
    *s = r == 0 ? "CUPTI_SUCCESS" : "CUPTI_ERROR";
    return 0;
}
CUptiResult cuptiGetVersion(uint32_t *v)
{
    *v = 130000;
    return 0;
}
