#include "process/sandbox.h"

#include "util/log.h"

/* A build without libseccomp has this file, not sandbox.c. */
void sandbox_enter(void)
{
	log_warn("sandbox: there is none, since this setlistd was built without seccomp; `sandbox = false` accepts "
		 "that");
}
