/* SPDX-License-Identifier: ISC */
/* A small disk for a test to fill. */
#ifndef TEST_STORE_TINY_DISK_H
#define TEST_STORE_TINY_DISK_H

#include <stdbool.h>
#include <sys/types.h>

/* Of this size ("12m"), at this folder, which is made; for this process and its children alone, until umount(). False: none here, which is said. */
bool tiny_disk(const char *folder, const char *size);
/* This file on it takes all its room but so many bytes. */
void tiny_disk_fill(const char *file, off_t but_bytes);

#endif
