"""Every transcript, played in order: through setlistd, and if it is marked, against memcached itself."""
import glob
import os

import player
import transcript
from case import WireTest

HERE = os.path.dirname(os.path.abspath(__file__))
SPLIT_SEEDS = (1, 2)


def scripts():
    return [transcript.load(path) for path in sorted(glob.glob(os.path.join(HERE, "transcripts/*.txt")))]


class TranscriptTest(WireTest):
    """Plays one transcript on separate servers."""

    def serve(self, script):
        servers = [self.memcached(*script.memcached_args) for _ in range(script.servers)]
        config = "\n".join(script.config) if script.config else None
        return self.setlistd(servers, *script.args, config=config)

    def play(self, path, how="play", send=player.send_whole):
        script = transcript.load(path)
        peer = self.memcached(*script.memcached_args) if self.direct else self.serve(script)
        getattr(player.Player(script, peer.port, send), how)()


class Proxied(TranscriptTest):
    """Through setlistd."""
    smoke = True


class Direct(TranscriptTest):
    """The same against memcached: the expectations are memcached's own."""
    direct = True


class Cut(TranscriptTest):
    """Through setlistd, with the client's bytes cut in pieces: the replies must not change."""


class Burst(TranscriptTest):
    """Through setlistd, all in one write: the replies must not change."""
    smoke = True


class BurstDirect(TranscriptTest):
    """All in one write to memcached: a transcript that depends on anything but the order fails here."""
    direct = True


def add(cls, name, path, **kwargs):
    def test(self):
        player.in_one_hour(lambda: self.play(path, **kwargs))
    test.__name__ = f"test_{name}"
    setattr(cls, test.__name__, test)


def add_all():
    for script in scripts():
        add(Proxied, script.name, script.path)
        if script.differential:
            add(Direct, script.name, script.path)
        if script.split:
            add(Cut, f"{script.name}_bytewise", script.path, send=player.send_bytewise)
            for seed in SPLIT_SEEDS:
                add(Cut, f"{script.name}_seed{seed}", script.path, send=player.send_cut(seed))
        if script.burstable():
            add(Burst, script.name, script.path, how="play_burst")
            if script.differential:
                add(BurstDirect, script.name, script.path, how="play_burst")


add_all()
