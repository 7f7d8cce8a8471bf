/* What malloc keeps of freed memory, where that is glibc's: so little that the process takes what is counted. */
#ifndef UTIL_HEAP_H
#define UTIL_HEAP_H

/*
 * Has malloc take each large piece from the system and return it when it is freed. Called once, before there are threads. Else
 * glibc learns from the first large piece that is freed: it keeps those that follow, and copies them where they grow.
 */
void heap_init(void);
/* Returns to the system what malloc keeps for all threads. */
void heap_give_back(void);

#endif
