/* SPDX-License-Identifier: ISC */
/*
 * libfeedwheel: read feeds (document.h), keep them (store.h), collect them (engine.h), put entries into them (deliver.h), and take
 * events in bulk (ingest.h). The contracts stand in these headers; examples/titles.c and push.c are whole programs.
 */
#ifndef FEEDWHEEL_H
#define FEEDWHEEL_H

#include "feedwheel/types.h"
#include "feedwheel/document.h"
#include "feedwheel/store.h"
#include "feedwheel/engine.h"
#include "feedwheel/deliver.h"
#include "feedwheel/ingest.h"

#endif
