/* pickle_opcodes.c: what each opcode does, and the table of them.
 *
 * The table has every opcode of protocols 0 to 5. Those of plain data have a function; the others have the reason why
 * they are refused. No function does more than move values between the stack, the memo and the objects: what needs more
 * values than there are above the last mark fails. */
#include <string.h>

#include "trace/pickle_machine.h"

#define PIECE_BYTES ((size_t)64 << 10) /* texts grow by as much as has truly been read */
#define INT_BYTES_MAX 255              /* longer integers are no data of ours */

static neap_status take(const np_pickle_machine *m, void *bytes, size_t n)
{
    return np_pickle_input_take(m->input, m->error, bytes, n);
}

/* An unsigned number of n bytes, the lowest first. */
static neap_status take_number(const np_pickle_machine *m, size_t n, uint64_t *number)
{
    unsigned char bytes[8];
    neap_status status = take(m, bytes, n);
    if (status == NEAP_OK) {
        *number = 0;
        for (size_t i = n; i > 0; i--) {
            *number = *number << 8 | bytes[i - 1];
        }
    }
    return status;
}

/* ---------------------------------------------------------------- the stack ---- */

static neap_status push(np_pickle_machine *m, np_pickle_value value)
{
    return np_array_push(m->memory, &m->stack, value);
}

/* The height below which nothing may be taken: the last mark. */
static size_t floor_of(const np_pickle_machine *m)
{
    return m->marks.n ? m->marks.items[m->marks.n - 1] : 0;
}

static bool has(const np_pickle_machine *m, size_t n)
{
    return m->stack.n - floor_of(m) >= n;
}

static neap_status too_few(const np_pickle_machine *m)
{
    return np_pickle_fail(m, NEAP_BAD_INPUT, "expected more values before it, found too few");
}

/* Takes the last mark away; *begin is the first value above it. */
static neap_status pop_mark(np_pickle_machine *m, size_t *begin)
{
    if (m->marks.n == 0) {
        return np_pickle_fail(m, NEAP_BAD_INPUT, "expected a mark before it, found none");
    }
    *begin = m->marks.items[--m->marks.n];
    return NEAP_OK;
}

/* ---------------------------------------------------------------- texts and objects ---- */

static neap_status add_text(np_pickle_machine *m, uint8_t kind, uint64_t n_bytes)
{
    np_pickle *p = m->pickle;
    size_t at = p->chars.n;
    neap_status status = NEAP_OK;
    if (n_bytes > NP_PICKLE_TEXT_MAX) {
        return np_pickle_fail(m, NEAP_BAD_INPUT, "expected at most 64 MiB of text, found more");
    }
    while (status == NEAP_OK && p->chars.n - at < n_bytes) {
        size_t left = (size_t)n_bytes - (p->chars.n - at);
        size_t piece = left < PIECE_BYTES ? left : PIECE_BYTES;
        status = np_array_reserve(m->memory, &p->chars, p->chars.n + piece);
        if (status == NEAP_OK) {
            status = take(m, p->chars.items + p->chars.n, piece);
        }
        p->chars.n += status == NEAP_OK ? piece : 0;
    }
    if (status == NEAP_OK) {
        status = np_array_push(m->memory, &p->texts, ((np_pickle_text){at, (size_t)n_bytes}));
    }
    return status == NEAP_OK ? push(m, (np_pickle_value){.as.index = p->texts.n - 1, .kind = kind}) : status;
}

/* Exactly as many at first, since most objects are filled once; by half after that. */
static neap_status add_items(np_pickle_machine *m, size_t index, size_t begin, size_t n)
{
    np_pickle_object *object = &m->pickle->objects.items[index];
    size_t wanted = object->n + n;
    if (wanted > object->capacity) {
        size_t capacity = object->capacity + object->capacity / 2;
        np_pickle_value *grown;
        capacity = capacity > wanted ? capacity : wanted;
        grown = m->memory->resize(m->memory->user, object->items, object->capacity * sizeof *grown,
                                  capacity * sizeof *grown);
        if (!grown) {
            return NEAP_NO_MEMORY;
        }
        object->items = grown;
        object->capacity = capacity;
    }
    if (n) {
        memcpy(object->items + object->n, m->stack.items + begin, n * sizeof *object->items);
    }
    object->n = wanted;
    return NEAP_OK;
}

/* A new object with the values from `begin` on, which leave the stack for it. */
static neap_status make_object(np_pickle_machine *m, uint8_t kind, size_t begin)
{
    size_t index = m->pickle->objects.n;
    neap_status status = np_array_push(m->memory, &m->pickle->objects, ((np_pickle_object){0}));
    if (status == NEAP_OK) {
        status = add_items(m, index, begin, m->stack.n - begin);
    }
    if (status == NEAP_OK) {
        m->stack.n = begin;
        status = push(m, (np_pickle_value){.as.index = index, .kind = kind});
    }
    return status;
}

/* The values from `begin` on go into the object below them, which must be of that kind. */
static neap_status extend_object(np_pickle_machine *m, const np_pickle_opcode *op, size_t begin)
{
    size_t n = m->stack.n - begin;
    np_pickle_value target;
    neap_status status;
    if (begin <= floor_of(m)) {
        return too_few(m);
    }
    target = m->stack.items[begin - 1];
    if (target.kind != op->kind) {
        return np_pickle_fail(m, NEAP_BAD_INPUT,
                              op->kind == NP_PICKLE_LIST ? "expected a list to append to, found another thing"
                                                         : "expected a dict to set items of, found another thing");
    }
    if (op->kind == NP_PICKLE_DICT && n % 2) {
        return np_pickle_fail(m, NEAP_BAD_INPUT, "expected a value for every key, found none for the last");
    }
    status = add_items(m, target.as.index, begin, n);
    m->stack.n = status == NEAP_OK ? begin : m->stack.n;
    return status;
}

/* ---------------------------------------------------------------- opcodes: single values ---- */

static neap_status run_plain(np_pickle_machine *m, const np_pickle_opcode *op)
{
    return push(m, (np_pickle_value){.as.magnitude = op->n, .kind = op->kind});
}

static neap_status run_int(np_pickle_machine *m, const np_pickle_opcode *op)
{
    np_pickle_value value = {.kind = NP_PICKLE_INT};
    neap_status status = take_number(m, op->n, &value.as.magnitude);
    if (op->n == 4 && value.as.magnitude > INT32_MAX) { /* BININT alone has a sign */
        value.as.magnitude = ((uint64_t)1 << 32) - value.as.magnitude;
        value.is_negative = true;
    }
    return status == NEAP_OK ? push(m, value) : status;
}

/* Two's complement of any length, the lowest byte first. */
static neap_status run_long(np_pickle_machine *m, const np_pickle_opcode *op)
{
    unsigned char bytes[INT_BYTES_MAX];
    np_pickle_value value = {.kind = NP_PICKLE_INT};
    uint64_t n = 0;
    unsigned carry = 1;
    neap_status status = take_number(m, op->n, &n);
    if (status == NEAP_OK && n > sizeof bytes) {
        return np_pickle_fail(m, NEAP_BAD_INPUT, "expected an integer of at most 255 bytes, found a longer one");
    }
    status = status == NEAP_OK ? take(m, bytes, (size_t)n) : status;
    if (status != NEAP_OK) {
        return status;
    }
    value.is_negative = n > 0 && bytes[n - 1] >= 0x80;
    for (size_t i = 0; i < n; i++) {
        unsigned byte = value.is_negative ? (bytes[i] ^ 0xffu) + carry : bytes[i];
        carry = byte >> 8;
        byte &= 0xff;
        if (i < 8) {
            value.as.magnitude |= (uint64_t)byte << (8 * i);
        } else if (byte) {
            value = (np_pickle_value){.kind = NP_PICKLE_LARGE_INT};
            break;
        }
    }
    return push(m, value);
}

static neap_status run_real(np_pickle_machine *m, const np_pickle_opcode *op)
{
    unsigned char bytes[8]; /* the highest first */
    uint64_t bits = 0;
    np_pickle_value value = {.kind = op->kind};
    neap_status status = take(m, bytes, sizeof bytes);
    for (size_t i = 0; status == NEAP_OK && i < sizeof bytes; i++) {
        bits = bits << 8 | bytes[i];
    }
    memcpy(&value.as.real, &bits, sizeof bits);
    return status == NEAP_OK ? push(m, value) : status;
}

static neap_status run_text(np_pickle_machine *m, const np_pickle_opcode *op)
{
    uint64_t n = 0;
    neap_status status = take_number(m, op->n, &n);
    return status == NEAP_OK ? add_text(m, op->kind, n) : status;
}

/* ---------------------------------------------------------------- opcodes: objects ---- */

static neap_status run_empty(np_pickle_machine *m, const np_pickle_opcode *op)
{
    return make_object(m, op->kind, m->stack.n);
}

static neap_status run_tuple(np_pickle_machine *m, const np_pickle_opcode *op)
{
    return has(m, op->n) ? make_object(m, op->kind, m->stack.n - op->n) : too_few(m);
}

static neap_status run_from_mark(np_pickle_machine *m, const np_pickle_opcode *op)
{
    size_t begin = 0;
    neap_status status = pop_mark(m, &begin);
    if (status == NEAP_OK && op->kind == NP_PICKLE_DICT && (m->stack.n - begin) % 2) {
        return np_pickle_fail(m, NEAP_BAD_INPUT, "expected a value for every key, found none for the last");
    }
    return status == NEAP_OK ? make_object(m, op->kind, begin) : status;
}

static neap_status run_extend(np_pickle_machine *m, const np_pickle_opcode *op)
{
    size_t begin = 0;
    neap_status status = pop_mark(m, &begin);
    return status == NEAP_OK ? extend_object(m, op, begin) : status;
}

/* APPEND and SETITEM: a batch of one. */
static neap_status run_extend_once(np_pickle_machine *m, const np_pickle_opcode *op)
{
    return has(m, op->n) ? extend_object(m, op, m->stack.n - op->n) : too_few(m);
}

/* ---------------------------------------------------------------- opcodes: stack and memo ---- */

static neap_status run_mark(np_pickle_machine *m, const np_pickle_opcode *op)
{
    (void)op;
    if (m->marks.n >= NP_PICKLE_DEPTH_MAX) {
        return np_pickle_fail(m, NEAP_BAD_INPUT, "expected at most 1000 levels of nesting, found more");
    }
    return np_array_push(m->memory, &m->marks, m->stack.n);
}

static neap_status run_pop(np_pickle_machine *m, const np_pickle_opcode *op)
{
    (void)op;
    if (has(m, 1)) {
        m->stack.n--;
        return NEAP_OK;
    }
    if (m->marks.n) { /* nothing above the last mark: it goes itself */
        m->marks.n--;
        return NEAP_OK;
    }
    return too_few(m);
}

static neap_status run_pop_mark(np_pickle_machine *m, const np_pickle_opcode *op)
{
    size_t begin = 0;
    neap_status status = pop_mark(m, &begin);
    (void)op;
    m->stack.n = status == NEAP_OK ? begin : m->stack.n;
    return status;
}

static neap_status run_dup(np_pickle_machine *m, const np_pickle_opcode *op)
{
    (void)op;
    return has(m, 1) ? push(m, m->stack.items[m->stack.n - 1]) : too_few(m);
}

/* Picklers number the memo 0, 1, 2, ...: a number that leaves some out only asks for memory. */
static neap_status run_put(np_pickle_machine *m, const np_pickle_opcode *op)
{
    uint64_t index = m->memo.n;
    neap_status status = op->n ? take_number(m, op->n, &index) : NEAP_OK;
    if (status != NEAP_OK) {
        return status;
    }
    if (!has(m, 1)) {
        return too_few(m);
    }
    if (index > m->memo.n) {
        return np_pickle_fail(m, NEAP_BAD_INPUT, "expected memo numbers one after the other, found one too high");
    }
    if (index == m->memo.n) {
        return np_array_push(m->memory, &m->memo, m->stack.items[m->stack.n - 1]);
    }
    m->memo.items[index] = m->stack.items[m->stack.n - 1];
    return NEAP_OK;
}

static neap_status run_get(np_pickle_machine *m, const np_pickle_opcode *op)
{
    uint64_t index = 0;
    neap_status status = take_number(m, op->n, &index);
    if (status != NEAP_OK) {
        return status;
    }
    return index < m->memo.n ? push(m, m->memo.items[index])
                             : np_pickle_fail(m, NEAP_BAD_INPUT, "expected a memo number that was put, found another");
}

/* A frame only tells how many bytes follow at once. */
static neap_status run_frame(np_pickle_machine *m, const np_pickle_opcode *op)
{
    uint64_t n = 0;
    return take_number(m, op->n, &n);
}

static neap_status run_stop(np_pickle_machine *m, const np_pickle_opcode *op)
{
    (void)op;
    if (m->stack.n != 1 || m->marks.n) {
        return np_pickle_fail(m, NEAP_BAD_INPUT, "expected one value at the end, found more or none");
    }
    m->pickle->root = m->stack.items[0];
    m->is_stopped = true;
    return NEAP_OK;
}

/* ---------------------------------------------------------------- the table ---- */

static const char imports[] = "would import or call something, which plain data never does: refused";
static const char is_old[] = "belongs to protocol 0 or 1, expected protocol 2 to 5";
static const char is_set[] = "expected dicts, lists, tuples, text and numbers, found a set";
static const char is_outside[] = "refers to data outside of the file: refused";

const np_pickle_opcode np_pickle_opcodes[256] = {
    ['N'] = {"NONE", run_plain, NP_PICKLE_NONE, 0, NULL},
    [0x88] = {"NEWTRUE", run_plain, NP_PICKLE_BOOL, 1, NULL},
    [0x89] = {"NEWFALSE", run_plain, NP_PICKLE_BOOL, 0, NULL},
    ['K'] = {"BININT1", run_int, NP_PICKLE_INT, 1, NULL},
    ['M'] = {"BININT2", run_int, NP_PICKLE_INT, 2, NULL},
    ['J'] = {"BININT", run_int, NP_PICKLE_INT, 4, NULL},
    [0x8a] = {"LONG1", run_long, NP_PICKLE_INT, 1, NULL},
    [0x8b] = {"LONG4", run_long, NP_PICKLE_INT, 4, NULL},
    ['G'] = {"BINFLOAT", run_real, NP_PICKLE_REAL, 8, NULL},
    [0x8c] = {"SHORT_BINUNICODE", run_text, NP_PICKLE_TEXT, 1, NULL},
    ['X'] = {"BINUNICODE", run_text, NP_PICKLE_TEXT, 4, NULL},
    [0x8d] = {"BINUNICODE8", run_text, NP_PICKLE_TEXT, 8, NULL},
    ['U'] = {"SHORT_BINSTRING", run_text, NP_PICKLE_TEXT, 1, NULL},
    ['T'] = {"BINSTRING", run_text, NP_PICKLE_TEXT, 4, NULL},
    ['C'] = {"SHORT_BINBYTES", run_text, NP_PICKLE_BYTES, 1, NULL},
    ['B'] = {"BINBYTES", run_text, NP_PICKLE_BYTES, 4, NULL},
    [0x8e] = {"BINBYTES8", run_text, NP_PICKLE_BYTES, 8, NULL},
    [0x96] = {"BYTEARRAY8", run_text, NP_PICKLE_BYTES, 8, NULL},
    [')'] = {"EMPTY_TUPLE", run_empty, NP_PICKLE_TUPLE, 0, NULL},
    [0x85] = {"TUPLE1", run_tuple, NP_PICKLE_TUPLE, 1, NULL},
    [0x86] = {"TUPLE2", run_tuple, NP_PICKLE_TUPLE, 2, NULL},
    [0x87] = {"TUPLE3", run_tuple, NP_PICKLE_TUPLE, 3, NULL},
    ['t'] = {"TUPLE", run_from_mark, NP_PICKLE_TUPLE, 0, NULL},
    [']'] = {"EMPTY_LIST", run_empty, NP_PICKLE_LIST, 0, NULL},
    ['l'] = {"LIST", run_from_mark, NP_PICKLE_LIST, 0, NULL},
    ['a'] = {"APPEND", run_extend_once, NP_PICKLE_LIST, 1, NULL},
    ['e'] = {"APPENDS", run_extend, NP_PICKLE_LIST, 0, NULL},
    ['}'] = {"EMPTY_DICT", run_empty, NP_PICKLE_DICT, 0, NULL},
    ['d'] = {"DICT", run_from_mark, NP_PICKLE_DICT, 0, NULL},
    ['s'] = {"SETITEM", run_extend_once, NP_PICKLE_DICT, 2, NULL},
    ['u'] = {"SETITEMS", run_extend, NP_PICKLE_DICT, 0, NULL},
    ['('] = {"MARK", run_mark, NP_PICKLE_NONE, 0, NULL},
    ['0'] = {"POP", run_pop, NP_PICKLE_NONE, 0, NULL},
    ['1'] = {"POP_MARK", run_pop_mark, NP_PICKLE_NONE, 0, NULL},
    ['2'] = {"DUP", run_dup, NP_PICKLE_NONE, 0, NULL},
    ['q'] = {"BINPUT", run_put, NP_PICKLE_NONE, 1, NULL},
    ['r'] = {"LONG_BINPUT", run_put, NP_PICKLE_NONE, 4, NULL},
    [0x94] = {"MEMOIZE", run_put, NP_PICKLE_NONE, 0, NULL},
    ['h'] = {"BINGET", run_get, NP_PICKLE_NONE, 1, NULL},
    ['j'] = {"LONG_BINGET", run_get, NP_PICKLE_NONE, 4, NULL},
    [0x95] = {"FRAME", run_frame, NP_PICKLE_NONE, 8, NULL},
    ['.'] = {"STOP", run_stop, NP_PICKLE_NONE, 0, NULL},
    ['c'] = {"GLOBAL", NULL, 0, 0, imports},
    [0x93] = {"STACK_GLOBAL", NULL, 0, 0, imports},
    ['i'] = {"INST", NULL, 0, 0, imports},
    ['o'] = {"OBJ", NULL, 0, 0, imports},
    [0x81] = {"NEWOBJ", NULL, 0, 0, imports},
    [0x92] = {"NEWOBJ_EX", NULL, 0, 0, imports},
    ['R'] = {"REDUCE", NULL, 0, 0, imports},
    ['b'] = {"BUILD", NULL, 0, 0, imports},
    [0x82] = {"EXT1", NULL, 0, 0, imports},
    [0x83] = {"EXT2", NULL, 0, 0, imports},
    [0x84] = {"EXT4", NULL, 0, 0, imports},
    ['P'] = {"PERSID", NULL, 0, 0, is_outside},
    ['Q'] = {"BINPERSID", NULL, 0, 0, is_outside},
    [0x97] = {"NEXT_BUFFER", NULL, 0, 0, is_outside},
    [0x98] = {"READONLY_BUFFER", NULL, 0, 0, is_outside},
    [0x8f] = {"EMPTY_SET", NULL, 0, 0, is_set},
    [0x90] = {"ADDITEMS", NULL, 0, 0, is_set},
    [0x91] = {"FROZENSET", NULL, 0, 0, is_set},
    ['I'] = {"INT", NULL, 0, 0, is_old},
    ['L'] = {"LONG", NULL, 0, 0, is_old},
    ['F'] = {"FLOAT", NULL, 0, 0, is_old},
    ['S'] = {"STRING", NULL, 0, 0, is_old},
    ['V'] = {"UNICODE", NULL, 0, 0, is_old},
    ['g'] = {"GET", NULL, 0, 0, is_old},
    ['p'] = {"PUT", NULL, 0, 0, is_old},
    [0x80] = {"PROTO", NULL, 0, 0, "expected once, at the beginning, found again"},
};
