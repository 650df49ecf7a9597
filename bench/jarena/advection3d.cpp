// JArena's 3-D linear advection. The options: run.h.
#include "advection.h"

int main(int count, char** words) { return jarena::advection("advection3d", 3, 30, 6, count, words); }
