"""The memcached items of a collection, which a client must know to touch or delete all of it.

With the flag Pitem, a meta command refers to the item, even if a rule has plain_verbs.
"""
import re


def pointed(peer, key):
    """Returns the letter of the active list of a flipping pair. The pointer names it, or else the mark of the other list shows it."""
    pointer = peer.read(f"mg {key}.active v c Pitem", peer.item)
    if isinstance(pointer, tuple):
        return pointer[1][-1:]
    item = peer.read(f"mg {key}.a v c Pitem", peer.item)
    return "a" if isinstance(item, tuple) and not item[1].startswith("^") else "b"


def names(peer, key, encoding, prefix, removed):
    """Returns the keys of the items, the most important one first. `removed` is the option of a rule with the encoding paired, or None."""
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
    """Sets the time to live of the items. Returns False if all are missing. An item that names the others must not outlive them: it is extended last."""
    found = [peer.read(f"touch {key} {exptime}") == "TOUCHED" for key in (reversed(keys) if longer else keys)]
    return any(found)


def tokens(peer, keys):
    """Returns the CAS token and the bytes of each item that exists."""
    found = {key: peer.read(f"mg {key} v c Pitem", peer.item) for key in keys}
    return {key: item for key, item in found.items() if isinstance(item, tuple)}
