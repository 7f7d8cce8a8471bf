/*
 * The sandbox: restricts the system calls of the process once its sockets are open. It limits
 * the damage if a client finds a way to run code of its own in the process.
 *
 * Allowed: serving open sockets and opening new ones, opening files for reading, removing and
 * creating sockets in the file system, memory and threads. Not allowed: starting programs,
 * making memory executable, and accessing other processes.
 *
 *     not allowed                                consequence
 *     execve, fork, ptrace, mprotect(PROT_EXEC), The kernel kills the process with SIGSYS and
 *     and all calls not listed in sandbox.c      writes the system call to its audit log.
 *     harmless calls that a library may try      The call fails, as on a kernel without it: clone3,
 *                                                a file for writing, a mapping that is executable
 *                                                from its start, prctl, limits of other processes.
 *
 * The C library maps a file executable when it loads a module for nsswitch.conf. That fails, so
 * names are looked up without the module. In a build with a sanitizer more is allowed, since
 * its checks at exit run in separate processes.
 */
#ifndef PROCESS_SANDBOX_H
#define PROCESS_SANDBOX_H

/*
 * Restricts all threads irrevocably. The process also gets no new privileges from a program
 * that it would execute. If the kernel has no seccomp, no filter is installed and a warning is
 * logged.
 */
void sandbox_enter(void);

#endif
