/*
 * Random numbers from a state that the caller keeps. For jitter, samples and ids, not for
 * secrets.
 */
#ifndef UTIL_RANDOM_H
#define UTIL_RANDOM_H

#include <stdint.h>

/* Advances the state and returns 64 random bits: Sebastiano Vigna's splitmix64 (public domain). */
static inline uint64_t random_next(uint64_t *state)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15u);

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

#endif
