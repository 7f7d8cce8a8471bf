/* The version of setlistd. It is in a file of its own, so that a new commit has nothing else compiled again. */
#ifndef UTIL_VERSION_H
#define UTIL_VERSION_H

/* As scripts/version prints it: "1.0.0", or "1.0.0~dev+g0123abcd" from a work tree. */
extern const char setlistd_version[];

#endif
