/* SPDX-License-Identifier: ISC */
/*
 * libfeedwheel: read feeds (document.h), keep them (store.h), collect them (engine.h).
 * The manual is libfeedwheel(3).
 */
#ifndef FEEDWHEEL_H
#define FEEDWHEEL_H

#include "feedwheel/types.h"
#include "feedwheel/document.h"
#include "feedwheel/store.h"
#include "feedwheel/engine.h"

#endif
