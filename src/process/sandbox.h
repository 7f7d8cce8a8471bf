/*
 * The sandbox: what the process may ask of the kernel once its sockets are open. It is for the day on which a client finds a way to
 * run code of its own in the process.
 *
 * Allowed: to serve open sockets and open new ones, to open files for reading, to remove and make sockets in the file system, to
 * have memory and threads. Nothing that starts a program, makes memory executable, or looks into another process.
 *
 *     what is not allowed                         what happens
 *     execve, fork, ptrace, mprotect(PROT_EXEC),  the kernel kills the process with SIGSYS, and writes the number of the system
 *     and whatever is not listed in sandbox.c     call to its audit log
 *     what is harmless, and a library may try     the call fails, as on a kernel without it: clone3, a file for writing, a mapping
 *                                                 that is executable from its start, prctl, limits of other processes
 *
 * A file is mapped executable if the C library loads a module for nsswitch.conf. Then a name is looked up without this module. In a
 * build with a sanitizer more is allowed: its checks at the exit are processes of their own.
 */
#ifndef PROCESS_SANDBOX_H
#define PROCESS_SANDBOX_H

/*
 * Enters the sandbox, with all threads. There is no way out. The process also gets no new privileges from a program that it would
 * execute. If the kernel has no seccomp, there is no filter, and a warning says so.
 */
void sandbox_enter(void);

#endif
