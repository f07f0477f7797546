/* The text of `perf script`: read into a profile, and written from one. */
#ifndef RECORDING_SCRIPT_TEXT_H
#define RECORDING_SCRIPT_TEXT_H

#include "recording/script_read.h"
#include "recording/script_write.h"

#endif
