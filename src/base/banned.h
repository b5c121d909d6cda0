/* SPDX-License-Identifier: ISC */
/*
 * Functions that this tree replaces by safe ones. No file includes it: the compiler reads it before
 * each (meson.build), so none can forget it. The headers that declare the functions are read first,
 * because the macros would change the declarations.
 */
#ifndef FW_BASE_BANNED_H
#define FW_BASE_BANNED_H

#include <alloca.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define FW_BANNED(f) sorry_##f##_is_banned_see_base_banned_h

#undef strcpy
#define strcpy(a, b) FW_BANNED(strcpy)
#undef strcat
#define strcat(a, b) FW_BANNED(strcat)
#undef strncpy
#define strncpy(a, b, n) FW_BANNED(strncpy)
#undef strncat
#define strncat(a, b, n) FW_BANNED(strncat)
#undef sprintf
#define sprintf(...) FW_BANNED(sprintf)
#undef vsprintf
#define vsprintf(...) FW_BANNED(vsprintf)
#undef strtok
#define strtok(a, b) FW_BANNED(strtok)
#undef atoi
#define atoi(a) FW_BANNED(atoi)
#undef atol
#define atol(a) FW_BANNED(atol)
#undef gmtime
#define gmtime(a) FW_BANNED(gmtime)
#undef localtime
#define localtime(a) FW_BANNED(localtime)
#undef ctime
#define ctime(a) FW_BANNED(ctime)
#undef asctime
#define asctime(a) FW_BANNED(asctime)
#undef strptime
#define strptime(a, b, c) FW_BANNED(strptime)
#undef alloca
#define alloca(n) FW_BANNED(alloca)
#undef system
#define system(a) FW_BANNED(system)
#undef popen
#define popen(a, b) FW_BANNED(popen)

#endif
