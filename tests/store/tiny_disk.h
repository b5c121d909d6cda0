/* SPDX-License-Identifier: ISC */
/* A small disk for a test to fill. */
#ifndef TEST_STORE_TINY_DISK_H
#define TEST_STORE_TINY_DISK_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * Mounts a disk of this size ("12m") at this folder, which it creates. Only this process and its
 * children see it, until umount(). False: not possible here; the reason is printed.
 */
bool tiny_disk(const char *folder, const char *size);
/* Makes this file on it so large that but_bytes stay free. */
void tiny_disk_fill(const char *file, off_t but_bytes);

#endif
