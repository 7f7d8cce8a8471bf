/*
 * Reads that are answered from memory: rules with fresh_for. Two processes of two workers each read
 * and write sets, lists, items and counters, while connections break and stall. Each write adds a
 * number to its key, and the simulation notes when the server stores it. So each reply shows which
 * writes it includes:
 *
 *     all that were stored more than fresh_for milliseconds before the read
 *     all that its process had acknowledged before the read
 *     all that its client had sent before the read, if they were stored
 *     with a write, all that the server stored before that one
 */
#ifndef SIM_FRESH_H
#define SIM_FRESH_H

#include "histories.h"

extern const struct histories fresh_histories;

#endif
