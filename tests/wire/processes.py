"""Describes, from /proc, what a process and its descendants are doing, for the report of a test or program that exceeded its limit."""
import os
import signal

MOST = 40  # threads of a process, and descriptors, that are listed


def content(path):
    """The text of a file in /proc on one line, or why there is none: a process may end at any time."""
    try:
        with open(path, "rb") as file:
            return b" ".join(file.read().split(b"\0")).decode("utf-8", "backslashreplace").strip()
    except OSError as error:
        return f"({error.strerror})"


def entries(path):
    """The numbers that name the entries of a folder in /proc, sorted."""
    try:
        return sorted(int(name) for name in os.listdir(path) if name.isdigit())
    except OSError:
        return []


def family(pid):
    """The process and all its descendants, parents before their children."""
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
    """Lines of a status file, such as "State: S (sleeping)"."""
    lines = (line.split(":", 1) for line in content(path).splitlines())
    return ", ".join(f"{line[0]}: {' '.join(line[1].split())}" for line in lines if line[0] in names)


def thread(path):
    return f"{status(f'{path}/status', 'Name', 'State')}, wchan: {content(f'{path}/wchan')}, syscall: {content(f'{path}/syscall')}"


def target(pid, number):
    """What a descriptor is open for, such as "pipe:[1234]"."""
    try:
        return os.readlink(f"/proc/{pid}/fd/{number}")
    except OSError as error:
        return f"({error.strerror})"


def pipes():
    """The processes that have each pipe open: a reader sees no end while any of them may write."""
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
    """Describes the process and all its descendants; the text has several lines for each."""
    holders = pipes()
    return "\n".join(line for each in family(pid) for line in describe(each, holders))


def kill_group(leader):
    """Kills a process and its descendants in the process group that it leads, which may have outlived it."""
    try:
        os.killpg(leader, signal.SIGKILL)
    except ProcessLookupError:
        pass
