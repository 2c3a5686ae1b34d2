/* plan_bytes.c: numbers, doubles and texts as bytes, and back within bounds. */
#include <string.h>

#include "run/plan_code.h"

/* ---- writing ---- */

void np_plan_put_raw(np_plan_writer *writer, const void *bytes, size_t n)
{
    if (writer->status == NEAP_OK) {
        writer->status = np_array_reserve(writer->memory, &writer->bytes, writer->bytes.n + n);
    }
    if (writer->status == NEAP_OK && n > 0) {
        memcpy(writer->bytes.items + writer->bytes.n, bytes, n);
        writer->bytes.n += n;
    }
}

void np_plan_put_number(np_plan_writer *writer, uint64_t number)
{
    unsigned char bytes[10];
    size_t n = 0;
    for (; number >= 128; number >>= 7) {
        bytes[n++] = (unsigned char)(number | 128);
    }
    bytes[n++] = (unsigned char)number;
    np_plan_put_raw(writer, bytes, n);
}

void np_plan_put_double(np_plan_writer *writer, double number)
{
    unsigned char bytes[8];
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    for (int i = 0; i < 8; i++) {
        bytes[i] = (unsigned char)(bits >> (8 * i));
    }
    np_plan_put_raw(writer, bytes, sizeof bytes);
}

void np_plan_put_text(np_plan_writer *writer, const char *text, size_t n)
{
    np_plan_put_number(writer, n);
    np_plan_put_raw(writer, text, n);
}

/* ---- reading ---- */

static uint64_t fail(np_plan_reader *reader)
{
    reader->is_bad = true;
    reader->at = reader->end;
    return 0;
}

/* In one way only: the last byte of several is not 0, and no bit is lost. */
uint64_t np_plan_get_number(np_plan_reader *reader)
{
    uint64_t number = 0;
    for (int shift = 0; shift < 64 && reader->at < reader->end; shift += 7) {
        uint64_t byte = *reader->at++;
        uint64_t bits = byte & 127;
        if (bits << shift >> shift != bits) {
            break;
        }
        number |= bits << shift;
        if (byte < 128) {
            return byte == 0 && shift > 0 ? fail(reader) : number;
        }
    }
    return fail(reader);
}

uint32_t np_plan_get_below(np_plan_reader *reader, uint64_t end)
{
    uint64_t number = np_plan_get_number(reader);
    return (uint32_t)(number < end ? number : fail(reader));
}

double np_plan_get_double(np_plan_reader *reader)
{
    uint64_t bits = 0;
    double number;
    if (reader->end - reader->at < 8) {
        (void)fail(reader);
        return 0;
    }
    for (int i = 0; i < 8; i++) {
        bits |= (uint64_t)*reader->at++ << (8 * i);
    }
    memcpy(&number, &bits, sizeof number);
    return number;
}

size_t np_plan_get_count(np_plan_reader *reader, size_t min_bytes)
{
    uint64_t n = np_plan_get_number(reader);
    return (size_t)(n <= (size_t)(reader->end - reader->at) / min_bytes ? n : fail(reader));
}

const char *np_plan_get_text(np_plan_reader *reader, size_t *n)
{
    const char *text;
    *n = np_plan_get_count(reader, 1);
    text = (const char *)reader->at;
    reader->at += *n;
    return text;
}
