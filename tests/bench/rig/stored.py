"""The rows about what a set takes up where it is stored, when nobody asks for it any more."""
from . import fill

KEY = "stored"


def in_sequence(lab, name):
    return _bytes_each(lab, name, fill.in_order(1, fill.MILLION))


def at_random(lab, name):
    return _bytes_each(lab, name, fill.hexadecimal(fill.MILLION))


def _bytes_each(lab, name, members):
    """Added in any order, as they would come in the course of time."""
    if lab.servers[name].proto == "resp":
        return _filled(lab.servers[name], lab.servers[name], fill.shuffled(members))
    # A memcached of its own: of data that was flushed, bytes are given back only when others need the room.
    memcached = lab.fresh_memcached()
    with lab.ending(memcached):
        server = lab.fresh_setlistd(behind=memcached)
        with lab.ending(server):
            return _filled(server, memcached, fill.shuffled(members))


def _filled(server, store, members):
    with fill.Client(store) as watching, fill.Client(server) as client:
        before = watching.stored()
        client.add(KEY, members)
        client.compact(KEY)
        growth = (fill.at_rest(watching.stored) if store.proto == "memcache" else watching.stored()) - before
    return {"members": len(members), "growth_bytes": growth, "member_bytes": growth / len(members)}


KINDS = {"set-seq": in_sequence, "set-hex": at_random}
