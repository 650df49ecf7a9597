// All statistics as readable text, or as one line of JSON.
#pragma once

#include "base/output.h"
#include "numalloc/numalloc.h"

namespace numalloc {

// Gathers and writes them. Safe in a signal handler of a thread that holds no lock.
void report_statistics(Output& out, numalloc_format format);

// "exit" writes to stderr, any other name appends to that file. In it "%p" is the process ID; a name that ends in .json
// selects JSON. Returns 0 or an errno.
int write_statistics(const char* file);
// For "exit": keeps the present stderr, whatever the program does with it later.
void keep_standard_error();

}  // namespace numalloc
