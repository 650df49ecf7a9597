// All statistics as text to be read, or as one line of JSON.
#pragma once

#include "base/output.h"
#include "numalloc/numalloc.h"

namespace numalloc {

// Gathers them, and writes. Safe in a signal handler of a thread that holds no lock.
void report_statistics(Output& out, numalloc_format format);

// "exit": to stderr. Else appended to the file, "%p" in its name being the process; JSON where it ends in .json. 0 or
// an errno.
int write_statistics(const char* file);
// For "exit": stderr as it is now, whatever the program does with it.
void keep_standard_error();

}  // namespace numalloc
