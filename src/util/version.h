/* The version of setlistd, in a file of its own so that a new commit recompiles nothing else. */
#ifndef UTIL_VERSION_H
#define UTIL_VERSION_H

/* In the form of scripts/version: "1.0.0", or "1.0.0~dev+g0123abcd" from a work tree. */
extern const char setlistd_version[];

#endif
