/* kinds.h: the kinds of devices there are, and what can be set about them. */
#ifndef NP_DEVICE_KINDS_H
#define NP_DEVICE_KINDS_H

#include "device/device.h"

typedef struct np_device_settings {
    uint64_t page_bytes; /* a power of two, the system's page at least */
    uint32_t n_pages;    /* 1 at least */
    uint32_t n_streams;  /* 1 to NP_MAX_STREAMS */
    neap_link link;      /* out_gbs 0: none is given */

    /* Of devices that know their own size: page_bytes 0 is their usual page, and n_pages says nothing. */
    uint64_t memory_bytes; /* 0: all they have */
    uint32_t number;       /* which of them */
    bool adopts;           /* the program's streams are its own: none is made, they are adopted as they are seen */
} np_device_settings;

/* Threads and the machine's own memory: see cpu.c. */
neap_status np_cpu_open(const np_device_settings *settings, const neap_memory *memory, neap_error *error,
                        np_device **device);

/* A virtual clock, and a check of the order of uses: see sim.c. The link is given. */
neap_status np_sim_open(const np_device_settings *settings, const neap_memory *memory, neap_error *error,
                        np_device **device);

/* An NVIDIA GPU: see cuda.c. */
neap_status np_cuda_open(const np_device_settings *settings, const neap_memory *memory, neap_error *error,
                         np_device **device);

#endif
