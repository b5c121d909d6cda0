/* SPDX-License-Identifier: ISC */
/*
 * Folders that survive a power failure: a new file or folder does when the folder that it is in is
 * synced to the disk.
 */
#ifndef FW_BASE_FOLDER_H
#define FW_BASE_FOLDER_H

/* Returns 0 or an errno; 0 too for a file system that cannot sync folders. */
int fw_folder_sync(const char *path);
/* Creates a folder for this user alone, and syncs it. Returns 0, also if it exists, or an errno. */
int fw_folder_create(const char *path);

#endif
