"""Describes, from /proc, what a process and its descendants are doing, for the report of a test or program that exceeded its limit.

It also wakes a process that is blocked although the event it waits for has happened.
"""
import ctypes
import os
import signal
import time

MOST = 40  # number of threads of a process, and of descriptors, that are listed
SEIZE, INTERRUPT, DETACH = 0x4206, 0x4207, 17  # of ptrace(2)
ALL_THREADS = 0x40000000                       # __WALL of waitpid(2)
STOP_LIMIT = 5.0                               # seconds


def content(path):
    """Returns the text of a file in /proc on one line, or why it cannot be read: a process may end at any time."""
    try:
        with open(path, "rb") as file:
            return b" ".join(file.read().split(b"\0")).decode("utf-8", "backslashreplace").strip()
    except OSError as error:
        return f"({error.strerror})"


def entries(path):
    """Returns the numeric names in a directory of /proc, sorted."""
    try:
        return sorted(int(name) for name in os.listdir(path) if name.isdigit())
    except OSError:
        return []


def family(pid):
    """Returns the process and all its descendants, parents before their children."""
    children = {}
    for each in entries("/proc"):
        # After the name, which may contain any character: state and parent.
        words = content(f"/proc/{each}/stat").rpartition(")")[2].split()
        if len(words) > 1:
            children.setdefault(int(words[1]), []).append(each)
    found = [pid]
    for each in found:
        found += children.get(each, [])
    return found


def cut(lines):
    return lines[:MOST] + [f"    ... and {len(lines) - MOST} more"] * (len(lines) > MOST)


def status(path, *names):
    """Returns lines of a status file, such as "State: S (sleeping)"."""
    lines = (line.split(":", 1) for line in content(path).splitlines())
    return ", ".join(f"{line[0]}: {' '.join(line[1].split())}" for line in lines if line[0] in names)


def thread(path):
    return f"{status(f'{path}/status', 'Name', 'State')}, wchan: {content(f'{path}/wchan')}, syscall: {content(f'{path}/syscall')}"


def target(pid, number):
    """Returns the target of a descriptor, such as "pipe:[1234]"."""
    try:
        return os.readlink(f"/proc/{pid}/fd/{number}")
    except OSError as error:
        return f"({error.strerror})"


def pipes():
    """Returns the processes that have each pipe open: a reader receives no end while any of them may write."""
    found = {}
    for pid in entries("/proc"):
        for number in entries(f"/proc/{pid}/fd"):
            if (name := target(pid, number)).startswith("pipe:"):
                found.setdefault(name, set()).add(pid)
    return found


def descriptor(pid, number, holders):
    name = target(pid, number)
    others = sorted(holders.get(name, set()) - {pid})
    return f"    fd {number}: {name}" + (f", also open in {', '.join(map(str, others))}" if others else "")


def describe(pid, holders):
    path = f"/proc/{pid}"
    summary = status(f"{path}/status", "State", "PPid", "TracerPid", "Threads", "SigPnd", "ShdPnd", "SigBlk")
    lines = [f"process {pid}: {content(f'{path}/cmdline')}", f"    {summary}"]
    lines += cut([f"    thread {each}: {thread(f'{path}/task/{each}')}" for each in entries(f"{path}/task")])
    return lines + cut([descriptor(pid, number, holders) for number in entries(f"{path}/fd")])


def report(pid):
    """Describes the process and all its descendants, in several lines for each."""
    holders = pipes()
    return "\n".join(line for each in family(pid) for line in describe(each, holders))


def kill_group(leader):
    """Kills a process and its descendants in the process group that it leads, which may have outlived it."""
    try:
        os.killpg(leader, signal.SIGKILL)
    except ProcessLookupError:
        pass


def processor_time(pid):
    """Returns the CPU time that a process has used, in jiffies; None if it has ended."""
    words = content(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return int(words[11]) + int(words[12]) if len(words) > 12 else None


def wake(pid):
    """Interrupts the system calls of all threads of a child, which the kernel then repeats. Returns how many threads were interrupted.

    A kernel was seen to lose a wake-up, and then even a signal did not end the sleep, as one was pending already. A tracer always wakes the thread.
    """
    ptrace = ctypes.CDLL(None).ptrace
    ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    woken = 0
    for number in entries(f"/proc/{pid}/task"):
        if ptrace(SEIZE, number, None, None) != 0:
            continue    # It has ended, or the system does not allow it.
        ptrace(INTERRUPT, number, None, None)
        end = time.monotonic() + STOP_LIMIT
        try:
            while os.waitpid(number, os.WNOHANG | ALL_THREADS)[0] == 0 and time.monotonic() < end:
                time.sleep(0.001)
        except ChildProcessError:
            continue
        woken += ptrace(DETACH, number, None, None) == 0
    return woken
