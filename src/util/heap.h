/*
 * Limits the freed memory that malloc keeps, if malloc is glibc's, so that the memory of the
 * process is close to the memory that is counted.
 */
#ifndef UTIL_HEAP_H
#define UTIL_HEAP_H

/*
 * Blocks of at least so many bytes are large: the system remaps them when they grow, so they are
 * not copied, and the cost of its calls is negligible.
 */
enum { HEAP_LARGE = 4 << 20 };

/*
 * Makes malloc map each large block separately and unmap it when it is freed. Must be called
 * once, before threads are started. Otherwise glibc raises its threshold when the first large
 * block is freed: it then keeps later blocks, and copies them when they grow.
 */
void heap_init(void);
/* Returns memory that malloc keeps for all threads to the system. */
void heap_give_back(void);

#endif
