/*
 * Enters the sandbox and does what it is asked to: sandboxed in|out ACTION. With `out` it does not enter. The exit status is 0 if
 * the action succeeded and 1 if it failed; then the error is printed. The test looks at the signal, if one killed it.
 */
#include "process/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef TCGETS2
#include <asm/termbits.h>
#else
#define TCGETS2 TCGETS
#endif

enum { PAGE = 4096 };

static bool do_execve(void)
{
	char name[] = "true";
	char *const arguments[] = { name, NULL };

	return execve("/bin/true", arguments, arguments + 1) == 0;
}

static bool do_fork(void)
{
	pid_t child = fork();

	if (child == 0)
		_exit(0);
	return child > 0 && waitpid(child, NULL, 0) == child;
}

static bool do_ptrace(void)
{
	return ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0;
}

static void *memory(int protection)
{
	return mmap(NULL, PAGE, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static bool do_mprotect(void)
{
	return mprotect(memory(PROT_READ | PROT_WRITE), PAGE, PROT_READ | PROT_EXEC) == 0;
}

static bool do_mmap(void)
{
	return memory(PROT_READ | PROT_EXEC) != MAP_FAILED;
}

static bool do_packets(void)
{
	return socket(AF_KEY, SOCK_RAW, 2) >= 0 || errno != EPERM;
}

static bool do_kill(void)
{
	return kill(getppid(), 0) == 0;
}

static bool do_clone3(void)
{
	return syscall(SYS_clone3, NULL, 0) >= 0;
}

static bool do_write_file(void)
{
	return open("/dev/null", O_WRONLY) >= 0;
}

static bool do_read_file(void)
{
	FILE *file = fopen("/proc/stat", "re");
	char line[PAGE];
	bool good = file && fgets(line, sizeof(line), file);

	if (file)
		fclose(file);
	return good;
}

static void *run_execve(void *arg)
{
	(void)arg;
	do_execve();
	return NULL;
}

static void *run_nothing(void *arg)
{
	return arg;
}

static bool join(void *(*run)(void *))
{
	pthread_t thread;

	return pthread_create(&thread, NULL, run, NULL) == 0 && pthread_join(thread, NULL) == 0;
}

static bool do_thread(void)
{
	return join(run_nothing);
}

static bool do_thread_execve(void)
{
	return join(run_execve);
}

static bool do_socket(void)
{
	return socket(AF_INET6, SOCK_STREAM, 0) >= 0 || errno == EAFNOSUPPORT;
}

/* Of the loopback interface, which has the number 1 everywhere. */
static bool do_if_nametoindex(void)
{
	return if_nametoindex("lo") == 1;
}

static bool do_if_indextoname(void)
{
	char name[IF_NAMESIZE];

	return if_indextoname(1, name) && strcmp(name, "lo") == 0;
}

/* Asks about a terminal, as isatty does with one C library or another. */
static bool ask_terminal(unsigned long request)
{
	char settings[PAGE];

	return ioctl(open("/dev/ptmx", O_RDONLY | O_NOCTTY), request, settings) == 0;
}

static bool do_tcgets(void)
{
	return ask_terminal(TCGETS);
}

static bool do_tcgets2(void)
{
	return ask_terminal(TCGETS2);
}

static bool do_abort(void)
{
	abort();
}

static const struct action {
	const char *name;
	bool (*run)(void);
} actions[] = { { "execve", do_execve }, { "fork", do_fork }, { "ptrace", do_ptrace },
	{ "mprotect", do_mprotect }, { "mmap", do_mmap }, { "packets", do_packets },
	{ "kill", do_kill }, { "clone3", do_clone3 }, { "write-file", do_write_file },
	{ "read-file", do_read_file }, { "thread", do_thread },
	{ "thread-execve", do_thread_execve }, { "socket", do_socket },
	{ "if_nametoindex", do_if_nametoindex }, { "if_indextoname", do_if_indextoname },
	{ "tcgets", do_tcgets }, { "tcgets2", do_tcgets2 }, { "abort", do_abort } };

int main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "in") == 0)
		sandbox_enter();
	for (size_t i = 0; argc == 3 && i < sizeof(actions) / sizeof(actions[0]); i++) {
		if (strcmp(actions[i].name, argv[2]) != 0)
			continue;
		if (actions[i].run())
			return 0;
		printf("%s\n", strerror(errno));
		return 1;
	}
	fprintf(stderr, "usage: sandboxed in|out ACTION\n");
	return 2;
}
