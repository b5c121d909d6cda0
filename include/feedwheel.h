/* SPDX-License-Identifier: ISC */
/*
 * libfeedwheel. Parse feeds (document.h), store them (store.h), fetch them (engine.h), add entries
 * to them (deliver.h), and ingest events in bulk (ingest.h). These headers are the contracts.
 * examples/titles.c and examples/push.c are complete programs.
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
