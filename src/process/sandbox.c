#include "process/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <sched.h>
#include <seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* TCGETS2 contains the size of a struct that is missing in the headers of the C library. */
#ifdef TCGETS2
#include <asm/termbits.h>
#endif

#include "util/log.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Index of the flags among the arguments of clone. */
#if defined(__s390__)
enum { CLONE_FLAGS = 1 };
#else
enum { CLONE_FLAGS = 0 };
#endif

/*
 * Allowed with any arguments. A name that is unknown to the kernel or libseccomp on this
 * machine is skipped.
 */
static const char *const allowed[] = {
	/* Bytes. */
	"read", "readv", "pread64", "write", "writev", "close", "lseek", "_llseek", "fcntl",
	"fcntl64",
	/* Files: configuration, names, statistics; including sockets in the file system. */
	"fstat", "fstat64", "newfstatat", "fstatat64", "stat", "stat64", "lstat", "lstat64",
	"statx", "statfs", "fstatfs", "access", "faccessat", "faccessat2", "readlink", "readlinkat",
	"getcwd", "getdents", "getdents64", "unlink", "unlinkat", "umask", "chmod", "fchmod",
	"fchmodat", "fchmodat2", "fadvise64",
	/* Sockets. */
	"bind", "connect", "listen", "accept", "accept4", "getsockname", "getpeername",
	"getsockopt", "setsockopt", "shutdown", "send", "sendto", "sendmsg", "sendmmsg", "recv",
	"recvfrom", "recvmsg", "recvmmsg", "recvmmsg_time64",
	/* Events and timers. */
	"epoll_create", "epoll_create1", "epoll_ctl", "epoll_wait", "epoll_pwait", "epoll_pwait2",
	"eventfd", "eventfd2", "timerfd_create", "timerfd_settime", "timerfd_settime64",
	"timerfd_gettime", "timerfd_gettime64", "poll", "ppoll", "ppoll_time64", "select",
	"_newselect", "pselect6", "pselect6_time64", "pipe", "pipe2", "restart_syscall",
	/* Memory. */
	"brk", "munmap", "mremap", "madvise", "membarrier",
	/* Threads. */
	"set_robust_list", "get_robust_list", "rseq", "set_tid_address", "futex", "futex_time64",
	"sched_yield", "sched_getaffinity", "sched_getparam", "sched_getscheduler", "gettid",
	"getpid", "getppid", "getcpu", "exit", "exit_group",
	/* Signals. */
	"rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "rt_sigpending", "rt_sigtimedwait",
	"sigreturn", "sigaltstack",
	/* Times. */
	"clock_gettime", "clock_gettime64", "clock_getres", "clock_getres_time64",
	"clock_nanosleep", "clock_nanosleep_time64", "nanosleep", "gettimeofday", "time", "times",
	"getrusage",
	/* Facts about the process and the machine. */
	"getuid", "getuid32", "geteuid", "geteuid32", "getgid", "getgid32", "getegid", "getegid32",
	"getgroups", "getgroups32", "getresuid", "getresgid", "getrlimit", "ugetrlimit",
	"setrlimit", "getrandom", "sysinfo", "uname"
};

/*
 * With a sanitizer, these calls are allowed instead of the rules: the check for leaks traces
 * the process from another one, and reports get the source lines from a separate program.
 */
static const char *const sanitizers[] = { "clone", "clone3", "fork", "vfork", "execve", "ptrace",
	"process_vm_readv", "wait4", "waitid", "kill", "tgkill", "personality", "prctl",
	"arch_prctl", "dup", "dup2", "dup3", "mmap", "mprotect", "open", "openat", "prlimit64",
	"ioctl", "setpriority", "sched_setaffinity", "getpgrp", "socket", "socketpair" };

/*
 * Allows a system call, or makes it fail with `error`, if an argument matches; without a
 * comparison, always. A call without a matching rule kills the process.
 */
struct rule {
	const char *name;
	int error; /* 0: allowed. */
	unsigned argument;
	enum scmp_compare compare; /* 0: none. */
	/* For SCMP_CMP_MASKED_EQ, the mask and the value under the mask. */
	uint64_t value, masked;
};

#define ALWAYS 0, 0, 0, 0
#define IS(argument, value) (argument), SCMP_CMP_EQ, (value), 0
#define IS_NOT(argument, value) (argument), SCMP_CMP_NE, (value), 0
#define HAS(argument, bit) (argument), SCMP_CMP_MASKED_EQ, (bit), (bit)
#define HAS_NOT(argument, bits) (argument), SCMP_CMP_MASKED_EQ, (bits), 0

static const struct rule rules[] = {
	{ "mprotect", 0, HAS_NOT(2, PROT_EXEC) },
	{ "mmap", 0, HAS_NOT(2, PROT_EXEC) },
	{ "mmap", EPERM, HAS(2, PROT_EXEC) },
	{ "mmap2", 0, HAS_NOT(2, PROT_EXEC) },
	{ "mmap2", EPERM, HAS(2, PROT_EXEC) },
	{ "clone", 0, HAS(CLONE_FLAGS, CLONE_THREAD) },
	/*
	 * Its flags are in memory, which a filter cannot read. The C library falls back to
	 * clone.
	 */
	{ "clone3", ENOSYS, ALWAYS },
	{ "open", 0, HAS_NOT(1, O_ACCMODE | O_CREAT | O_TRUNC) },
	{ "open", EACCES, HAS(1, O_WRONLY) },
	{ "open", EACCES, HAS(1, O_RDWR) },
	{ "open", EACCES, HAS(1, O_CREAT) },
	{ "open", EACCES, HAS(1, O_TRUNC) },
	{ "openat", 0, HAS_NOT(2, O_ACCMODE | O_CREAT | O_TRUNC) },
	{ "openat", EACCES, HAS(2, O_WRONLY) },
	{ "openat", EACCES, HAS(2, O_RDWR) },
	{ "openat", EACCES, HAS(2, O_CREAT) },
	{ "openat", EACCES, HAS(2, O_TRUNC) },
	{ "socket", 0, IS(0, AF_UNIX) },
	{ "socket", 0, IS(0, AF_INET) },
	{ "socket", 0, IS(0, AF_INET6) },
	{ "socket", 0, IS(0, AF_NETLINK) }, /* getaddrinfo() lists the network interfaces. */
	{ "socketpair", 0, IS(0, AF_UNIX) },
	{ "ioctl", 0, IS(1, FIONREAD) },
	{ "ioctl", 0, IS(1, SIOCOUTQ) },
	/*
	 * getaddrinfo() and getnameinfo() translate the scope of a link-local address, as in
	 * fe80::1%eth0.
	 */
	{ "ioctl", 0, IS(1, SIOCGIFINDEX) },
	{ "ioctl", 0, IS(1, SIOCGIFNAME) },
	/*
	 * stdio and the lexer of libconfuse check whether a file is a terminal; since glibc
	 * 2.42 with TCGETS2.
	 */
	{ "ioctl", ENOTTY, IS(1, TCGETS) },
#ifdef TCGETS2
	{ "ioctl", ENOTTY, IS(1, TCGETS2) },
#endif
	{ "prctl", 0, IS(0, PR_SET_NAME) },
	{ "prctl", EINVAL, IS_NOT(0, PR_SET_NAME) },
	{ "prlimit64", 0, IS(0, 0) },
	{ "prlimit64", EPERM, IS_NOT(0, 0) },
};

/*
 * A system call that this kind of processor does not have is skipped. Any other failure is a
 * bug in the tables.
 */
static void add_rule(scmp_filter_ctx filter, const struct rule *rule)
{
	uint32_t action = rule->error ? SCMP_ACT_ERRNO((uint32_t)rule->error) : SCMP_ACT_ALLOW;
	struct scmp_arg_cmp match = { rule->argument, rule->compare, rule->value, rule->masked };
	int number = seccomp_syscall_resolve_name(rule->name), rc;

	if (number == __NR_SCMP_ERROR)
		return;
	if (!rule->compare)
		rc = seccomp_rule_add(filter, action, number, 0);
	else
		rc = seccomp_rule_add_array(filter, action, number, 1, &match);
	if (rc < 0 && rc != -EDOM) {
		log_error("sandbox: rule for %s: %s", rule->name, strerror(-rc));
		abort();
	}
}

static void add_all(scmp_filter_ctx filter, const char *const *names, size_t count)
{
	for (size_t i = 0; i < count; i++)
		add_rule(filter, &(struct rule){ names[i], 0, ALWAYS });
}

static scmp_filter_ctx build_filter(void)
{
	struct rule abort_itself = { "tgkill", 0, IS(0, (uint64_t)getpid()) };
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_KILL_PROCESS);

	if (!filter)
		return NULL;
	/* For system calls of another architecture, such as 32-bit ones. */
	(void)seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
	/* Includes all threads, since a library may have started one. */
	(void)seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, 1);
	add_all(filter, allowed, COUNT(allowed));
	if (SANITIZED) {
		add_all(filter, sanitizers, COUNT(sanitizers));
		return filter;
	}
	for (size_t i = 0; i < COUNT(rules); i++)
		add_rule(filter, &rules[i]);
	add_rule(filter, &abort_itself);
	return filter;
}

void sandbox_enter(void)
{
	scmp_filter_ctx filter;
	int rc = -ENOSYS;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		log_warn("sandbox: no_new_privs: %s", strerror(errno));
	filter = build_filter();
	if (filter)
		rc = seccomp_load(filter);
	if (rc < 0)
		log_warn(
			"sandbox: not active: the kernel does not support system call filters (%s)",
			strerror(-rc));
	seccomp_release(filter);
}
