#include "process/sandbox.h"

#include "util/log.h"

/* Replaces sandbox.c in a build without libseccomp. */
void sandbox_enter(void)
{
	log_warn("sandbox: not available, since this setlistd was built without seccomp; `sandbox "
		 "= false` turns this "
		 "warning off");
}
