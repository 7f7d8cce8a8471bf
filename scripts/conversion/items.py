"""The memcached items that a collection is made of, for what setlistd's touch and delete leave to the client to know.

Pitem says that a meta command is for the item, also where a rule has plain_verbs.
"""
import re


def pointed(peer, key):
    """The list of a flipping pair that is active, by its letter: the pointer says it, or the mark of the other one."""
    pointer = peer.read(f"mg {key}.active v c Pitem", peer.item)
    if isinstance(pointer, tuple):
        return pointer[1][-1:]
    item = peer.read(f"mg {key}.a v c Pitem", peer.item)
    return "a" if isinstance(item, tuple) and not item[1].startswith("^") else "b"


def names(peer, key, encoding, prefix, removed):
    """The keys of the items, the one that counts most first. `removed` is that of a rule with the encoding paired, or None."""
    if encoding == "flip":
        lists = ("a", "b") if pointed(peer, key) == "a" else ("b", "a")
        return [f"{key}.{part}" for part in (*lists, "active")]
    if encoding == "indexed":
        index = peer.read(f"mg {key} v c Pitem", peer.item)
        parts = re.findall(r"[0-9]+", index[1]) if isinstance(index, tuple) else []
        return [key] + [f"{key}.{part}" for part in reversed(parts)]
    if encoding == "paired" and removed is not None:
        return [key, removed + key[len(prefix):]]
    return [key]


def touch(peer, keys, exptime, longer):
    """False where there is none of them. What the others are named by must not outlive them, so it is last to live longer."""
    found = [peer.read(f"touch {key} {exptime}") == "TOUCHED" for key in (reversed(keys) if longer else keys)]
    return any(found)


def tokens(peer, keys):
    """The CAS token and bytes of each item that there is."""
    found = {key: peer.read(f"mg {key} v c Pitem", peer.item) for key in keys}
    return {key: item for key, item in found.items() if isinstance(item, tuple)}
