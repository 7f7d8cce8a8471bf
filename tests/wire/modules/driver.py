"""Runs calls of conf/clients/python/setlistd.py: the port, the options as JSON; then in each line a method and its arguments as JSON."""
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../../../conf/clients/python"))
import setlistd

options = json.loads(sys.argv[2])
# Each character of an element is a byte.
client = setlistd.Setlistd(f"127.0.0.1:{sys.argv[1]}", timeout=options["timeout"], login=options["login"], encoding="latin-1")


jobs = []  # In the order in which they were reserved; done and fail have an index.


def loader(mode, result, counter):
    def load():
        client.evincr(counter)
        if mode == "fail":
            raise ValueError("the database has failed")
        if mode == "wait":
            client.blpop(0, "go")
        return result
    return load


def call(name, *args):
    if name == "load":
        key, members, mode, seconds = args
        return client.load(key, loader(mode, members, "loads"), timeout=seconds)
    if name == "remember":
        key, tags, ttl, value, mode = args
        return client.remember(key, tags, ttl, loader(mode, value, "renderings"))
    if name == "reserve":
        job = client.reserve(*args)
        jobs.append(job)
        return job and [job.element, job.deliveries]
    if name in ("done", "fail"):
        return getattr(client, name)(jobs[args[0]])
    return getattr(client, name)(*args)


for line in sys.stdin:
    try:
        result = call(*json.loads(line))
        reply = {"set": sorted(result)} if isinstance(result, set) else {"ok": result}
    except (setlistd.Error, OSError, ValueError) as error:
        reply = {"error": str(error), "kind": {setlistd.Error: "setlistd", setlistd.Busy: "busy"}.get(type(error), "other")}
    print(json.dumps(reply), flush=True)
