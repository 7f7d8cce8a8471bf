"""A queue of jobs, with pymemcache.

    jobs.py PORT put     puts the jobs of stdin into the queue, one per line, in base64
    jobs.py PORT take    takes jobs out of it, and prints each like this, until it takes the job `end`
"""
import base64
import sys

from pymemcache.client.base import Client


def put(queue):
    for line in sys.stdin:
        queue.set("q|rpush1|jobs", base64.b64decode(line))


def take(queue):
    while (job := queue.get("q|blpop|5|jobs")) != b"end":
        if job is not None:
            print(base64.b64encode(job).decode())


client = Client(("127.0.0.1", int(sys.argv[1])), timeout=60, connect_timeout=60, default_noreply=False)
{"put": put, "take": take}[sys.argv[2]](client)
