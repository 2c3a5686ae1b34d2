/* virtual.h: what the tables of virtual functions in a library tell of its objects, without its headers: by the names of types,
 * which every table leads to, and by the names of functions, where a library shows them. (The Itanium ABI of C++.) */
#ifndef NP_HOOK_VIRTUAL_H
#define NP_HOOK_VIRTUAL_H

#include <stdbool.h>
#include <stddef.h>

/* The one object of exactly that type, "N4some5ClassE", among the variables of the library in which `address` lies. NULL: there
 * is none, or more than one. */
void *np_virtual_find(const void *address, const char *type);

/* Is it of that type? Its type must have a name, and it must have been made. */
bool np_virtual_is(const void *object, const char *type);

void **np_virtual_slots(const void *object); /* NULL: it was not made yet */

/* Functions in a table, from its first. */
size_t np_virtual_count(void *const *slots);

/* The slot of a function of that name, "4init" (its length, then the name), in a table whose functions the library shows: those
 * of a class of that name, "5Class". (size_t)-1: there is none. */
size_t np_virtual_slot(void *const *slots, size_t n, const char *class_name, const char *function);

/* Does the address lie in a library of that file's name? */
bool np_virtual_is_in(const void *address, const char *library);

/* Is a function of that class there, by any name that is shown? */
bool np_virtual_has_name(void *const *slots, size_t slot, const char *class_name);

#endif
