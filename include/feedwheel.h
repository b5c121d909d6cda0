/* SPDX-License-Identifier: ISC */
/*
 * libfeedwheel: read feeds (document.h), keep them (store.h), collect them (engine.h).
 * The contracts stand in these headers; examples/titles.c is a whole program.
 */
#ifndef FEEDWHEEL_H
#define FEEDWHEEL_H

#include "feedwheel/types.h"
#include "feedwheel/document.h"
#include "feedwheel/store.h"
#include "feedwheel/engine.h"

#endif
