// JArena's 2-D linear advection: many small patches, two fields. The options: run.h.
#include "advection.h"

int main(int count, char** words) { return jarena::advection("advection2d", 2, 50, 32, count, words); }
