/* The encodings; see collection/encoding.h. */
#ifndef COLLECTION_ENCODINGS_ENCODINGS_H
#define COLLECTION_ENCODINGS_ENCODINGS_H

#include "collection/encoding.h"

extern const struct encoding encoding_signed, encoding_csv, encoding_tombstone, encoding_paired, encoding_flip,
	encoding_indexed;

#endif
